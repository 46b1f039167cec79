package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.device.DeviceException;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.fs.ClusterNode;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.api.Timeout;

/** A node that can't renew its session accesses the device no more, in the middle of an operation either, until it has one again. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class SessionDeadlineTest {
    private static final int BLOCK = 4096;
    private static final int O_DIRECT = 040000;
    /** The session is over for others, too. */
    private static final long OVER_MS = 3_000;
    private static final byte[] LETTERS = {'a', 'b', 'c'};

    private TestCluster cluster;
    private HookedStore way;
    private TestClient by;
    /** What n1 does to the device while it is cut off. */
    private final List<String> late = new CopyOnWriteArrayList<>();
    /** Accesses until it is; 0: it is not going to be, or is. */
    private final AtomicInteger until = new AtomicInteger();
    private final CountDownLatch over = new CountDownLatch(1);
    private final AtomicInteger accesses = new AtomicInteger();

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(256L << 20);
        way = new HookedStore(cluster.store);
        ClusterNode n1 = cluster.start("n1", way, new ForwardingDevice(cluster.device) {
            @Override
            public void read(long offsetBytes, MemorySegment target) throws DeviceException {
                begins("read", offsetBytes);
                super.read(offsetBytes, target);
                ended();
            }

            @Override
            public void write(long offsetBytes, MemorySegment source) throws DeviceException {
                begins("write", offsetBytes);
                super.write(offsetBytes, source);
                ended();
            }
        }, 64L << 20);
        by = new TestClient(n1);
    }

    @AfterEach
    void stop() {
        Fault.plant(Set.of());
        way.cut = false;
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private void begins(String what, long offset) {
        accesses.incrementAndGet();
        if (way.cut) {
            late.add(what + " at " + offset);
        }
    }

    /** The access that is the last one before the cut returns when the session is over. */
    private void ended() {
        if (until.get() > 0 && until.decrementAndGet() == 0) {
            way.cut = true;
            try {
                Thread.sleep(OVER_MS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            over.countDown();
        }
    }

    private static byte[] block(int c) {
        byte[] b = new byte[BLOCK];
        Arrays.fill(b, (byte) c);
        return b;
    }

    private static byte[] blocks(int... letters) {
        byte[] all = new byte[letters.length * BLOCK];
        for (int k = 0; k < letters.length; k++) {
            Arrays.fill(all, k * BLOCK, (k + 1) * BLOCK, (byte) letters[k]);
        }
        return all;
    }

    /** Three blocks that are not adjacent on the device. */
    private void scattered() throws Exception {
        for (int k = 0; k < 3; k++) {
            by.write("/f", (long) k * BLOCK, block(LETTERS[k]), O_DIRECT);
            by.fsync("/f");
            by.write("/between", (long) k * BLOCK, block('x'), O_DIRECT);
            by.fsync("/between");
        }
    }

    private interface Operation {
        void run() throws Exception;
    }

    /** Each kind of operation that accesses the device more than once. */
    enum Kind {
        WRITE_IN_PLACE, WRITE_THAT_READS_FIRST, BATCH, READ, COPY
    }

    private byte[] run(Kind kind) throws Exception {
        scattered();
        return switch (kind) {
            case WRITE_IN_PLACE -> {
                cutDuring(() -> by.write("/f", 0, blocks('d', 'e', 'f'), O_DIRECT));
                yield blocks('d', 'e', 'f');
            }
            case WRITE_THAT_READS_FIRST -> {
                // What is whole goes to the device at once, and the rest of the last block is fetched before.
                cutDuring(() -> by.write("/f", 0, Arrays.copyOf(blocks('h', 'h', 'h'), 2 * BLOCK + 100), O_DIRECT));
                byte[] expected = blocks('h', 'h', 'c');
                Arrays.fill(expected, 2 * BLOCK, 2 * BLOCK + 100, (byte) 'h');
                yield expected;
            }
            case BATCH -> {
                // One operation, so that all its blocks are in one batch.
                cutDuring(() -> {
                    by.write("/f", 0, blocks('i', 'j', 'k'), 0);
                    by.fsync("/f");
                });
                yield blocks('i', 'j', 'k');
            }
            case READ -> {
                cutDuring(() -> assertArrayEquals(blocks('a', 'b', 'c'), by.read("/f")));
                yield blocks('a', 'b', 'c');
            }
            case COPY -> {
                copy();
                yield blocks('a', 'b', 'c');
            }
        };
    }

    /** Another node had the file and vanished: n1 has to copy what it wrote before it can show it. */
    private void copy() throws Exception {
        HookedStore gone = new HookedStore(cluster.store);
        TestClient other = new TestClient(cluster.start("n2", gone));
        for (int k = 0; k < 3; k++) {
            other.write("/f", (long) k * BLOCK, block(LETTERS[k]), O_DIRECT);
            other.fsync("/f");
        }
        gone.cut = true;
        try {
            Thread.sleep(OVER_MS);
            cutDuring(() -> assertArrayEquals(blocks('a', 'b', 'c'), by.read("/f")));
        } finally {
            gone.cut = false;
        }
    }

    private void cutDuring(Operation operation) throws Exception {
        accesses.set(0);
        until.set(1);
        CompletableFuture<Void> done = CompletableFuture.runAsync(() -> {
            try {
                operation.run();
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        }, r -> Thread.ofVirtual().start(r));
        assertTrue(over.await(30, TimeUnit.SECONDS));
        Thread.sleep(500);
        way.cut = false;
        done.get();
        assertTrue(accesses.get() > 1, "only one access");
    }

    @ParameterizedTest
    @EnumSource
    void nothingIsAccessedPastTheDeadline(Kind kind) throws Exception {
        byte[] expected = run(kind);
        assertEquals(List.of(), late);
        assertArrayEquals(expected, by.read("/f"));
    }

    @ParameterizedTest
    @EnumSource
    void accessesPastItAreSeen(Kind kind) throws Exception {
        Fault.plant(Set.of(Fault.ACCESS_PAST_DEADLINE));
        run(kind);
        assertFalse(late.isEmpty());
    }
}
