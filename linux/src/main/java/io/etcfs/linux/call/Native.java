package io.etcfs.linux.call;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;

/** Native memory by absolute address, and how the calls are linked. */
public final class Native {
    /** The whole address space: an offset in it is an address. */
    public static final MemorySegment MEMORY = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    public static final int PAGE_BYTES = 4096;

    private static final Linker LINKER = Linker.nativeLinker();
    private static final Linker.Option CAPTURE = Linker.Option.captureCallState("errno");
    /** Per thread: a call and the look at its errno must not be parted. */
    private static final ThreadLocal<MemorySegment> ERRNO = ThreadLocal.withInitial(() -> Arena.ofAuto().allocate(Linker.Option.captureStateLayout()));

    static MethodHandle link(String name, FunctionDescriptor descriptor) {
        return LINKER.downcallHandle(LINKER.defaultLookup().findOrThrow(name), descriptor, CAPTURE);
    }

    /** {@code fixedArguments}: how many come before the variable ones. */
    static MethodHandle linkVariadic(String name, FunctionDescriptor descriptor, int fixedArguments) {
        return LINKER.downcallHandle(LINKER.defaultLookup().findOrThrow(name), descriptor, CAPTURE, Linker.Option.firstVariadicArg(fixedArguments));
    }

    /** Where the calls of the current thread put their errno. */
    static MemorySegment errnoOfThread() {
        return ERRNO.get();
    }

    static int result(int value, MemorySegment errno) {
        return value >= 0 ? value : -errno.get(JAVA_INT, 0);
    }

    static long result(long value, MemorySegment errno) {
        return value >= 0 ? value : -errno.get(JAVA_INT, 0);
    }

    /** What a linked call can throw is a mistake in its descriptor, or a fatal error of the virtual machine. */
    static Error unexpected(Throwable thrown) {
        if (thrown instanceof Error error) {
            return error;
        }
        return new AssertionError(thrown);
    }

    /** A C string. */
    static long string(Arena arena, String value) {
        return arena.allocateFrom(value, StandardCharsets.UTF_8).address();
    }

    /** Zeroed memory. */
    static long memory(Arena arena, long bytes) {
        MemorySegment memory = arena.allocate(bytes, 16);
        memory.fill((byte) 0);
        return memory.address();
    }

    private Native() {}
}
