package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.record.Keys;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The records agree at every revision that a busy cluster makes, as docs/internals/check.md says. */
@Timeout(120)
class EveryRevisionTest {
    private final TestCluster cluster = new TestCluster(256L << 20);

    @AfterEach
    void stop() {
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private static void runAll(List<Workload> loads, int steps) throws Exception {
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            List<Future<?>> running = new ArrayList<>();
            loads.forEach(load -> running.add(threads.submit(() -> load.run(steps))));
            for (Future<?> one : running) {
                one.get();
            }
        }
    }

    @Test
    void twoBusyNodes() throws Exception {
        ClusterNode n1 = cluster.start("n1");
        ClusterNode n2 = cluster.start("n2");
        makeTop(n1);
        runAll(List.of(load(n1, 0), load(n2, 1), load(n1, 2), load(n2, 3)), 1000);
        // Nothing crashed: what a crash leaves is not there either.
        assertNull(cluster.history.firstFound(Set.of()));
        assertTrue(cluster.history.revisions() > 200, () -> "only " + cluster.history.revisions() + " revisions");
    }

    private Workload load(ClusterNode node, int seed) {
        return new Workload(node, new Random(seed));
    }

    private void makeTop(ClusterNode node) throws Exception {
        for (String top : List.of("/a", "/b", "/c")) {
            new TestClient(node).mkdir(top);
        }
    }

    /** Transactions that are lost, carried out without an answer, or late, also after their node has given them up. */
    @Test
    void whileTransactionsAreLostAndLate() throws Exception {
        HookedStore[] ways = {new HookedStore(cluster.store), new HookedStore(cluster.store)};
        ClusterNode n1 = cluster.start("n1", ways[0]);
        ClusterNode n2 = cluster.start("n2", ways[1]);
        makeTop(n1);
        for (HookedStore way : ways) {
            way.hook = faults(new Random(way == ways[0] ? 5 : 6));
        }
        runAll(List.of(load(n1, 10), load(n2, 11)), 150);
        ways[0].hook = txn -> null;
        ways[1].hook = txn -> null;
    }

    private HookedStore.Hook faults(Random random) {
        return txn -> {
            int fate;
            synchronized (random) {
                fate = random.nextInt(24);
            }
            if (fate > 2) {
                return null;
            }
            if (fate == 1) {
                cluster.store.commit(txn, 1_000_000_000L);
            } else if (fate == 2) {
                cluster.tasks.start("late", () -> {
                    try {
                        Thread.sleep(60);
                        cluster.store.commit(txn, 1_000_000_000L);
                    } catch (InterruptedException | StoreRejectedException e) {
                        // Nobody hears of it.
                    }
                });
            }
            return new Outcome.Unknown("no answer");
        };
    }

    /** What is in etcd when a node is gone in the middle of its work is in order, and so is what others and its next process make of it. */
    @Test
    void aroundACrash() throws Exception {
        HookedStore way = new HookedStore(cluster.store);
        ClusterNode n1 = cluster.start("n1", way);
        ClusterNode n2 = cluster.start("n2");
        makeTop(n2);
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            threads.submit(() -> load(n1, 20).run(10_000));
            Future<?> other = threads.submit(() -> load(n2, 21).run(200));
            Thread.sleep(700);
            way.cut = true;
            Keys keys = new Keys(TestCluster.NAME);
            cluster.store.revokeLease(cluster.store.range(keys.session("n1"), null, 0, false, 0, 1_000_000_000L).only().leaseId(), 1_000_000_000L);
            other.get();
            ClusterNode again = cluster.start("n1");
            runAll(List.of(load(n2, 22), load(again, 23)), 200);
            threads.shutdownNow();
        }
    }
}
