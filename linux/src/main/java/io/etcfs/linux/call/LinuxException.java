package io.etcfs.linux.call;

import java.io.IOException;

/** A system call failed. {@code errno} is the kernel's (asm-generic/errno.h). */
public final class LinuxException extends IOException {
    private final int errno;

    public LinuxException(int errno, String what) {
        super(what + ": " + ErrorNumbers.describe(errno));
        this.errno = errno;
    }

    public int errno() {
        return errno;
    }

    /** Returns {@code result}, or throws what it says if it is minus an errno. */
    public static int check(int result, String what) throws LinuxException {
        if (result < 0) {
            throw new LinuxException(-result, what);
        }
        return result;
    }
}
