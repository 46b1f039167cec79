package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fault.Fault;
import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.fs.Operations;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A kernel that renames goes on to believe the name at its new place for as long as it was told to at the old one. It is made to forget it there. */
@Timeout(60)
class MovedNamesTest {
    private static final long SECOND_NS = 1_000_000_000L;

    /** The names that a kernel believes, and until when. */
    private static final class Names extends ForgettingKernel {
        private final Map<String, Long> untilNs = new HashMap<>();

        synchronized void told(long dir, String name, long validNs) {
            untilNs.put(dir + "/" + name, System.nanoTime() + validNs);
        }

        synchronized void moves(long dir, String name, long toDir, String newName) {
            Long until = untilNs.remove(dir + "/" + name);
            if (until != null) {
                untilNs.put(toDir + "/" + newName, until);
            }
        }

        synchronized boolean believes(long dir, String name) {
            return untilNs.getOrDefault(dir + "/" + name, Long.MIN_VALUE) - System.nanoTime() > 0 && untilNs.containsKey(dir + "/" + name);
        }

        @Override
        public synchronized void invalidateEntry(long parentIno, byte[] name, boolean expireOnly, Runnable done) {
            // It waits for the directory, which a rename has locked until it is answered.
            Thread.ofVirtual().start(() -> {
                pause(20);
                synchronized (this) {
                    untilNs.remove(parentIno + "/" + new String(name, StandardCharsets.UTF_8));
                }
                done.run();
            });
        }
    }

    private final Names kernel = new Names();
    private TestCluster cluster;
    private ClusterNode n1;
    private TestClient other;
    private long left;
    private long right;

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(256L << 20);
        n1 = cluster.start("n1");
        other = new TestClient(cluster.start("n2"));
        TestClient one = new TestClient(n1);
        one.mkdir("/left");
        one.mkdir("/right");
        one.write("/left/f", 0, new byte[10], 0);
        one.write("/left/g", 0, new byte[10], 0);
        n1.attachKernel(kernel);
        left = lookup(1, "left");
        right = lookup(1, "right");
    }

    @AfterEach
    void stop() {
        Fault.plant(Set.of());
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static byte[] bytes(String name) {
        return name.getBytes(StandardCharsets.UTF_8);
    }

    private static Call call() {
        return new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
    }

    private long lookup(long dir, String name) throws FsException {
        Call asking = call();
        Operations.Entry e = n1.lookup(asking, dir, bytes(name));
        kernel.told(dir, name, e.entryValidNs());
        n1.replied(asking);
        return e.ino();
    }

    private void create(long dir, String name) throws FsException {
        Call asking = call();
        Operations.Created c = n1.create(asking, dir, bytes(name), 0644, 0, 2);
        kernel.told(dir, name, c.entry().entryValidNs());
        n1.replied(asking);
        n1.release(call(), c.entry().ino(), c.opened().handle());
        n1.forget(c.entry().ino(), 1);
    }

    private void rename(long dir, String name, long toDir, String newName) throws FsException {
        n1.rename(call(), dir, bytes(name), toDir, bytes(newName), 0);
        kernel.moves(dir, name, toDir, newName);
    }

    /** Both names stay, and the kernel, which did not know the other one, moves what it had. */
    @Test
    void toAnotherNameOfTheSameFile() throws Exception {
        other.link("/left/f", "/left/same");
        // Nothing is believed for 2 s after a recall.
        lookup(left, "f");
        pause(2_200);
        lookup(left, "f");
        rename(left, "f", left, "same");
        assertTrue(kernel.believes(left, "same"));
        other.unlink("/left/same");
        assertTrue(!kernel.believes(left, "same"), "it believes a name that is gone");
    }

    @Test
    void withinADirectory() throws Exception {
        lookup(left, "f");
        rename(left, "f", left, "new");
        assertTrue(kernel.believes(left, "new"));
        other.unlink("/left/new");
        assertTrue(!kernel.believes(left, "new"), "it believes a name that is gone");
    }

    @Test
    void toAnotherDirectory() throws Exception {
        lookup(left, "f");
        rename(left, "f", right, "new");
        assertTrue(kernel.believes(right, "new"));
        other.unlink("/right/new");
        assertTrue(!kernel.believes(right, "new"), "it believes a name that is gone");
    }

    @Test
    void overSeveralPlaces() throws Exception {
        lookup(left, "f");
        rename(left, "f", right, "once");
        rename(right, "once", left, "twice");
        other.rename("/left/g", "/left/twice");
        assertTrue(!kernel.believes(left, "twice"), "it believes a name that is another file's");
    }

    @Test
    void exchanged() throws Exception {
        long f = lookup(left, "f");
        create(right, "h");
        n1.rename(call(), left, bytes("f"), right, bytes("h"), Operations.RENAME_EXCHANGE);
        other.unlink("/left/f");
        other.unlink("/right/h");
        assertTrue(!kernel.believes(left, "f") && !kernel.believes(right, "h"), "it believes names that are gone");
        n1.forget(f, 1);
    }

    /** Others take what is put into a directory: it is not kept from them for as long as its names were believed where they were made. */
    @Test
    void intoADirectoryThatOthersWant() throws Exception {
        for (int i = 0; i < 5; i++) {
            other.unlink("/right/" + put(i));
        }
        long begunNs = System.nanoTime();
        for (int i = 5; i < 10; i++) {
            String name = put(i);
            other.unlink("/right/" + name);
            assertTrue(!kernel.believes(right, name), "it believes a name that is gone");
        }
        assertTrue(System.nanoTime() - begunNs < 4 * SECOND_NS, "the others had to wait until names had run out");
    }

    private String put(int i) throws FsException {
        String name = "n" + i;
        create(left, name);
        rename(left, name, right, name);
        return name;
    }

    @Test
    void whereTheyAreForgottenItIsSeen() throws Exception {
        Fault.plant(Set.of(Fault.MOVED_NAMES_FORGOTTEN));
        lookup(left, "f");
        rename(left, "f", right, "new");
        assertTrue(kernel.believes(right, "new"));
        other.unlink("/right/new");
        assertTrue(kernel.believes(right, "new"));
    }
}
