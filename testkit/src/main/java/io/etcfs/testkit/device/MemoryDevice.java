package io.etcfs.testkit.device;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongConsumer;

/**
 * A shared device in memory with a volatile cache: what was written and not flushed can be lost by {@link #loseUnflushed}. Checks the port's obligations
 * (alignment, bounds) as the kernel does for O_DIRECT.
 */
public final class MemoryDevice implements BlockDevice {
    private static final int EINVAL = 22;

    private final MemorySegment cache;
    private final MemorySegment durable;
    private final Set<Long> unflushed = new HashSet<>();
    private final ReentrantLock lock = new ReentrantLock();
    /** Runs before each read, with its offset: a test makes the device slow. */
    public volatile LongConsumer beforeRead = offset -> {};
    /** Runs before each write takes effect, with its offset: a test keeps it on its way. */
    public volatile LongConsumer beforeWrite = offset -> {};

    /** What it says that it has. */
    private volatile long sizeBytes;

    public MemoryDevice(long sizeBytes) {
        this(sizeBytes, sizeBytes);
    }

    /** @param mostBytes what it can grow to */
    public MemoryDevice(long sizeBytes, long mostBytes) {
        this.sizeBytes = sizeBytes;
        cache = Arena.ofAuto().allocate(mostBytes, BLOCK_BYTES);
        durable = Arena.ofAuto().allocate(mostBytes, BLOCK_BYTES);
    }

    @Override
    public long sizeBytes() {
        return sizeBytes;
    }

    public void grow(long toBytes) {
        sizeBytes = toBytes;
    }

    /** All that it has, as a copy of it would. */
    public byte[] copy() {
        lock.lock();
        try {
            return cache.asSlice(0, sizeBytes).toArray(ValueLayout.JAVA_BYTE);
        } finally {
            lock.unlock();
        }
    }

    /** It is as it was when the copy was made. */
    public void restore(byte[] copy) {
        lock.lock();
        try {
            MemorySegment.copy(copy, 0, cache, ValueLayout.JAVA_BYTE, 0, copy.length);
            durable.copyFrom(cache);
            unflushed.clear();
        } finally {
            lock.unlock();
        }
    }

    private void check(long offsetBytes, MemorySegment buffer) throws DeviceException {
        if (offsetBytes % BLOCK_BYTES != 0 || buffer.byteSize() % BLOCK_BYTES != 0 || buffer.address() % BLOCK_BYTES != 0) {
            throw new DeviceException(EINVAL, "access of " + buffer.byteSize() + " bytes at " + offsetBytes + " is not aligned");
        }
        if (offsetBytes < 0 || offsetBytes + buffer.byteSize() > sizeBytes) {
            throw new DeviceException(EINVAL, "access of " + buffer.byteSize() + " bytes at " + offsetBytes + " is outside of the device");
        }
    }

    @Override
    public void read(long offsetBytes, MemorySegment target) throws DeviceException {
        check(offsetBytes, target);
        beforeRead.accept(offsetBytes);
        lock.lock();
        try {
            target.copyFrom(cache.asSlice(offsetBytes, target.byteSize()));
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void write(long offsetBytes, MemorySegment source) throws DeviceException {
        check(offsetBytes, source);
        beforeWrite.accept(offsetBytes);
        lock.lock();
        try {
            cache.asSlice(offsetBytes, source.byteSize()).copyFrom(source);
            for (long b = 0; b < source.byteSize(); b += BLOCK_BYTES) {
                unflushed.add(offsetBytes + b);
            }
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void flush() {
        lock.lock();
        try {
            for (long b : unflushed) {
                durable.asSlice(b, BLOCK_BYTES).copyFrom(cache.asSlice(b, BLOCK_BYTES));
            }
            unflushed.clear();
        } finally {
            lock.unlock();
        }
    }

    /** The power fails: every block that was not flushed has its old contents again. */
    public void loseUnflushed() {
        lock.lock();
        try {
            for (long b : unflushed) {
                cache.asSlice(b, BLOCK_BYTES).copyFrom(durable.asSlice(b, BLOCK_BYTES));
            }
            unflushed.clear();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean hasVolatileCache() {
        return true;
    }

    @Override
    public void close() {}
}
