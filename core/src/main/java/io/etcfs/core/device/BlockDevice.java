package io.etcfs.core.device;

import java.lang.foreign.MemorySegment;
import java.util.function.BooleanSupplier;

/**
 * The shared device. Offsets, lengths and buffer addresses are multiples of {@link #BLOCK_BYTES}; every access bypasses the host's
 * page cache. All calls are synchronous: when one returns or throws, no access of it is under way any more, unless the kernel still
 * holds the calling thread. They may be made from any thread; the implementation sees to it that a virtual thread's carrier is not held.
 */
public interface BlockDevice extends AutoCloseable {
    int BLOCK_BYTES = 4096;

    /** What it has now: a device can grow. */
    long sizeBytes();

    /** Fills {@code target} from {@code offsetBytes} on. */
    void read(long offsetBytes, MemorySegment target) throws DeviceException;

    /** Writes all of {@code source}; durable only after {@link #flush} if there is a volatile cache. */
    void write(long offsetBytes, MemorySegment source) throws DeviceException;

    /**
     * The same, as long as the node may: that is asked before each command that is sent, also before one that is sent again.
     *
     * @throws DeviceException {@link DeviceException#LATE} when it may not any more
     */
    default void write(long offsetBytes, MemorySegment source, BooleanSupplier may) throws DeviceException {
        if (!may.getAsBoolean()) {
            throw new DeviceException(DeviceException.LATE, "not written");
        }
        write(offsetBytes, source);
    }

    /** Returns when every write that returned before the call is durable. */
    void flush() throws DeviceException;

    /** Whether {@link #flush} has anything to do. */
    boolean hasVolatileCache();

    @Override
    void close();
}
