package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.record.Keys;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tokens that a node gets unasked, with the one of a directory above. n1 makes something deep down, n2 comes from the root. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class OfferedTokensTest {
    /** n1 is not at work down there any more. */
    private static final long IDLE_MS = 60;

    private final Wants wants = new Wants(new Keys(TestCluster.NAME));
    private TestCluster cluster;
    private TestClient maker;
    private ClusterNode comer;

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(64L << 20);
        maker = new TestClient(cluster.start("n1"));
        HookedStore way = new HookedStore(cluster.store);
        way.hook = wants;
        comer = cluster.start("n2", way);
        maker.mkdir("a");
        maker.mkdir("a/b");
        maker.mkdir("a/other");
        maker.mkdir("a/b/c");
        maker.write("a/b/c/f", 0, new byte[] {1}, 0);
        maker.fsync("a/b/c/f");
        Thread.sleep(IDLE_MS);
    }

    @AfterEach
    void stop() {
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private static Call call() {
        return new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
    }

    private static void await(BooleanSupplier condition) throws InterruptedException {
        long until = System.nanoTime() + 20_000_000_000L;
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() < until, "in vain");
            Thread.sleep(5);
        }
    }

    private void lookAtTheRoot() throws FsException {
        assertEquals(0, comer.lookup(call(), 1, "missing".getBytes(StandardCharsets.UTF_8)).ino());
    }

    @Test
    void whoComesToTheRootIsGivenTheWayToTheLastChange() throws Exception {
        lookAtTheRoot();
        // The root, a, b and c; not the other one.
        await(() -> comer.status().tokensHeld() == 4);
        assertEquals(Set.of(1L), wants.resources());
        assertArrayEquals(new byte[] {1}, new TestClient(comer).read("a/b/c/f"));
        assertEquals(Set.of(1L), wants.resources());
    }

    @Test
    void theMakerGoesOnBeforeAnybodyHasLooked() throws Exception {
        lookAtTheRoot();
        await(() -> comer.status().tokensHeld() == 4);
        maker.write("a/b/c/f", 0, new byte[] {2}, 0);
        maker.write("a/b/c/g", 0, new byte[] {3}, 0);
        assertArrayEquals(new byte[] {2}, new TestClient(comer).read("a/b/c/f"));
        assertArrayEquals(new byte[] {3}, new TestClient(comer).read("a/b/c/g"));
    }

    @Test
    void whatTheComerHasRemovedIsNotGivenToHim() throws Exception {
        TestClient other = new TestClient(comer);
        other.unlink("a/b/c/f");
        other.rmdir("a/b/c");
        maker.write("a/other/g", 0, new byte[] {4}, 0);
        Thread.sleep(IDLE_MS);
        maker.mkdir("d");
        lookAtTheRoot();
        assertArrayEquals(new byte[] {4}, other.read("a/other/g"));
        assertEquals(List.of("g"), other.list("a/other"));
        assertEquals(List.of(), other.list("a/b"));
    }
}
