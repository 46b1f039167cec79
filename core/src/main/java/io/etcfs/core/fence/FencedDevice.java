package io.etcfs.core.fence;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.session.NodeStoppedError;
import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;

/** The device as a node has it that others can cut off: once it refuses the node, that has to stop. */
public final class FencedDevice implements BlockDevice {
    private final BlockDevice device;
    private final Consumer<String> refused;

    /** @param refused told why, before the access ends with a {@link NodeStoppedError} */
    public FencedDevice(BlockDevice device, Consumer<String> refused) {
        this.device = device;
        this.refused = refused;
    }

    private interface Access {
        void run() throws DeviceException;
    }

    private void access(Access access) throws DeviceException {
        try {
            access.run();
        } catch (DeviceException e) {
            if (e.errno() == DeviceException.REFUSED) {
                String reason = "this node was fenced: " + e.getMessage();
                refused.accept(reason);
                throw new NodeStoppedError(reason);
            }
            throw e;
        }
    }

    @Override
    public void read(long offsetBytes, MemorySegment target) throws DeviceException {
        access(() -> device.read(offsetBytes, target));
    }

    @Override
    public void write(long offsetBytes, MemorySegment source) throws DeviceException {
        access(() -> device.write(offsetBytes, source));
    }

    @Override
    public void flush() throws DeviceException {
        access(device::flush);
    }

    @Override
    public long sizeBytes() {
        return device.sizeBytes();
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
