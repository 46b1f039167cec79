package io.etcfs.linux.call;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.BitSet;

/** On which CPUs a thread may run: sched_setaffinity(2). */
public final class AffinityCalls {
    /** 8192 CPUs, the most that a kernel for x86 can be built for. */
    private static final int MASK_BYTES = 1024;

    private static final MethodHandle SET = Native.link("sched_setaffinity", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle GET = Native.link("sched_getaffinity", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG));

    /** {@code thread}: its number, 0 for the calling one. Returns 0 or minus an errno: EINVAL if none of the CPUs is there and allowed. */
    public static int set(int thread, BitSet cpus) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Native.errnoOfThread();
            long mask = Native.memory(arena, MASK_BYTES);
            long[] words = cpus.toLongArray();
            for (int i = 0; i < words.length; i++) {
                Native.MEMORY.set(JAVA_LONG, mask + 8L * i, words[i]);
            }
            return Native.result((int) SET.invokeExact(errno, thread, (long) MASK_BYTES, mask), errno);
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    /** Empty if there is no such thread. */
    public static BitSet get(int thread) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Native.errnoOfThread();
            long mask = Native.memory(arena, MASK_BYTES);
            if (Native.result((int) GET.invokeExact(errno, thread, (long) MASK_BYTES, mask), errno) < 0) {
                return new BitSet();
            }
            long[] words = new long[MASK_BYTES / 8];
            for (int i = 0; i < words.length; i++) {
                words[i] = Native.MEMORY.get(JAVA_LONG, mask + 8L * i);
            }
            return BitSet.valueOf(words);
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    private AffinityCalls() {}
}
