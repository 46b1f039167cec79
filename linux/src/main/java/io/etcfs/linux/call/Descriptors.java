package io.etcfs.linux.call;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** Calls on file descriptors. All return minus an errno on failure; they are neither repeated after EINTR nor after a short transfer. */
public final class Descriptors {
    public static final int O_RDONLY = 0;
    public static final int O_WRONLY = 1;
    public static final int O_RDWR = 2;
    public static final int O_CREAT = 0100;
    /** Of a block device without O_CREAT: nobody else on this host may open it so, and no filesystem or volume may use it. */
    public static final int O_EXCL = 0200;
    public static final int O_CLOEXEC = 02000000;
    /** The one flag used here whose number depends on the architecture (asm/fcntl.h). */
    public static final int O_DIRECT = "aarch64".equals(System.getProperty("os.arch")) ? 0200000 : 040000;

    public static final int LOCK_EX = 2;
    public static final int LOCK_NB = 4;
    public static final int LOCK_UN = 8;

    public static final int POLLIN = 1;
    public static final int POLLERR = 8;
    public static final int POLLHUP = 0x10;
    public static final int POLLRDHUP = 0x2000;
    private static final int AT_EMPTY_PATH = 0x1000;
    private static final int STATX_BASIC_STATS = 0x7ff;
    private static final int STATX_STRUCT_BYTES = 256;

