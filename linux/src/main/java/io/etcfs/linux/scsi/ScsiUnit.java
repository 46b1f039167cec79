package io.etcfs.linux.scsi;

import io.etcfs.core.device.DeviceException;

/** A logical unit as one initiator has it. Calls wait for as long as it takes to reach the unit, until it is closed. */
public interface ScsiUnit {
    /** Sends a command until it has been answered otherwise than by a {@link ScsiResult#again}. One that changes something may be carried out more than once. */
    ScsiResult execute(ScsiCommand command) throws DeviceException;

    /**
     * LOGICAL UNIT RESET: returns when no command that the unit had accepted before, from whomever, is under way any more. Others' commands that had not begun are sent again by
     * them; reservations stay.
     *
     * @return whether the unit said so
     */
    boolean reset() throws DeviceException;
}
