package io.etcfs.core.fence;

import io.etcfs.core.device.DeviceException;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import java.util.List;

/**
 * Cuts a node off from the shared device. An implementation says that it is done only if it has read so back from where it counts, and if also what the device
 * had accepted from the node before can't land any more.
 *
 * <p>Where a device accepts only what it was told to ({@link #registers}), each session is admitted before its first write. A session that is severed has ended before; one that is
 * admitted stands after it was. So no session is admitted behind the back of who severs it.
 */
public interface Fencer {
    /**
     * A node that vanished.
     *
     * @param before     a revision: all sessions of the node are meant whose keys were created before it, whether anybody has heard of them or not
     * @param registered all of them that may have been admitted, if the fencer {@link #registers}
     * @param machines   on which those ran, as their {@link Fencer#machine} said
     */
    record Vanished(String node, long before, List<Long> registered, List<String> machines) {}

    /** Of this node, asked in etcd. */
    interface Standing {
        /** Whether the session is there and the node was not fenced. */
        boolean stands() throws StoreUnavailableException, StoreRejectedException;
    }

    /**
     * Severs a node. It may be severed already; it may also have come back with a newer session, which is not to be touched. Blocks for as long as it takes: a
     * controller gives up on it after a while, and what it says then is not heard.
     */
    Severing sever(Vanished vanished);

    /** Whether {@link #admit} is to be called, and which sessions were admitted is to be recorded. */
    default boolean registers() {
        return false;
    }

    /**
     * Has the device accept writes under a session of this node, and none under its older ones any more.
     *
     * @param older    sessions of this node that may have been admitted before
     * @param quiet    no write under any of those is on its way any more; else that holds when this returns
     * @param standing of the session. Asked after the device accepts it, here and whenever it has to be told again: if it does not stand, nothing is written
     * @throws DeviceException the device does not accept it, or can't be asked
     */
    default void admit(long session, List<Long> older, boolean quiet, Standing standing) throws DeviceException {
        throw new UnsupportedOperationException();
    }

    /**
     * The same, for a fencer that severs machines.
     *
     * @param machines on which the older sessions ran, as {@link #machine} said there
     */
    default void admit(long session, List<Long> older, List<String> machines, boolean quiet, Standing standing) throws DeviceException {
        admit(session, older, quiet, standing);
    }

    /** The machine that this node runs on, as whoever severs it has to know it; empty if that need not be known. Recorded with its sessions. */
    default String machine() {
        return "";
    }

    /**
     * Whether {@link #admit} can be done for the first session of this process, asked before it takes up anything: what it can't be done for has to stay as it is, so that others can sever
     * it. May have end what was under way.
     *
     * @param older as there
     * @throws DeviceException it can't, before the node is fenced or declared dead
     */
    default void prepare(List<Long> older) throws DeviceException {}

    /**
     * The boot of this kernel (boot_id), if none of its processes ends before its writes to the device have, and no other one of them uses it; else empty. Recorded with the sessions: where an
     * older one ran in the same, nothing of it is under way.
     */
    default String boot() {
        return "";
    }

    /** For a cluster that has no way to sever anybody: it confirms nothing. */
    static Fencer none() {
        return vanished -> new Severing(false, "no fencer: mount the node again, or declare it dead");
    }
}
