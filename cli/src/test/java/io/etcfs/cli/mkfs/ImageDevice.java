package io.etcfs.cli.mkfs;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** A device in a sparse file, which can fail. */
final class ImageDevice implements BlockDevice {
    interface Step {
        void run() throws Exception;
    }

    private final FileChannel channel;
    private final long sizeBytes;
    private Step beforeWrite = () -> { };
    private boolean failsWrites;
    private boolean dirty;
    private boolean everFlushed;

    ImageDevice(Path path, long sizeBytes) throws IOException {
        this.channel = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE);
        this.sizeBytes = sizeBytes;
        if (channel.size() < sizeBytes) {
            channel.write(ByteBuffer.allocate(1), sizeBytes - 1);
        }
    }

    void beforeWrite(Step step) {
        beforeWrite = step;
    }

    void failWrites() {
        failsWrites = true;
    }

    void failWrites(Step before) {
        failsWrites = true;
        beforeWrite = before;
    }

    boolean flushed() {
        return everFlushed && !dirty;
    }

    void wipe() throws IOException {
        channel.write(ByteBuffer.allocate(BLOCK_BYTES), 0);
    }

    @Override
    public long sizeBytes() {
        return sizeBytes;
    }

    @Override
    public void read(long offsetBytes, MemorySegment target) throws DeviceException {
        try {
            ByteBuffer buffer = target.asByteBuffer();
            while (buffer.hasRemaining()) {
                if (channel.read(buffer, offsetBytes + buffer.position()) < 0) {
                    throw new DeviceException(5, "behind the end");
                }
            }
        } catch (IOException e) {
            throw new DeviceException(5, e.getMessage());
        }
    }

    @Override
    public void write(long offsetBytes, MemorySegment source) throws DeviceException {
        try {
            beforeWrite.run();
            if (failsWrites) {
                throw new DeviceException(5, "write at " + offsetBytes + ": EIO");
            }
            channel.write(source.asByteBuffer(), offsetBytes);
            dirty = true;
        } catch (DeviceException e) {
            throw e;
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void flush() {
        dirty = false;
        everFlushed = true;
    }

    @Override
    public boolean hasVolatileCache() {
        return true;
    }

    @Override
    public void close() {
        try {
            channel.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
