package io.etcfs.testkit.cluster;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;

/** One node's way to the shared device, which takes no writes of it any more once a test says so. */
final class RefusingDevice implements BlockDevice {
    private final BlockDevice device;
    private final AtomicBoolean refuses;

    RefusingDevice(BlockDevice device, AtomicBoolean refuses) {
        this.device = device;
        this.refuses = refuses;
    }

    @Override
    public long sizeBytes() {
        return device.sizeBytes();
    }

    @Override
    public void read(long offsetBytes, MemorySegment target) throws DeviceException {
        device.read(offsetBytes, target);
    }

    @Override
    public void write(long offsetBytes, MemorySegment source) throws DeviceException {
        if (refuses.get()) {
            throw new DeviceException(DeviceException.REFUSED, "reservation conflict");
        }
        device.write(offsetBytes, source);
    }

    @Override
    public void flush() throws DeviceException {
        device.flush();
    }

    @Override
    public boolean hasVolatileCache() {
        return device.hasVolatileCache();
    }

    @Override
    public void close() {
        device.close();
    }
}
