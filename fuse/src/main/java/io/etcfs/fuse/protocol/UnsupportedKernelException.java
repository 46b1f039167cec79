package io.etcfs.fuse.protocol;

/** The kernel's FUSE protocol is too old. */
public final class UnsupportedKernelException extends Exception {
    UnsupportedKernelException(int major, int minor) {
        super("the kernel speaks FUSE " + major + "." + minor + "; 7." + Negotiation.OLDEST_MINOR + " (Linux 5.14) or newer is needed");
    }
}
