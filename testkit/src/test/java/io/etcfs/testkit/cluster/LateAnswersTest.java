package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.kernel.KernelCache;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Answers that are written long after they were made: the daemon was stopped meanwhile, or got no processor. */
@Timeout(60)
class LateAnswersTest {
    private static final long SECOND_NS = 1_000_000_000L;
    /** Of the kernel, which takes whatever it is told. */
    private static final KernelCache KERNEL = new ForgettingKernel();

    private static Call call() {
        return new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
    }

    @Test
    void anAnswerThatIsWrittenLateGrantsNothing() throws Exception {
        TestCluster cluster = new TestCluster(256L << 20);
        try (cluster) {
            ClusterNode n1 = cluster.start("n1");
            TestClient other = new TestClient(cluster.start("n2"));
            // Before there is a kernel that could be granted something.
            new TestClient(n1).write("/f", 0, new byte[10], 0);
            n1.attachKernel(KERNEL);

            Call soon = call();
            long ino = n1.lookup(soon, 1, "f".getBytes()).ino();
            assertTrue(soon.hasGrants());
            assertTrue(n1.grantsStand(soon));
            n1.replied(soon);

            Call late = call();
            assertTrue(n1.getattr(late, ino, -1).validNs() > 0);
            Thread.sleep(40);
            assertFalse(n1.grantsStand(late), "what was reckoned 40 ms ago is granted");
            assertFalse(n1.grantsStand(late), "a grant that was taken back is there again");
            // Until it is written it holds a recall up, and no longer: it has granted nothing that would have to run out.
            Thread taker = Thread.ofVirtual().start(() -> {
                try {
                    other.write("/f", 0, new byte[1], 0);
                } catch (io.etcfs.core.fs.FsException e) {
                    cluster.stopped.add("n2: " + e);
                }
            });
            assertFalse(taker.join(java.time.Duration.ofMillis(300)), "the token went while an answer about it was on its way");
            long written = System.nanoTime();
            n1.replied(late);
            taker.join();
            assertTrue(System.nanoTime() - written < SECOND_NS, "the token was held back for an answer that granted nothing");
            n1.forget(ino, 1);
        }
        assertEquals(List.of(), cluster.stopped);
    }
}
