package io.etcfs.linux.process;

import io.etcfs.core.clock.Clock;
import io.etcfs.linux.call.Descriptors;
import io.etcfs.linux.call.ErrorNumbers;
import io.etcfs.linux.call.LinuxException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Optional;

/**
 * An exclusive flock(2) on a file, which is created if needed. Only who holds it may remove the file, as the last thing that is done under it ({@link #withdraw}); who gets
 * the lock of a file that is not at its path any more has nothing, and tries again. The kernel drops it when the last thread of the process has left its
 * system call: who gets it after a process died knows that this process has no device access under way. Never passed on to a child process.
 */
public final class LockFile implements AutoCloseable {
    private static final long RETRY_NS = 20_000_000L;
    private static final int FLAGS = Descriptors.O_RDWR | Descriptors.O_CREAT | Descriptors.O_CLOEXEC;

    private final Path path;
    private final int fd;
    private final boolean created;
    private boolean closed;

    private LockFile(Path path, int fd, boolean created) {
        this.path = path;
        this.fd = fd;
        this.created = created;
    }

    /** Empty: another process, or another open of this one, has it. */
    public static Optional<LockFile> tryAcquire(Path path) throws LinuxException {
        while (true) {
            Optional<LockFile> lock = tryFile(path);
            if (lock.isEmpty() || lock.get().isAtItsPath()) {
                return lock;
            }
            lock.get().close();
        }
    }

    private static Optional<LockFile> tryFile(Path path) throws LinuxException {
        int fd = Descriptors.open(path.toString(), FLAGS | Descriptors.O_EXCL, 0600);
        boolean created = fd >= 0;
        if (fd == -ErrorNumbers.EEXIST) {
            fd = Descriptors.open(path.toString(), FLAGS, 0600);
        }
        LinuxException.check(fd, "open " + path);
        int result;
        do {
            result = Descriptors.flock(fd, Descriptors.LOCK_EX | Descriptors.LOCK_NB);
        } while (result == -ErrorNumbers.EINTR);
        if (result == 0) {
            return Optional.of(new LockFile(path, fd, created));
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

    /** What others may read in the file, in the place of what it said before. */
    public void say(String text) throws IOException {
        Files.writeString(openFile(), text);
    }

    private Path openFile() {
        return Path.of("/proc/self/fd", Integer.toString(fd));
    }

    /** The number of a file can't be another's while this one is open. */
    private boolean isAtItsPath() {
        try {
            return fileKey(openFile()).equals(fileKey(path));
        } catch (IOException e) {
            return false;
        }
    }

    private static Object fileKey(Path path) throws IOException {
        return Files.readAttributes(path, BasicFileAttributes.class).fileKey();
    }

    /**
     * Gives the lock back as if it had never been taken: a file that was made for it is removed. For who has done nothing under it that another one must wait for. From here on another process can have
     * the lock.
     */
    public synchronized void withdraw() {
        if (!closed && created) {
            try {
                Files.deleteIfExists(path);
            } catch (IOException e) {
                System.getLogger(LockFile.class.getName()).log(System.Logger.Level.DEBUG, "a lock file stays: " + e.getMessage());
            }
        }
        close();
    }

    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            Descriptors.close(fd);
        }
    }
}
