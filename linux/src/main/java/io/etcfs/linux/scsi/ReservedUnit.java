package io.etcfs.linux.scsi;

import io.etcfs.core.device.DeviceException;

/** A unit that takes writes from registered initiators only, where a registration may be lost with the connection that it was made on. */
public interface ReservedUnit {
    /** What has to be done on a connection before anything is written on it. */
    interface Admission {
        /** @throws DeviceException nothing is written; each write fails so until this has succeeded */
        void admit(Reservations on) throws DeviceException;
    }

    /** As {@link io.etcfs.core.fence.Fencer#boot}. */
    default String boot() {
        return "";
    }

    /** Over whatever connection there is. */
    Reservations reservations();

    /**
     * Has something done on the present connection, now, and on each later one before it is used, in place of what was to be done until now.
     *
     * @throws DeviceException it failed; it is tried again before the next write
     */
    void admit(Admission admission) throws DeviceException;
}
