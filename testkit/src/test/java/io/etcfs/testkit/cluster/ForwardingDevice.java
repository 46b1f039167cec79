package io.etcfs.testkit.cluster;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import java.lang.foreign.MemorySegment;

/** The shared device as one node has it attached: tests change what they want to be different. Closing it leaves the device to the others. */
class ForwardingDevice implements BlockDevice {
    private final BlockDevice device;

    ForwardingDevice(BlockDevice device) {
        this.device = device;
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
    public void close() {}
}
