package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.FsException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
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
    }

    private void assertNothingFound() throws Exception {
        History.Found found = cluster.history.firstFound();
        assertNull(found, () -> "revision " + found.revision() + " of " + cluster.history.revisions() + ": " + found.findings());
        assertEquals(List.of(), cluster.stopped);
    }

    @Test
    void twoBusyNodes() throws Exception {
        ClusterNode n1 = cluster.start("n1");
        ClusterNode n2 = cluster.start("n2");
        for (String top : List.of("/a", "/b", "/c")) {
            new TestClient(n1).mkdir(top);
        }
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 4; t++) {
            Workload load = new Workload(t % 2 == 0 ? n1 : n2, new Random(t));
            threads.add(Thread.ofVirtual().start(() -> load.run(400)));
        }
        for (Thread t : threads) {
            t.join();
        }
        n2.leave(10_000_000_000L);
        assertNothingFound();
        assertTrue(cluster.history.revisions() > 300, () -> "only " + cluster.history.revisions() + " revisions");
    }
}
