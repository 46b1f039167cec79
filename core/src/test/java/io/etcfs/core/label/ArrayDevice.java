package io.etcfs.core.label;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import java.lang.foreign.MemorySegment;

/** A device in memory that holds callers to the port's alignment. */
final class ArrayDevice implements BlockDevice {
    final byte[] bytes;
    /** Swallows writes, as a device with a broken cache would. */
    boolean losesWrites;

    ArrayDevice(int sizeBytes) {
        bytes = new byte[sizeBytes];
    }

    @Override
    public long sizeBytes() {
        return bytes.length;
    }

    @Override
    public void read(long offsetBytes, MemorySegment target) throws DeviceException {
        requireAligned(offsetBytes, target);
        MemorySegment.copy(MemorySegment.ofArray(bytes), offsetBytes, target, 0, target.byteSize());
    }

    @Override
    public void write(long offsetBytes, MemorySegment source) throws DeviceException {
        requireAligned(offsetBytes, source);
        if (!losesWrites) {
            MemorySegment.copy(source, 0, MemorySegment.ofArray(bytes), offsetBytes, source.byteSize());
        }
    }

    private void requireAligned(long offsetBytes, MemorySegment buffer) throws DeviceException {
        if (offsetBytes % BLOCK_BYTES != 0 || buffer.byteSize() % BLOCK_BYTES != 0 || buffer.address() % BLOCK_BYTES != 0
                || offsetBytes + buffer.byteSize() > bytes.length) {
            throw new DeviceException(22, "unaligned or out of bounds");
        }
    }

    @Override
    public void flush() {}

    @Override
    public boolean hasVolatileCache() {
        return true;
    }

    @Override
    public void close() {}
}
