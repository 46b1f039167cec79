package io.etcfs.testkit.cluster;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;

/** One node's way to the shared device, which takes no writes of it any more once a test says so. */
final class RefusingDevice extends ForwardingDevice {
    private final AtomicBoolean refuses;

    RefusingDevice(BlockDevice device, AtomicBoolean refuses) {
        super(device);
        this.refuses = refuses;
    }

    @Override
    public void write(long offsetBytes, MemorySegment source) throws DeviceException {
        if (refuses.get()) {
            throw new DeviceException(DeviceException.REFUSED, "reservation conflict");
        }
        super.write(offsetBytes, source);
    }
}
