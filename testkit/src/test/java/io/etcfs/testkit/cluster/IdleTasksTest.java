package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.clock.Clock;
import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.Operations;
import io.etcfs.core.record.proto.Membership;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A node's background tasks that have nothing to do are left asleep by operations that go through: waking one costs more than the operation. */
@Timeout(60)
class IdleTasksTest {
    private static final int O_RDWR = 2;
    private static final int O_DIRECT = 040000;
    private static final int BLOCK = 4096;
    private static final int READS = 20;

    private final AtomicInteger wakes = new AtomicInteger();

    private Clock counting(Clock clock) {
        return new Clock() {
            @Override
            public long nowNs() {
                return clock.nowNs();
            }

            @Override
            public long realtimeNs() {
                return clock.realtimeNs();
            }

            @Override
            public void await(Lock lock, Condition condition, long untilNs) throws InterruptedException {
                clock.await(lock, condition, untilNs);
                if (clock.nowNs() < untilNs) {
                    wakes.incrementAndGet();
                }
            }

            @Override
            public void sleep(long durationNs) throws InterruptedException {
                clock.sleep(durationNs);
            }
        };
    }

    private static Call call() {
        return new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
    }

    @Test
    void readsWakeNobodyWhoWaitsForSomethingElse() throws Exception {
        TestCluster cluster = new TestCluster(64L << 20);
        ClusterNode node = new ClusterNode(new ClusterNode.Ports(cluster.store, cluster.device, counting(cluster.clock), cluster.tasks, new Random(1), cluster.fencer),
                new ClusterNode.Settings(TestCluster.NAME, "n1", "n1-1", Membership.newBuilder().setHost("n1").build(), 10_000_000_000L, 128, 64L << 20), cluster.superblock, cluster.superblockCreated);
        node.start();
        Operations.Created file = node.create(call(), 1, "f".getBytes(StandardCharsets.UTF_8), 0644, 0, O_RDWR | O_DIRECT);
        long ino = file.entry().ino();
        long handle = file.opened().handle();
        int woken;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment block = arena.allocate(BLOCK, BLOCK);
            node.write(call(), ino, handle, 0, block, O_RDWR | O_DIRECT, false, false);
            node.fsync(call(), ino, handle, false);
            Thread.sleep(200);
            int before = wakes.get();
            for (int i = 0; i < READS; i++) {
                node.read(call(), ino, handle, 0, BLOCK, O_RDWR | O_DIRECT | Operations.AROUND_CACHE, block);
                // Long enough for whoever it woke to wait again.
                Thread.sleep(10);
            }
            woken = wakes.get() - before;
        }
        node.release(call(), ino, handle);
        node.forget(ino, 1);
        node.leave(2_000_000_000L);
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
        // A beat of the session may come in between.
        assertTrue(woken < READS / 2, woken + " tasks woken by " + READS + " reads");
    }
}
