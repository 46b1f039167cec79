package io.etcfs.linux.scsi;

/**
 * How a command ended.
 *
 * @param status SAM-4 status code, or {@link #LOST}
 * @param key    sense key, 0 without sense
 * @param code   additional sense code and its qualifier, as 0xccqq
 */
public record ScsiResult(int status, int key, int code) {
    public static final int GOOD = 0x00;
    public static final int CHECK_CONDITION = 0x02;
    public static final int BUSY = 0x08;
    public static final int RESERVATION_CONFLICT = 0x18;
    public static final int TASK_SET_FULL = 0x28;
    public static final int TASK_ABORTED = 0x40;
    /** No answer: the connection ended meanwhile, and what became of the command is not known. */
    public static final int LOST = -1;
    private static final int UNIT_ATTENTION = 0x06;

    public boolean good() {
        return status == GOOD;
    }

    /** It had no effect, and has to be sent again. An attention says what happened before, to whoever sends the next command. */
    public boolean again() {
        return status == BUSY || status == TASK_SET_FULL || status == TASK_ABORTED || status == CHECK_CONDITION && key == UNIT_ATTENTION;
    }

    @Override
    public String toString() {
        return status == LOST ? "no answer" : status == RESERVATION_CONFLICT ? "reservation conflict"
                : status == CHECK_CONDITION ? String.format("sense key %x, code %04x", key, code) : String.format("status %02x", status);
    }
}
