package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.Operations;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What is cached and not in use goes when it is more than was allowed, and is read again when it is used again. */
@Timeout(60)
class CacheBoundTest {
    private static final long BOUND_BYTES = 100_000;
    private static final int DIRECTORIES = 40;
    private static final int FILES = 20;

    private TestCluster cluster;
    private ClusterNode n1;
    private TestClient a;
    /** Remembers whatever it is told until it is asked not to. */
    private static final class PruningKernel extends ForgettingKernel {
        final Set<Long> asked = new ConcurrentSkipListSet<>();

        @Override
        public boolean canPrune() {
            return true;
        }

        @Override
        public void prune(long[] inos, Runnable done) {
            for (long ino : inos) {
                asked.add(ino);
            }
            done.run();
        }
    }

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(64L << 20);
        n1 = cluster.start("n1", cluster.store, BOUND_BYTES);
        a = new TestClient(n1);
    }

    @AfterEach
    void stop() {
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private static Call call() {
        return new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
    }

    private static byte[] content(int d, int f) {
        return (d + "/" + f).getBytes(StandardCharsets.UTF_8);
    }

    private void makeTree() throws Exception {
        for (int d = 0; d < DIRECTORIES; d++) {
            a.mkdir("d" + d);
            for (int f = 0; f < FILES; f++) {
                a.write("d" + d + "/f" + f, 0, content(d, f), 0);
            }
        }
    }

    private void awaitTrimmed() throws Exception {
        long until = System.nanoTime() + Duration.ofSeconds(20).toNanos();
        while (n1.status().cachedBytes() > BOUND_BYTES) {
            assertTrue(System.nanoTime() < until, () -> "still cached: " + n1.status());
            Thread.sleep(50);
        }
    }

    private void checkTree(TestClient by) throws Exception {
        List<String> names = new ArrayList<>();
        for (int f = 0; f < FILES; f++) {
            names.add("f" + f);
        }
        names.sort(null);
        for (int d = 0; d < DIRECTORIES; d++) {
            List<String> found = new ArrayList<>(by.list("d" + d));
            found.sort(null);
            assertEquals(names, found);
            for (int f = 0; f < FILES; f++) {
                assertArrayEquals(content(d, f), by.read("d" + d + "/f" + f));
            }
        }
    }

    @Test
    void whatIsGivenBackIsReadAgain() throws Exception {
        makeTree();
        assertTrue(n1.status().cachedBytes() > BOUND_BYTES);
        awaitTrimmed();
        assertTrue(n1.status().tokensTrimmed() > 0);
        checkTree(a);
        // Nothing is held for another node to wait for.
        checkTree(new TestClient(cluster.start("n2")));
    }

    @Test
    void anOpenFileStaysUsableWhenItsDirectoryIsGivenBack() throws Exception {
        a.mkdir("open");
        long dir = n1.lookup(call(), 1, "open".getBytes(StandardCharsets.UTF_8)).ino();
        Operations.Created file = n1.create(call(), dir, "f".getBytes(StandardCharsets.UTF_8), 0644, 0, 2);
        long ino = file.entry().ino();
        long handle = file.opened().handle();
        n1.write(call(), ino, handle, 0, MemorySegment.ofArray(content(1, 2)), 2, false, false);
        a.unlink("open/f");
        makeTree();
        awaitTrimmed();
        n1.write(call(), ino, handle, 3, MemorySegment.ofArray(content(3, 4)), 2, false, false);
        MemorySegment read = n1.read(call(), ino, handle, 0, 100, 2, java.lang.foreign.Arena.ofAuto().allocate(8192, 4096));
        assertEquals("1/23/4", new String(read.toArray(java.lang.foreign.ValueLayout.JAVA_BYTE), StandardCharsets.UTF_8));
        n1.release(call(), ino, handle);
    }

    @Test
    void theKernelIsAskedToForgetWhatItDoesNotUse() throws Exception {
        PruningKernel kernel = new PruningKernel();
        n1.attachKernel(kernel);
        makeTree();
        for (int d = 0; d < DIRECTORIES; d++) {
            long dir = n1.lookup(call(), 1, ("d" + d).getBytes(StandardCharsets.UTF_8)).ino();
            for (int f = 0; f < FILES; f++) {
                n1.lookup(call(), dir, ("f" + f).getBytes(StandardCharsets.UTF_8));
            }
        }
        long until = System.nanoTime() + Duration.ofSeconds(20).toNanos();
        while (kernel.asked.size() < n1.status().vnodes() - BOUND_BYTES / 1024) {
            assertTrue(System.nanoTime() < until, () -> "asked for " + kernel.asked.size() + ": " + n1.status());
            Thread.sleep(50);
        }
        assertTrue(!kernel.asked.contains(1L));
    }
}
