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
 * @param transport   how requests come; with io_uring {@code readers} are threads that access the device besides the one of each CPU
 */
public record MountOptions(String source, Path mountPoint, long flags, int readers, int readAheadKb, long initFlags, Transport transport) {
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
        return new MountOptions(source, mountPoint, 0, readers, READ_AHEAD_KB, InitFlags.DEFAULT, Transport.AUTO);
    }

    public MountOptions withFlags(long newFlags) {
        return new MountOptions(source, mountPoint, newFlags, readers, readAheadKb, initFlags, transport);
    }

    public MountOptions withReaders(int newReaders) {
        return new MountOptions(source, mountPoint, flags, newReaders, readAheadKb, initFlags, transport);
    }

    public MountOptions withReadAheadKb(int newReadAheadKb) {
        return new MountOptions(source, mountPoint, flags, readers, newReadAheadKb, initFlags, transport);
    }

    public MountOptions withInitFlags(long newInitFlags) {
        return new MountOptions(source, mountPoint, flags, readers, readAheadKb, newInitFlags, transport);
    }

    public MountOptions withTransport(Transport newTransport) {
        return new MountOptions(source, mountPoint, flags, readers, readAheadKb, initFlags, newTransport);
    }
}
