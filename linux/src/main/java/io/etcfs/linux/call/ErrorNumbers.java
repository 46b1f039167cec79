package io.etcfs.linux.call;

import io.etcfs.core.fs.Errno;

/** The errnos that this module decides by (asm-generic/errno.h). */
public final class ErrorNumbers {
    public static final int EPERM = 1;
    public static final int ENOENT = 2;
    public static final int EINTR = 4;
    public static final int EIO = 5;
    public static final int EAGAIN = 11;
    public static final int ENOMEM = 12;
    public static final int EBUSY = 16;
    public static final int EEXIST = 17;
    public static final int ENODEV = 19;
    public static final int EINVAL = 22;
    public static final int ENOTTY = 25;
    public static final int EOPNOTSUPP = 95;
    /** What the kernel makes of a reservation conflict, too. */
    public static final int EBADE = 52;
    public static final int ECONNABORTED = 103;
    public static final int ENOTCONN = 107;

    /** Its name where it is a usual one. */
    public static String describe(int errno) {
        for (Errno known : Errno.values()) {
            if (known.number() == errno) {
                return known.name();
            }
        }
        return switch (errno) {
            case ENODEV -> "ENODEV";
            case EBADE -> "EBADE (reservation conflict)";
            case ENOTCONN -> "ENOTCONN";
            default -> "errno " + errno;
        };
    }

    private ErrorNumbers() {}
}
