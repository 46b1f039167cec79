package io.etcfs.fuse.protocol;

/** FOPEN_* of linux/fuse.h: what {@link io.etcfs.core.fs.Operations.Opened#openFlags} may say. */
public final class OpenFlags {
    public static final int DIRECT_IO = 1;
    public static final int KEEP_CACHE = 1 << 1;
    public static final int NONSEEKABLE = 1 << 2;
    public static final int CACHE_DIR = 1 << 3;
    public static final int STREAM = 1 << 4;
    public static final int NOFLUSH = 1 << 5;
    public static final int PARALLEL_DIRECT_WRITES = 1 << 6;

    private OpenFlags() {}
}
