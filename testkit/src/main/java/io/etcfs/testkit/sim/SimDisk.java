package io.etcfs.testkit.sim;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.BooleanSupplier;
import java.util.function.LongPredicate;
import java.util.stream.LongStream;

/**
 * The shared device, with a volatile cache. A write takes effect block by block, at any time between its issue and its return, whatever happens to the process;
 * what was not flushed can be lost by sectors. A write that is on its way can be held up for many seconds ({@link #holdUp}), for longer than its process's session
 * or the process itself lives.
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
    /** On their way. */
    private final List<Flight> flights = new ArrayList<>();
    private final Map<String, Await> awaited = new HashMap<>();
    private long writes;

    private record Await(LongPredicate which, Runnable action) {}

    /** A write that was issued and has not returned. */
    private final class Flight {
        private final String process;
        private final List<Landing> left = new ArrayList<>();
        private long endNs;

        Flight(String process, long endNs) {
            this.process = process;
            this.endNs = endNs;
        }
    }

    /** Of one block. */
    private final class Landing {
        private final Flight flight;
        private final long number;
        private final BooleanSupplier counts;
        private final Runnable effect;
        private Scheduler.Timer timer;
        /** What had the block when the session ended under which it was written. */
        private boolean late;
        private String holderThen;

        Landing(Flight flight, long number, BooleanSupplier counts, Runnable effect) {
            this.flight = flight;
            this.number = number;
            this.counts = counts;
            this.effect = effect;
            flight.left.add(this);
        }

        void land(long afterNs) {
            timer = scheduler.after(afterNs, () -> {
                flight.left.remove(this);
                if (flight.left.isEmpty()) {
                    flights.remove(flight);
                }
                if (!counts.getAsBoolean()) {
                    return;
                }
                if (late) {
                    lateLandings.landed(flight.process, number, holderThen);
                }
                effect.run();
            });
        }
    }

    /** Who looks at writes that take effect after the session is gone under which they were issued. */
    interface LateLandings {
        /** The file that has the block, and as which of its blocks, or null. */
        String holder(long block);

        void landed(String process, long block, String holderWhenSessionEnded);
    }

    private LateLandings lateLandings;

    void lateLandings(LateLandings watch) {
        lateLandings = watch;
    }

    /** Whatever the process has on its way takes effect, and returns, at any time within so long. */
    void holdUp(String process, long withinNs) {
        for (Flight f : flights) {
            if (f.process.equals(process)) {
                for (Landing l : f.left) {
                    l.timer.cancel();
                    long after = random.nextLong(withinNs);
                    l.land(after);
                    f.endNs = Math.max(f.endNs, scheduler.nowNs() + after);
                }
            }
        }
    }

    /** Runs the action when the process next writes such a block, with the write on its way. */
    void onWrite(String process, LongPredicate which, Runnable action) {
        awaited.put(process, new Await(which, action));
    }

    /** Nothing that a process of the machine has written is on its way any more. */
    boolean quiet(String machine) {
        return flights.stream().noneMatch(f -> f.process.startsWith(machine + "."));
    }

    /** What the process still has on its way is late. */
    void sessionEnded(String process) {
        for (Flight f : flights) {
            if (f.process.equals(process)) {
                for (Landing l : f.left) {
                    l.late = true;
                    l.holderThen = lateLandings.holder(l.number);
                }
            }
        }
    }

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
        flights.forEach(f -> f.left.forEach(l -> l.timer.cancel()));
        flights.clear();
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

    /** The device as one process has it attached. {@code powered}: what it writes gets there, which ends with a loss of power; {@code severed}: what it writes is refused. */
    BlockDevice attach(String process, BooleanSupplier powered, BooleanSupplier severed) {
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
                requireNotSevered();
                Flight flight = new Flight(process, scheduler.nowNs() + takes);
                flights.add(flight);
                for (long b = 0; b < source.byteSize(); b += BLOCK_BYTES) {
                    byte[] bytes = source.asSlice(b, BLOCK_BYTES).toArray(ValueLayout.JAVA_BYTE);
                    long number = (offset + b) / BLOCK_BYTES;
                    new Landing(flight, number, () -> powered.getAsBoolean() && !severed.getAsBoolean(), () -> cache.put(number, new Content(++writes, process, bytes))).land(random.nextLong(takes));
                }
                Await await = awaited.get(process);
                if (await != null && LongStream.range(offset / BLOCK_BYTES, (offset + source.byteSize()) / BLOCK_BYTES).anyMatch(await.which)) {
                    awaited.remove(process);
                    await.action.run();
                }
                while (scheduler.nowNs() < flight.endNs) {
                    scheduler.parkUntil(flight.endNs);
                }
                requireNotSevered();
            }

            private void requireNotSevered() throws DeviceException {
                if (severed.getAsBoolean()) {
                    throw new DeviceException(DeviceException.REFUSED, "reservation conflict");
                }
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
