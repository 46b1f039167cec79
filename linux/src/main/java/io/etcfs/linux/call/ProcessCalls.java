package io.etcfs.linux.call;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.concurrent.atomic.AtomicIntegerArray;

/** Clocks, and the attributes of a process or thread. */
public final class ProcessCalls {
    public static final int CLOCK_REALTIME = 0;
    public static final int CLOCK_BOOTTIME = 7;

    private static final int PR_SET_NAME = 15;

    private static final MethodHandle CLOCK_GETTIME = Native.link("clock_gettime", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG));
    private static final MethodHandle PRCTL = Native.linkVariadic("prctl",
            FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG), 1);
    private static final MethodHandle UMASK = Native.link("umask", FunctionDescriptor.of(JAVA_INT, JAVA_INT));

    /**
     * Memory for the results of clock_gettime, one cache line each: a timespec, and the errno. Any thread takes any that is free, since neither an allocation
     * nor something per virtual thread would be in proportion to the 30 ns of the call.
     */
    private static final int CLOCK_SLOTS = 64;
    private static final long CLOCK_SLOT_BYTES = 64;
    private static final MemorySegment CLOCK_MEMORY = Arena.global().allocate(CLOCK_SLOTS * CLOCK_SLOT_BYTES, CLOCK_SLOT_BYTES);
    private static final MemorySegment[] CLOCK_ERRNO = new MemorySegment[CLOCK_SLOTS];
    private static final AtomicIntegerArray CLOCK_SLOT_TAKEN = new AtomicIntegerArray(CLOCK_SLOTS);

    static {
        for (int i = 0; i < CLOCK_SLOTS; i++) {
            CLOCK_ERRNO[i] = CLOCK_MEMORY.asSlice(i * CLOCK_SLOT_BYTES + 32, 4);
        }
    }

    /** In ns. */
    public static long clock(int clock) {
        int slot = (int) (Thread.currentThread().threadId() % CLOCK_SLOTS);
        while (!CLOCK_SLOT_TAKEN.compareAndSet(slot, 0, 1)) {
            slot = (slot + 1) % CLOCK_SLOTS;
        }
        try {
            long timespec = CLOCK_MEMORY.address() + slot * CLOCK_SLOT_BYTES;
            MemorySegment errno = CLOCK_ERRNO[slot];
            int result = Native.result((int) CLOCK_GETTIME.invokeExact(errno, clock, timespec), errno);
            if (result < 0) {
                throw new AssertionError("clock_gettime(" + clock + "): " + ErrorNumbers.describe(-result));
            }
            return Native.MEMORY.get(JAVA_LONG, timespec) * 1_000_000_000L + Native.MEMORY.get(JAVA_LONG, timespec + 8);
        } catch (Throwable t) {
            throw Native.unexpected(t);
        } finally {
            CLOCK_SLOT_TAKEN.set(slot, 0);
        }
    }

    /** The name of the calling thread, cut to 15 bytes. */
    public static int setThreadName(String name) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Native.errnoOfThread();
            return Native.result((int) PRCTL.invokeExact(errno, PR_SET_NAME, Native.string(arena, name), 0L, 0L, 0L), errno);
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    /** Of the process. Returns the one before. */
    public static int setUmask(int mask) {
        MemorySegment errno = Native.errnoOfThread();
        try {
            return (int) UMASK.invokeExact(errno, mask);
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    private ProcessCalls() {}
}
