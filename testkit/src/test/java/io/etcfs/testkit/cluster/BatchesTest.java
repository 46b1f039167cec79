package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.record.Keys;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Txn;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What batches hold, and in which order their steps are made. */
@Timeout(60)
class BatchesTest {
    private static final int FILES = 400;
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

    /** Who was served by a commit may be back soon: who waits for the next one waits a little for him. Where the machine lets time pass meanwhile, it is tried again. */
    @RepeatedTest(3)
    void anFsyncWaitsForThoseWhoWereServedBefore() throws Exception {
        for (int attempt = 0; attempt < 20; attempt++) {
            AtomicLong nextSentNs = new AtomicLong();
            CountDownLatch sent = new CountDownLatch(1);
            CountDownLatch answer = new CountDownLatch(1);
            way.hook = txn -> {
                if (isBatch(txn) && sent.getCount() == 0) {
                    nextSentNs.compareAndSet(0, System.nanoTime());
                } else if (isBatch(txn)) {
                    sent.countDown();
                    try {
                        answer.await();
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                    }
                }
                return null;
            };
            Thread first = syncing("/d/one" + attempt);
            assertTrue(sent.await(10, TimeUnit.SECONDS));
            awaitWaiting(first);
            // So long a transaction that the next batch would wait as long as it may.
            Thread.sleep(100);
            long secondNs = System.nanoTime();
            Thread second = syncing("/d/two" + attempt);
            awaitWaiting(second);
            long answeredNs = System.nanoTime();
            answer.countDown();
            first.join();
            second.join();
            // A batch of some age waits for nobody.
            if (answeredNs - secondNs < 5_000_000) {
                assertTrue(nextSentNs.get() - answeredNs >= 1_500_000, "the next transaction left after " + (nextSentNs.get() - answeredNs) + " ns");
                return;
            }
            // Nor is anybody waited for until as many commits later as a group that did not come together costs.
            way.hook = txn -> null;
            for (int i = 0; i < 20; i++) {
                syncing("/d/alone" + attempt + "-" + i).join();
            }
        }
        Assumptions.abort("this machine is too slow to tell");
    }

    private Thread syncing(String path) {
        TestClient client = new TestClient(n1);
        return Thread.ofVirtual().start(() -> {
            try {
                client.write(path, 0, new byte[4096], 0);
                client.fsync(path);
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        });
    }

    /** Until it waits for a batch. */
    private static void awaitWaiting(Thread thread) {
        long until = System.nanoTime() + 10_000_000_000L;
        while (thread.getState() != Thread.State.TIMED_WAITING && System.nanoTime() < until) {
            Thread.onSpinWait();
        }
        assertEquals(Thread.State.TIMED_WAITING, thread.getState());
    }
}