    private static final MethodHandle OPEN = Native.linkVariadic("open", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_INT, JAVA_INT), 2);
    private static final MethodHandle CLOSE = Native.link("close", FunctionDescriptor.of(JAVA_INT, JAVA_INT));
    private static final MethodHandle READ = Native.link("read", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle WRITE = Native.link("write", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle WRITEV = Native.link("writev", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_INT));
    private static final MethodHandle PREAD = Native.link("pread", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle PWRITE = Native.link("pwrite", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle FDATASYNC = Native.link("fdatasync", FunctionDescriptor.of(JAVA_INT, JAVA_INT));
    private static final MethodHandle IOCTL = Native.linkVariadic("ioctl", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG), 2);
    private static final MethodHandle FLOCK = Native.link("flock", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT));
    private static final MethodHandle POLL = Native.link("poll", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_INT));
    private static final MethodHandle STATX = Native.link("statx", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_LONG));

    /** Of an open file: st_mode, size in bytes, and for a device its number. */
    public record Status(int mode, long sizeBytes, int deviceMajor, int deviceMinor) {
        private static final int S_IFMT = 0170000;

        public boolean isBlockDevice() {
            return (mode & S_IFMT) == 0060000;
        }

        public boolean isRegularFile() {
            return (mode & S_IFMT) == 0100000;
        }
    }

    public static int open(String path, int flags, int mode) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Native.errnoOfThread();
            return Native.result((int) OPEN.invokeExact(errno, Native.string(arena, path), flags, mode), errno);
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    public static int close(int fd) {
        MemorySegment errno = Native.errnoOfThread();
        try {
            return Native.result((int) CLOSE.invokeExact(errno, fd), errno);
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    public static long read(int fd, long address, long bytes) {
        return read(fd, address, bytes, Native.errnoOfThread());
    }

    /** {@code errno}: 4 bytes of the caller's, so that a virtual thread needs none of its own. */
    public static long read(int fd, long address, long bytes, MemorySegment errno) {
        try {
            return Native.result((long) READ.invokeExact(errno, fd, address, bytes), errno);
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    public static long write(int fd, long address, long bytes) {
        return write(fd, address, bytes, Native.errnoOfThread());
    }

    public static long write(int fd, long address, long bytes, MemorySegment errno) {
        try {
            return Native.result((long) WRITE.invokeExact(errno, fd, address, bytes), errno);
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    /** {@code vectors}: address of an array of struct iovec. */
    public static long writev(int fd, long vectors, int count, MemorySegment errno) {
        try {
            return Native.result((long) WRITEV.invokeExact(errno, fd, vectors, count), errno);
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    public static long pread(int fd, long address, long bytes, long offset) {
        MemorySegment errno = Native.errnoOfThread();
        try {
            return Native.result((long) PREAD.invokeExact(errno, fd, address, bytes, offset), errno);
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    public static long pwrite(int fd, long address, long bytes, long offset) {
        MemorySegment errno = Native.errnoOfThread();
        try {
            return Native.result((long) PWRITE.invokeExact(errno, fd, address, bytes, offset), errno);
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    public static int fdatasync(int fd) {
        MemorySegment errno = Native.errnoOfThread();
        try {
            return Native.result((int) FDATASYNC.invokeExact(errno, fd), errno);
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    /** With a pointer, or a number, as its argument. */
    public static int ioctl(int fd, long request, long argument) {
        MemorySegment errno = Native.errnoOfThread();
        try {
            return Native.result((int) IOCTL.invokeExact(errno, fd, request, argument), errno);
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    /** With a pointer to 8 bytes as its argument. */
    public static int ioctl(int fd, long request, long[] argument) {
        try (Arena arena = Arena.ofConfined()) {
            long address = Native.memory(arena, 8);
            Native.MEMORY.set(JAVA_LONG, address, argument[0]);
            int result = ioctl(fd, request, address);
            argument[0] = Native.MEMORY.get(JAVA_LONG, address);
            return result;
        }
    }

    public static int flock(int fd, int operation) {
        MemorySegment errno = Native.errnoOfThread();
        try {
            return Native.result((int) FLOCK.invokeExact(errno, fd, operation), errno);
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    /** Whether poll(2) reports POLLERR now. */
    public static boolean isBroken(int fd) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Native.errnoOfThread();
            long pollfd = Native.memory(arena, 8);
            Native.MEMORY.set(JAVA_INT, pollfd, fd);
            int ready = Native.result((int) POLL.invokeExact(errno, pollfd, 1L, 0), errno);
            return ready > 0 && (Native.MEMORY.get(JAVA_SHORT, pollfd + 6) & POLLERR) != 0;
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    /** Descriptors to wait for with poll(2). For one thread. */
    public static final class Poll {
        private static final int BYTES = 8;

        private final long address;
        private final int count;

        public Poll(Arena arena, int count) {
            this.address = Native.memory(arena, (long) BYTES * count);
            this.count = count;
        }

        public void set(int index, int fd, int events) {
            Native.MEMORY.set(JAVA_INT, address + (long) BYTES * index, fd);
            Native.MEMORY.set(JAVA_INT, address + (long) BYTES * index + 4, events & 0xffff);
        }

        /** Returns how many are ready, or minus an errno. What {@link #events} says is of the last call that returned without. */
        public int await(int timeoutMs) {
            MemorySegment errno = Native.errnoOfThread();
            try {
                return Native.result((int) POLL.invokeExact(errno, address, (long) count, timeoutMs), errno);
            } catch (Throwable t) {
                throw Native.unexpected(t);
            }
        }

        /** What happened to it. */
        public int events(int index) {
            return Native.MEMORY.get(JAVA_SHORT, address + (long) BYTES * index + 6) & 0xffff;
        }
    }

    /** Of the open file, by statx(2): its structure is the same on all architectures. */
    public static Status status(int fd) throws LinuxException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Native.errnoOfThread();
            long statx = Native.memory(arena, STATX_STRUCT_BYTES);
            LinuxException.check(Native.result((int) STATX.invokeExact(errno, fd, Native.string(arena, ""), AT_EMPTY_PATH, STATX_BASIC_STATS, statx), errno),
                    "statx");
            return new Status(Native.MEMORY.get(JAVA_SHORT, statx + 28) & 0xffff, Native.MEMORY.get(JAVA_LONG, statx + 40),
                    Native.MEMORY.get(JAVA_INT, statx + 128), Native.MEMORY.get(JAVA_INT, statx + 132));
        } catch (LinuxException e) {
            throw e;
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    private Descriptors() {}
}
