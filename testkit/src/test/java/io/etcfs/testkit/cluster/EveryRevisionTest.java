package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fs.ClusterNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
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
        for (String top : List.of("/a", "/b", "/c")) {
            new TestClient(n1).mkdir(top);
        }
        runAll(List.of(new Workload(n1, new Random(0)), new Workload(n2, new Random(1)), new Workload(n1, new Random(2)), new Workload(n2, new Random(3))), 1000);
        assertTrue(cluster.history.revisions() > 200, () -> "only " + cluster.history.revisions() + " revisions");
    }
}
