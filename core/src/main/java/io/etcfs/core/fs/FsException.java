package io.etcfs.core.fs;

/** A refusal that POSIX knows. Has no stack trace: it is an answer, not a fault. */
public final class FsException extends Exception {
    private final Errno errno;

    public FsException(Errno errno) {
        super(errno.name(), null, false, false);
        this.errno = errno;
    }

    public Errno errno() {
        return errno;
    }
}
