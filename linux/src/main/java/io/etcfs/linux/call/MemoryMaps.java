package io.etcfs.linux.call;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** Anonymous memory from mmap(2): zeroed, page-aligned, not touched until it is used. */
public final class MemoryMaps {
    private static final int PROT_READ_WRITE = 3;
    private static final int MAP_PRIVATE_ANONYMOUS = 0x22;

    private static final MethodHandle MMAP = Native.link("mmap",
            FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG));
    private static final MethodHandle MUNMAP = Native.link("munmap", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG));

    /** Returns its address. */
    public static long map(long bytes) {
        MemorySegment errno = Native.errnoOfThread();
        try {
            long address = (long) MMAP.invokeExact(errno, 0L, bytes, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0L);
            if (address == -1) {
                throw new OutOfMemoryError("mmap of " + bytes + " bytes: " + ErrorNumbers.describe(errno.get(JAVA_INT, 0)));
            }
            return address;
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    public static void unmap(long address, long bytes) {
        MemorySegment errno = Native.errnoOfThread();
        try {
            int result = (int) MUNMAP.invokeExact(errno, address, bytes);
            assert result == 0;
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    private MemoryMaps() {}
}
