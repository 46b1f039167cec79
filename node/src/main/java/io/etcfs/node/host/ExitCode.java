package io.etcfs.node.host;

/** How {@code etcfs} ends: the bits of mount(8) and umount(8), and the daemon's own. */
public final class ExitCode {
    public static final int OK = 0;
    /** Wrong usage, as mount(8) has it. */
    public static final int USAGE = 1;
    /** A system call failed. */
    public static final int SYSTEM = 2;
    /** The mount or umount failed. */
    public static final int MOUNT_FAILED = 32;
    /** The node lost its fence or its journal and has stopped. */
    public static final int STOPPED = 77;

    private ExitCode() {}
}
