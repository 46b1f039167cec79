package io.etcfs.linux.mount;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.etcfs.fuse.protocol.Exchange;
import io.etcfs.linux.call.MemoryMaps;
import io.etcfs.linux.call.Native;
import java.lang.foreign.MemorySegment;

/**
 * Memory for a request or a reply: a page, and {@code capacity} bytes that start page-aligned at {@link #payload}. A request ends its WRITE arguments, a
 * reply its header, where the payload starts; so the bytes of WRITE and READ are aligned, and everything is contiguous. The first page also
 * holds the errno of the calls that use the block and their iovecs.
 */
final class Block {
    private static final int VECTORS_AT = 64;
    /** From this size on a request makes a block use a huge page: a daemon that never sees any keeps the few pages that it needs. */
    private static final int LARGE_BYTES = 128 << 10;

    final long payload;
    final int capacity;
    /** For {@link io.etcfs.linux.call.Descriptors}. */
    final MemorySegment errno;
    private final long base;
    /** Of the mapping: a huge page where that is not much more than the block. */
    private final long mappedBytes;
    private boolean huge;

    Block(int capacity) {
        this.capacity = capacity;
        this.mappedBytes = bytesOf(capacity);
        this.base = mappedBytes == MemoryMaps.HUGE_PAGE_BYTES ? MemoryMaps.mapAligned(mappedBytes, MemoryMaps.HUGE_PAGE_BYTES) : MemoryMaps.map(mappedBytes);
        this.payload = base + Native.PAGE_BYTES;
        this.errno = Native.MEMORY.asSlice(base, 4);
    }

    /** Address space that it takes. */
    long bytes() {
        return mappedBytes;
    }

    static long bytesOf(int capacity) {
        long needed = Native.PAGE_BYTES + (long) capacity;
        return needed > MemoryMaps.HUGE_PAGE_BYTES / 2 && needed < MemoryMaps.HUGE_PAGE_BYTES ? MemoryMaps.HUGE_PAGE_BYTES : needed;
    }

    /** So many bytes of it are about to be used for an access to the device. */
    void prepareFor(int bytes) {
        if (bytes >= LARGE_BYTES && !huge && mappedBytes == MemoryMaps.HUGE_PAGE_BYTES) {
            huge = true;
            MemoryMaps.useHugePages(base, mappedBytes);
        }
    }

    /** Where a request starts. */
    long request() {
        return payload - Exchange.WRITE_DATA_OFFSET;
    }

    /** Bytes that a request can have. */
    int requestCapacity() {
        return Exchange.WRITE_DATA_OFFSET + capacity;
    }

    /** Where a reply starts. */
    long reply() {
        return payload - Exchange.OUT_HEADER_BYTES;
    }

    /** Two struct iovec; returns their address. */
    long vectors(long firstAddress, long firstBytes, long secondAddress, long secondBytes) {
        long at = base + VECTORS_AT;
        Native.MEMORY.set(JAVA_LONG, at, firstAddress);
        Native.MEMORY.set(JAVA_LONG, at + 8, firstBytes);
        Native.MEMORY.set(JAVA_LONG, at + 16, secondAddress);
        Native.MEMORY.set(JAVA_LONG, at + 24, secondBytes);
        return at;
    }

    /** The block must not be used any more. */
    void unmap() {
        MemoryMaps.unmap(base, mappedBytes);
    }
}
