package io.etcfs.linux.mount;

/** How requests come from the kernel. */
public enum Transport {
    /** {@link #URING} where the kernel offers it and it can be set up, else {@link #DEV}. */
    AUTO,
    /** read(2) and write(2) of /dev/fuse. */
    DEV,
    /** FUSE over io_uring, Linux 6.14. */
    URING
}
