package io.etcfs.fuse.protocol;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import java.lang.foreign.MemorySegment;

/** The integers and strings of the protocol, in native byte order. */
final class Wire {
    static int u16(MemorySegment memory, long at) {
        return memory.get(JAVA_SHORT_UNALIGNED, at) & 0xffff;
    }

    static int u32(MemorySegment memory, long at) {
        return memory.get(JAVA_INT_UNALIGNED, at);
    }

    static long u64(MemorySegment memory, long at) {
        return memory.get(JAVA_LONG_UNALIGNED, at);
    }

    static void u16(MemorySegment memory, long at, int value) {
        memory.set(JAVA_SHORT_UNALIGNED, at, (short) value);
    }

    static void u32(MemorySegment memory, long at, int value) {
        memory.set(JAVA_INT_UNALIGNED, at, value);
    }

    static void u64(MemorySegment memory, long at, long value) {
        memory.set(JAVA_LONG_UNALIGNED, at, value);
    }

    /** The bytes from {@code at} to the next NUL, or to {@code end}. */
    static byte[] string(MemorySegment memory, long at, long end) {
        long stop = at;
        while (stop < end && memory.get(JAVA_BYTE, stop) != 0) {
            stop++;
        }
        return bytes(memory, at, (int) (stop - at));
    }

    static byte[] bytes(MemorySegment memory, long at, int length) {
        byte[] bytes = new byte[length];
        MemorySegment.copy(memory, JAVA_BYTE, at, bytes, 0, length);
        return bytes;
    }

    static void bytes(MemorySegment memory, long at, byte[] value) {
        MemorySegment.copy(value, 0, memory, JAVA_BYTE, at, value.length);
    }

    /** FUSE_REC_ALIGN. */
    static long align8(long length) {
        return (length + 7) & ~7L;
    }

    private Wire() {}
}
