package io.etcfs.fuse.protocol;

/** The flags of INIT: FUSE_* of linux/fuse.h; bits 32 and up travel in {@code flags2}. */
public final class InitFlags {
    public static final long ASYNC_READ = 1L;
    public static final long POSIX_LOCKS = 1L << 1;
    public static final long ATOMIC_O_TRUNC = 1L << 3;
    public static final long BIG_WRITES = 1L << 5;
    public static final long DONT_MASK = 1L << 6;
    public static final long FLOCK_LOCKS = 1L << 10;
    public static final long AUTO_INVAL_DATA = 1L << 12;
    public static final long DO_READDIRPLUS = 1L << 13;
    public static final long READDIRPLUS_AUTO = 1L << 14;
    public static final long ASYNC_DIO = 1L << 15;
    public static final long WRITEBACK_CACHE = 1L << 16;
    public static final long PARALLEL_DIROPS = 1L << 18;
    public static final long POSIX_ACL = 1L << 20;
    public static final long ABORT_ERROR = 1L << 21;
    public static final long MAX_PAGES = 1L << 22;
    public static final long CACHE_SYMLINKS = 1L << 23;
    public static final long EXPLICIT_INVAL_DATA = 1L << 25;
    public static final long HANDLE_KILLPRIV_V2 = 1L << 28;
    public static final long SETXATTR_EXT = 1L << 29;
    public static final long INIT_EXT = 1L << 30;
    public static final long DIRECT_IO_ALLOW_MMAP = 1L << 36;
    /** Linux 6.14. Offered while /sys/module/fuse/parameters/enable_uring says so. */
    public static final long OVER_IO_URING = 1L << 41;

    /**
     * What is taken where the kernel offers it. Never AUTO_INVAL_DATA or WRITEBACK_CACHE: pages are dropped when they are told to be, and the kernel's own
     * idea of the file size can't be coherent.
     */
    public static final long DEFAULT = ASYNC_READ | POSIX_LOCKS | FLOCK_LOCKS | ATOMIC_O_TRUNC | BIG_WRITES | DONT_MASK | DO_READDIRPLUS | READDIRPLUS_AUTO | ASYNC_DIO
            | PARALLEL_DIROPS | ABORT_ERROR | MAX_PAGES | EXPLICIT_INVAL_DATA | HANDLE_KILLPRIV_V2 | POSIX_ACL | SETXATTR_EXT | INIT_EXT | DIRECT_IO_ALLOW_MMAP;

    private InitFlags() {}
}
