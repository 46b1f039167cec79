package io.etcfs.core.fence;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.session.NodeStoppedError;
import java.lang.foreign.MemorySegment;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/**
 * The device as a node has it that others can cut off. It is read and written only while the node may: others can take what it has soon after that, and wait for no write of a node
 * that is away. Once the device refuses the node, that has to stop.
 */
public final class FencedDevice implements BlockDevice {
    private final BlockDevice device;
    private final BooleanSupplier may;
    private final Consumer<String> refused;

    /**
     * @param may     whether the node's session is trusted; asked by any thread
     * @param refused told why, before the access ends with a {@link NodeStoppedError}
     */
    public FencedDevice(BlockDevice device, BooleanSupplier may, Consumer<String> refused) {
        this.device = device;
        this.may = () -> may.getAsBoolean() || Fault.ACCESS_PAST_DEADLINE.on();
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
        if (!may.getAsBoolean()) {
            throw new DeviceException(DeviceException.LATE, "not read");
        }
        access(() -> device.read(offsetBytes, target));
    }

    @Override
    public void write(long offsetBytes, MemorySegment source) throws DeviceException {
        access(() -> device.write(offsetBytes, source, may));
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
