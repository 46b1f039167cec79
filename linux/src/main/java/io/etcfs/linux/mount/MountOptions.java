package io.etcfs.linux.mount;

import io.etcfs.fuse.protocol.InitFlags;
import java.nio.file.Path;

/**
 * How to mount.
 *
 * @param source      what /proc/mounts shows as the source
 * @param mountPoint  an existing directory
 * @param flags       {@link MountFlags}
 * @param readers     threads that read requests; each has buffers of 2 MiB
 * @param readAheadKb read-ahead of the mount in KiB, 0: the kernel's own (128)
 * @param initFlags   {@link InitFlags} to take if the kernel offers them
 */
public record MountOptions(String source, Path mountPoint, long flags, int readers, int readAheadKb, long initFlags) {
    private static final int MAX_READERS = 32;
    private static final int READ_AHEAD_KB = 1024;

    public MountOptions {
        if (readers < 1) {
            throw new IllegalArgumentException("readers: " + readers);
        }
    }

    /** The defaults: no flags, two readers a processor but at least 4, read-ahead of a whole request. */
    public static MountOptions of(String source, Path mountPoint) {
        int readers = Math.clamp(2L * Runtime.getRuntime().availableProcessors(), 4, MAX_READERS);
        return new MountOptions(source, mountPoint, 0, readers, READ_AHEAD_KB, InitFlags.DEFAULT);
    }

    public MountOptions withFlags(long newFlags) {
        return new MountOptions(source, mountPoint, newFlags, readers, readAheadKb, initFlags);
    }

    public MountOptions withReaders(int newReaders) {
        return new MountOptions(source, mountPoint, flags, newReaders, readAheadKb, initFlags);
    }

    public MountOptions withReadAheadKb(int newReadAheadKb) {
        return new MountOptions(source, mountPoint, flags, readers, newReadAheadKb, initFlags);
    }

    public MountOptions withInitFlags(long newInitFlags) {
        return new MountOptions(source, mountPoint, flags, readers, readAheadKb, newInitFlags);
    }
}
