package io.etcfs.linux.scsi;

import io.etcfs.core.device.DeviceException;
import java.util.List;

/** Persistent reservations of one unit, "write exclusive - registrants only": whoever has registered a key may write, everybody may read. */
public interface Reservations {
    /** There is none. */
    int NO_TYPE = 0;
    /** As SPC-4 counts. */
    int WRITE_EXCLUSIVE_REGISTRANTS_ONLY = 5;

    /** By commands to a unit whose initiator is one node's. */
    static Reservations of(ScsiUnit unit) {
        return new ScsiReservations(unit);
    }

    /**
     * Gives this initiator that key.
     *
     * @param older keys that it may have, all of this node
     * @throws DeviceException among others if it has the key of another node, who shares it
     */
    void register(long key, List<Long> older) throws DeviceException;

    /** False: others have reserved it meanwhile. */
    boolean reserve(long key) throws DeviceException;

    /** Takes a key away from all who have it. False: nobody has, or this initiator has not registered {@code own}. */
    boolean preempt(long own, long victim) throws DeviceException;

    /**
     * Returns when nothing is under way any more of what the unit had accepted from those who were preempted. Others' commands may be sent again.
     *
     * @param taken all of them were preempted by this caller, just now: nobody had begun and left it unfinished
     * @return whether that is sure
     */
    boolean settle(boolean taken) throws DeviceException;

    /** Takes away all keys, one's own too, and the reservation. */
    void clear(long own) throws DeviceException;

    /** All that are registered; the same key several times if several initiators have it. */
    List<Long> keys() throws DeviceException;

    /** Of the reservation, {@link #NO_TYPE} if there is none. */
    int type() throws DeviceException;
}
