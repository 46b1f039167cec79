package io.etcfs.testkit.sim;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.Supplier;

/**
 * The shared device, with a volatile cache. A write takes effect block by block, at any time between its issue and its return, whatever happens to the process;
 * what was not flushed can be lost by sectors.
 */
final class SimDisk {
    private static final int SECTOR = 512;
    private static final int EINVAL = 22;
    private static final long MS = 1_000_000L;

    private final Scheduler scheduler;
    private final Weather weather;
    private final Random random;
    private final long sizeBytes;
    private final TreeMap<Long, Content> cache = new TreeMap<>();
    private final TreeMap<Long, Content> durable = new TreeMap<>();
    private long writes;

    /** Of a block; the larger number is the newer. */
    private record Content(long number, String writer, byte[] bytes) {
        static final Content NOTHING = new Content(0, "", new byte[BlockDevice.BLOCK_BYTES]);
    }

    SimDisk(Scheduler scheduler, Weather weather, Random random, long sizeBytes) {
        this.scheduler = scheduler;
        this.weather = weather;
        this.random = random;
        this.sizeBytes = sizeBytes;
    }

    byte[] block(long number) {
        Content c = cache.get(number);
        return c != null ? c.bytes : durableBlock(number);
    }

    /** Without the volatile cache: what is left if the power fails now, at worst. */
    byte[] durableBlock(long number) {
        return durable.getOrDefault(number, Content.NOTHING).bytes;
    }

    /** Each sector that was not flushed is kept or lost. */
    void losePower() {
        cache.forEach((number, content) -> {
            byte[] after = durable.getOrDefault(number, Content.NOTHING).bytes.clone();
            for (int at = 0; at < after.length; at += SECTOR) {
                if (random.nextBoolean()) {
                    System.arraycopy(content.bytes, at, after, at, SECTOR);
                }
            }
            durable.put(number, new Content(content.number, content.writer, after));
        });
        cache.clear();
    }

    private long accessNs() {
        long ns = 20_000L + random.nextInt(100_000);
        return weather.has(Weather.Kind.SLOW_DEVICE) && random.nextInt(4) == 0 ? ns + random.nextLong(100 * MS) : ns;
    }

    /** How many writes of a block have taken effect so far. */
    long writes() {
        return writes;
    }

    /** Whether something that the process wrote, up to that write, is not durable. */
    boolean unflushed(String process, long upToWrite) {
        return cache.values().stream().anyMatch(c -> c.writer.equals(process) && c.number <= upToWrite);
    }

    /** The device as one process has it attached. {@code power}: changes when everything that is on its way is lost. */
    BlockDevice attach(String process, Supplier<Integer> power) {
        return new BlockDevice() {
            @Override
            public long sizeBytes() {
                return sizeBytes;
            }

            private void check(long offset, MemorySegment buffer) throws DeviceException {
                if ((offset | buffer.byteSize() | buffer.address()) % BLOCK_BYTES != 0 || offset < 0 || offset + buffer.byteSize() > sizeBytes) {
                    throw new DeviceException(EINVAL, "access of " + buffer.byteSize() + " bytes at " + offset);
                }
            }

            @Override
            public void read(long offset, MemorySegment target) throws DeviceException {
                check(offset, target);
                scheduler.sleep(accessNs());
                for (long b = 0; b < target.byteSize(); b += BLOCK_BYTES) {
                    MemorySegment.copy(block((offset + b) / BLOCK_BYTES), 0, target, ValueLayout.JAVA_BYTE, b, BLOCK_BYTES);
                }
            }

            @Override
            public void write(long offset, MemorySegment source) throws DeviceException {
                check(offset, source);
                long takes = accessNs();
                int then = power.get();
                for (long b = 0; b < source.byteSize(); b += BLOCK_BYTES) {
                    byte[] bytes = source.asSlice(b, BLOCK_BYTES).toArray(ValueLayout.JAVA_BYTE);
                    long number = (offset + b) / BLOCK_BYTES;
                    scheduler.after(random.nextLong(takes), () -> {
                        if (power.get() == then) {
                            cache.put(number, new Content(++writes, process, bytes));
                        }
                    });
                }
                scheduler.sleep(takes);
            }

            @Override
            public void flush() {
                TreeMap<Long, Content> written = new TreeMap<>(cache);
                scheduler.sleep(accessNs());
                written.forEach((number, content) -> {
                    durable.merge(number, content, (a, b) -> a.number > b.number ? a : b);
                    cache.remove(number, content);
                });
            }

            @Override
            public boolean hasVolatileCache() {
                return true;
            }

            @Override
            public void close() {}
        };
    }
}
