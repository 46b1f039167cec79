package io.etcfs.core.space;

/** How large arenas are: decided once, when the filesystem is made, and kept in {@code super}. */
public final class ArenaSize {
    /** Arenas of large devices: 1 GiB. */
    public static final long MAX_BYTES = 1L << 30;

    /** One segment of the bitmap, the smallest arena: 16 MiB. */
    public static final long MIN_BYTES = (long) Arena.SEGMENT_BLOCKS * Arena.BLOCK_BYTES;

    private static final int ARENAS = 64;

    private ArenaSize() {}

    /**
     * The arena size in bytes for a device of this many bytes: a power of two between {@link #MIN_BYTES} and {@link #MAX_BYTES}, between
     * them such that the device has 64 to 128 arenas.
     */
    public static long forDevice(long deviceBytes) {
        if (deviceBytes <= 0) {
            throw new IllegalArgumentException("a device of " + deviceBytes + " bytes");
        }
        return Math.clamp(Long.highestOneBit(deviceBytes / ARENAS), MIN_BYTES, MAX_BYTES);
    }
}
