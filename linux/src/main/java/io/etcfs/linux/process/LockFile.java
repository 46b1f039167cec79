package io.etcfs.linux.process;

import io.etcfs.core.clock.Clock;
import io.etcfs.linux.call.Descriptors;
import io.etcfs.linux.call.ErrorNumbers;
import io.etcfs.linux.call.LinuxException;
import java.nio.file.Path;
import java.util.Optional;

/**
 * An exclusive flock(2) on a file, which is created if needed and never removed. The kernel drops it when the last thread of the process has left its
 * system call: who gets it after a process died knows that this process has no device access under way. Never passed on to a child process.
 */
public final class LockFile implements AutoCloseable {
    private static final long RETRY_NS = 20_000_000L;

    private final int fd;
    private boolean closed;

    private LockFile(int fd) {
        this.fd = fd;
    }

    /** Empty: another process, or another open of this one, has it. */
    public static Optional<LockFile> tryAcquire(Path path) throws LinuxException {
        int fd = LinuxException.check(Descriptors.open(path.toString(), Descriptors.O_RDWR | Descriptors.O_CREAT | Descriptors.O_CLOEXEC, 0600),
                "open " + path);
        int result;
        do {
            result = Descriptors.flock(fd, Descriptors.LOCK_EX | Descriptors.LOCK_NB);
        } while (result == -ErrorNumbers.EINTR);
        if (result == 0) {
            return Optional.of(new LockFile(fd));
        }
        Descriptors.close(fd);
        if (result == -ErrorNumbers.EAGAIN) {
            return Optional.empty();
        }
        throw new LinuxException(-result, "flock " + path);
    }

    /** Tries until {@code untilNs} on the clock. */
    public static Optional<LockFile> acquire(Path path, Clock clock, long untilNs) throws LinuxException, InterruptedException {
        while (true) {
            Optional<LockFile> lock = tryAcquire(path);
            if (lock.isPresent() || clock.nowNs() >= untilNs) {
                return lock;
            }
            clock.sleep(RETRY_NS);
        }
    }

    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            Descriptors.close(fd);
        }
    }
}
