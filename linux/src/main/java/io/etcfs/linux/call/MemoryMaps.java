package io.etcfs.linux.call;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** mmap(2). Anonymous memory is zeroed, page-aligned and not touched until it is used. */
public final class MemoryMaps {
    /** With pages of 4 KiB. */
    public static final long HUGE_PAGE_BYTES = 2L << 20;

    private static final int PROT_READ_WRITE = 3;
    private static final int MAP_PRIVATE_ANONYMOUS = 0x22;
    /** Without a reservation: most of it is never touched. */
    private static final int MAP_NORESERVE = 0x4000;
    private static final int MAP_SHARED_POPULATE = 0x8001;
    private static final int MADV_DONTNEED = 4;
    private static final int MADV_HUGEPAGE = 14;
    private static final int MADV_NOHUGEPAGE = 15;
    private static final int MADV_COLLAPSE = 25;

    private static final MethodHandle MMAP = Native.link("mmap",
            FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG));
    private static final MethodHandle MADVISE = Native.link("madvise", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_INT));
    private static final MethodHandle GETPAGESIZE = Native.link("getpagesize", FunctionDescriptor.of(JAVA_INT));
    private static final MethodHandle MUNMAP = Native.link("munmap", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG));

    /** Size of the pages of the running kernel. */
    public static int kernelPageBytes() {
        MemorySegment errno = Native.errnoOfThread();
        try {
            return (int) GETPAGESIZE.invokeExact(errno);
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    /** Returns its address. */
    public static long map(long bytes) {
        long address = map(bytes, MAP_PRIVATE_ANONYMOUS, -1, 0);
        if (address < 0) {
            throw new OutOfMemoryError("mmap of " + bytes + " bytes: " + ErrorNumbers.describe((int) -address));
        }
        return address;
    }

    /** As {@link #map(long)}, at a multiple of a power of two of pages. */
    public static long mapAligned(long bytes, long alignment) {
        long all = bytes + alignment - Native.PAGE_BYTES;
        long at = map(all);
        long address = (at + alignment - 1) & -alignment;
        if (address > at) {
            unmap(at, address - at);
        }
        if (at + all > address + bytes) {
            unmap(address + bytes, at + all - address - bytes);
        }
        return address;
    }

    /**
     * Makes huge pages of what is there and of what will be, where the range has whole ones; does nothing where the kernel has none, or none free. The kernel accesses a
     * device from a huge page as from one piece of memory, instead of looking 4 KiB pages up one by one.
     */
    public static void useHugePages(long address, long bytes) {
        if (advise(address, bytes, MADV_HUGEPAGE) == 0) {
            // Linux 6.1 and newer. Elsewhere khugepaged does it some time.
            advise(address, bytes, MADV_COLLAPSE);
        }
    }

    /** Memory of which little will be used, a page here and there, for now without huge pages. Returns its address or minus an errno. */
    public static long reserve(long bytes) {
        long address = map(bytes, MAP_PRIVATE_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (address > 0) {
            // EINVAL where the kernel has no huge pages.
            advise(address, bytes, MADV_NOHUGEPAGE);
        }
        return address;
    }

    /** What a descriptor shares with the kernel. Returns its address or minus an errno. */
    public static long share(int fd, long offset, long bytes) {
        return map(bytes, MAP_SHARED_POPULATE, fd, offset);
    }

    private static long map(long bytes, int flags, int fd, long offset) {
        MemorySegment errno = Native.errnoOfThread();
        try {
            long address = (long) MMAP.invokeExact(errno, 0L, bytes, PROT_READ_WRITE, flags, fd, offset);
            return address == -1 ? -errno.get(JAVA_INT, 0) : address;
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    /** Gives anonymous pages back; they are zero when they are used again. */
    public static void discard(long address, long bytes) {
        int result = advise(address, bytes, MADV_DONTNEED);
        assert result == 0;
    }

    private static int advise(long address, long bytes, int advice) {
        MemorySegment errno = Native.errnoOfThread();
        try {
            return Native.result((int) MADVISE.invokeExact(errno, address, bytes, advice), errno);
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
