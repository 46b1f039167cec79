package io.etcfs.linux.mount;

import io.etcfs.linux.call.Descriptors;
import io.etcfs.linux.call.ErrorNumbers;
import io.etcfs.linux.call.LinuxException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The /dev/fuse descriptors of one mount. They are closed when nobody uses them any more, not when the mount ends: a late reply must not
 * meet a descriptor number that is another file's by then. Thread-safe.
 */
final class FuseConnection {
    private static final String DEVICE = "/dev/fuse";
    /** FUSE_DEV_IOC_CLONE of linux/fuse.h. */
    private static final long CLONE = 0x8004_e500L;

    private final int mounted;
    private final List<Integer> descriptors = new CopyOnWriteArrayList<>();
    private final AtomicInteger users = new AtomicInteger(1);
    private final List<Runnable> whenClosed = new CopyOnWriteArrayList<>();

    private FuseConnection(int mounted, Runnable whenClosed) {
        this.mounted = mounted;
        this.whenClosed.add(whenClosed);
        descriptors.add(mounted);
    }

    /** Has one user, whoever opens it. */
    static FuseConnection open(Runnable whenClosed) throws LinuxException {
        return new FuseConnection(openDevice(), whenClosed);
    }

    private static int openDevice() throws LinuxException {
        return LinuxException.check(Descriptors.open(DEVICE, Descriptors.O_RDWR | Descriptors.O_CLOEXEC, 0), "open " + DEVICE);
    }

    /** More to do when nobody uses it any more. To be called by a user. */
    void whenClosed(Runnable action) {
        whenClosed.add(action);
    }

    /** The descriptor that mount(2) is given. */
    int mounted() {
        return mounted;
    }

    /** One more for the same mount, once INIT is answered. */
    int cloneDescriptor() throws LinuxException {
        int fd = openDevice();
        int[] source = {mounted};
        int result;
        try (Arena arena = Arena.ofConfined()) {
            result = Descriptors.ioctl(fd, CLONE, arena.allocateFrom(ValueLayout.JAVA_INT, source).address());
        }
        if (result < 0) {
            Descriptors.close(fd);
            throw new LinuxException(-result, "FUSE_DEV_IOC_CLONE");
        }
        descriptors.add(fd);
        return fd;
    }

    List<Integer> descriptors() {
        return descriptors;
    }

    /** False: the descriptors are closed. Whoever gets true calls {@link #release} later. */
    boolean acquire() {
        while (true) {
            int now = users.get();
            if (now == 0) {
                return false;
            }
            if (users.compareAndSet(now, now + 1)) {
                return true;
            }
        }
    }

    void release() {
        if (users.decrementAndGet() == 0) {
            descriptors.forEach(Descriptors::close);
            whenClosed.forEach(Runnable::run);
        }
    }

    /** The mount has ended: unmounted and no file open, or aborted. */
    boolean isBroken() {
        return Descriptors.isBroken(mounted);
    }

    /** Sends a message; returns its length or minus an errno. */
    static long send(int fd, long address, long bytes, MemorySegment errno) {
        long result;
        do {
            result = Descriptors.write(fd, address, bytes, errno);
        } while (result == -ErrorNumbers.EINTR);
        return result;
    }
}
