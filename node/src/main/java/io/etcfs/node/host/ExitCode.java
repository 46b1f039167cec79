package io.etcfs.node.host;

/** How {@code etcfs} ends: the bits of mount(8) and umount(8), and the daemon's own. */
public final class ExitCode {
    public static final int OK = 0;
    /** Wrong usage, as mount(8) has it. */
    public static final int USAGE = 1;
    /** It was done, but not all of it as it should be. */
    public static final int SYSTEM = 2;
    /** A fault in the program itself. */
    public static final int INTERNAL = 4;
    /** The mount or umount failed. */
    public static final int MOUNT_FAILED = 32;
    /** The node lost its fence or its journal and has stopped. */
    public static final int STOPPED = 77;

    private ExitCode() {}
}
