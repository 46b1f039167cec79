package io.etcfs.core.device;

/** An access to the device failed. {@code errno} is the kernel's, but for {@link #LATE}. */
public final class DeviceException extends Exception {
    /** EBADE: the device refuses this node, which others have cut off (a reservation conflict). */
    public static final int REFUSED = 52;

    /** No errno of the kernel's: no more was sent to the device, as the time was over in which this node may access it. What was sent before has ended. */
    public static final int LATE = 4096;

    private final int errno;

    public DeviceException(int errno, String message) {
        super(message);
        this.errno = errno;
    }

    public boolean isLate() {
        return errno == LATE;
    }

    public int errno() {
        return errno;
    }
}
