package io.etcfs.linux.call;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** io_uring_setup(2), io_uring_enter(2) and eventfd(2). The C library has no functions for the first two. All return minus an errno on failure. */
public final class UringCalls {
    public static final int ENTER_GETEVENTS = 1;

    public static final int SETUP_CQSIZE = 1 << 3;
    public static final int SETUP_CLAMP = 1 << 4;
    public static final int SETUP_SQE128 = 1 << 10;
    public static final int SETUP_SINGLE_ISSUER = 1 << 12;
    public static final int SETUP_DEFER_TASKRUN = 1 << 13;

    /** Both rings are in one mapping. */
    public static final int FEAT_SINGLE_MMAP = 1;

    public static final long OFFSET_RINGS = 0;
    public static final long OFFSET_SUBMISSIONS = 0x1000_0000L;

    /** The same on all architectures that came after x86. */
    private static final long IO_URING_SETUP = 425;
    private static final long IO_URING_ENTER = 426;
    private static final int EFD_CLOEXEC = 02000000;

    private static final MethodHandle SETUP = Native.linkVariadic("syscall", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_LONG), 1);
    private static final MethodHandle ENTER = Native.linkVariadic("syscall",
            FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG), 1);
    private static final MethodHandle EVENTFD = Native.link("eventfd", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT));

    /** {@code params}: address of a struct io_uring_params. Returns a descriptor. */
    public static int setup(int entries, long params) {
        MemorySegment errno = Native.errnoOfThread();
        try {
            return (int) Native.result((long) SETUP.invokeExact(errno, IO_URING_SETUP, entries, params), errno);
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    /** Returns how many entries were submitted. */
    public static int enter(int ring, int submit, int minComplete, int flags, MemorySegment errno) {
        try {
            return (int) Native.result((long) ENTER.invokeExact(errno, IO_URING_ENTER, ring, submit, minComplete, flags, 0L, 0L), errno);
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    /** A counter at 0, that is closed on exec. A read waits until it is not 0. */
    public static int eventCounter() {
        MemorySegment errno = Native.errnoOfThread();
        try {
            return Native.result((int) EVENTFD.invokeExact(errno, 0, EFD_CLOEXEC), errno);
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    private UringCalls() {}
}
