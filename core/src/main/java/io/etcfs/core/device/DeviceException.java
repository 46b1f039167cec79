package io.etcfs.core.device;

/** An access to the device failed. {@code errno} is the kernel's. */
public final class DeviceException extends Exception {
    /** EBADE: the device refuses this node, which others have cut off (a reservation conflict). */
    public static final int REFUSED = 52;

    private final int errno;

    public DeviceException(int errno, String message) {
        super(message);
        this.errno = errno;
    }

    public int errno() {
        return errno;
    }
}
