package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.record.Keys;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Txn;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What batches hold, and in which order their steps are made. */
@Timeout(60)
class BatchesTest {
    private static final int FILES = 400;
    private static final int SYNCED = 200;
    private static final int IN_FLIGHT_MAX = 120;

    private final Keys keys = new Keys(TestCluster.NAME);
    private TestCluster cluster;
    private HookedStore way;
    private ClusterNode n1;
    private TestClient a;

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(256L << 20);
        way = new HookedStore(cluster.store);
        n1 = cluster.start("n1", way);
        a = new TestClient(n1);
        a.mkdir("/d");
        a.write("/d/first", 0, new byte[4096], 0);
        a.fsync("/d/first");
    }

    @AfterEach
    void stop() {
        way.hook = txn -> null;
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private boolean isBatch(Txn txn) {
        return txn.success().stream().anyMatch(op -> op instanceof Op.Put put && put.key().equals(keys.batch("n1")));
    }

    @Test
    void dataOfTheNextBatchIsWrittenWhileATransactionIsOnItsWay() throws Exception {
        CountDownLatch sent = new CountDownLatch(1);
        CountDownLatch answer = new CountDownLatch(1);
        AtomicInteger onTheirWay = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        way.hook = txn -> {
            if (isBatch(txn)) {
                most.accumulateAndGet(onTheirWay.incrementAndGet(), Math::max);
                sent.countDown();
                try {
                    answer.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
                onTheirWay.decrementAndGet();
            }
            return null;
        };
        a.write("/d/held", 0, new byte[4096], 0);
        assertTrue(sent.await(10, TimeUnit.SECONDS));
        long committed = n1.status().batchesCommitted();
        long written = n1.status().blocksWritten();
        for (int i = 0; i < IN_FLIGHT_MAX; i++) {
            a.write("/d/next" + i, 0, new byte[4096], 0);
        }
        long until = System.nanoTime() + 10_000_000_000L;
        while (n1.status().blocksWritten() == written && System.nanoTime() < until) {
            Thread.sleep(1);
        }
        assertTrue(n1.status().blocksWritten() > written, "the data waits for the transaction");
        assertEquals(committed, n1.status().batchesCommitted());
        answer.countDown();
        a.fsync("/d/held");
        assertEquals(1, most.get(), "transactions on their way at once");
    }

    @Test
    void batchesAreFilledWithSmallFiles() throws Exception {
        AtomicInteger batches = new AtomicInteger();
        AtomicInteger operations = new AtomicInteger();
        way.hook = txn -> {
            if (isBatch(txn)) {
                batches.incrementAndGet();
                operations.addAndGet(txn.success().size());
                try {
                    // So that batches are closed because they are full.
                    Thread.sleep(100);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
            return null;
        };
        for (int i = 0; i < FILES; i++) {
            a.write("/d/f" + i, 0, new byte[2048], 0);
        }
        a.fsync("/d/first");
        assertTrue(batches.get() <= 3 + FILES / 45, FILES + " files written in " + batches + " batches of " + operations + " operations");
        batches.set(0);
        operations.set(0);
        for (int i = 0; i < FILES; i++) {
            a.unlink("/d/f" + i);
        }
        a.fsync("/d/first");
        assertTrue(batches.get() <= 3 + FILES / 45, FILES + " files removed in " + batches + " batches of " + operations + " operations");
    }

    /** Who comes back soon after a commit goes along with those who wait for the next one. */
    @Test
    void threadsThatSyncSmallFilesShareATransaction() throws Exception {
        AtomicInteger batches = new AtomicInteger();
        way.hook = txn -> {
            if (isBatch(txn)) {
                batches.incrementAndGet();
                try {
                    Thread.sleep(5);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
            return null;
        };
        int best = Integer.MAX_VALUE;
        // Threads that do not get a CPU in time are not waited for.
        for (int round = 0; round < 5 && best > SYNCED * 35 / 100; round++) {
            batches.set(0);
            List<Thread> threads = new ArrayList<>();
            for (int t = 0; t < 4; t++) {
                String prefix = "/d/synced" + round + "-" + t + "-";
                TestClient client = new TestClient(n1);
                threads.add(Thread.ofVirtual().start(() -> {
                    for (int i = 0; i < SYNCED / 4; i++) {
                        try {
                            client.write(prefix + i, 0, new byte[4096], 0);
                            client.fsync(prefix + i);
                        } catch (Exception e) {
                            throw new AssertionError(e);
                        }
                    }
                }));
            }
            for (Thread thread : threads) {
                thread.join();
            }
            best = Math.min(best, batches.get());
        }
        assertTrue(best <= SYNCED * 35 / 100, SYNCED + " files, each with an fsync, in " + best + " batches");
    }
}
