package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fault.Fault;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.record.Keys;
import io.etcfs.core.session.StartException;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.OtherClusterException;
import io.etcfs.core.store.Txn;
import io.etcfs.testkit.store.MemoryStore;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** An older snapshot of etcd is restored under nodes that are at work, or another cluster answers. They stop, publish and write nothing more, and show nobody anything. */
@Timeout(60)
class OlderSnapshotTest {
    private static final long SECOND = 1_000_000_000L;
    private static final int BYTES = 200_000;

    private final Keys keys = new Keys(TestCluster.NAME);
    private final TestCluster cluster = new TestCluster(64L << 20);
    private final MemoryStore store = (MemoryStore) cluster.store;

    @AfterEach
    void stop() {
        Fault.plant(Set.of());
        cluster.recordsArePlanted();
        cluster.close();
    }

    private static byte[] filled(int b) {
        byte[] bytes = new byte[BYTES];
        Arrays.fill(bytes, (byte) b);
        return bytes;
    }

    private interface Condition {
        boolean holds();
    }

    private static void await(String what, Condition condition) throws InterruptedException {
        long until = System.nanoTime() + 30 * SECOND;
        while (!condition.holds()) {
            assertTrue(System.nanoTime() < until, "not within 30 s: " + what);
            Thread.sleep(5);
        }
    }

    private boolean stopped(String node, String why) {
        return cluster.stopped.stream().anyMatch(s -> s.startsWith(node + ": " + why));
    }

    /** All records but those that end by themselves. */
    private List<String> lasting() throws Exception {
        return store.range(keys.prefix(), keys.prefix().prefixEnd(), 0, false, 0, SECOND).keyValues().stream().filter(kv -> kv.leaseId() == 0).map(OlderSnapshotTest::text).toList();
    }

    private static String text(KeyValue kv) {
        return kv.key() + " " + kv.modRevision() + " " + Arrays.hashCode(kv.value());
    }

    @Test
    void nodesStopAndPublishNothing() throws Exception {
        TestClient a = new TestClient(cluster.start("a"));
        TestClient b = new TestClient(cluster.start("b"));
        a.mkdir("/d");
        a.write("/d/f", 0, filled(1), 0);
        a.fsync("/d/f");
        b.mkdir("/e");
        b.write("/e/f", 0, filled(2), 0);
        b.fsync("/e/f");
        MemoryStore.Snapshot old = store.save();
        List<String> then = lasting();
        a.unlink("/d/f");
        a.write("/d/g", 0, filled(3), 0);
        a.fsync("/d/g");
        AtomicLong writes = new AtomicLong();
        store.restore(old);
        cluster.device.beforeWrite = offset -> writes.incrementAndGet();
        // It may be taken into memory, and never be published.
        try {
            a.write("/d/h", 0, filled(4), 0);
            assertThrows(FsException.class, () -> a.fsync("/d/h"));
        } catch (FsException e) {
            // It had stopped already.
        }
        await("both stop", () -> stopped("a", "etcd's history went back") && stopped("b", "etcd's history went back"));
        assertEquals(then, lasting());
        long before = writes.get();
        assertThrows(FsException.class, () -> a.read("/d/g"));
        assertThrows(FsException.class, () -> b.write("/e/f", 0, filled(5), 0));
        Thread.sleep(200);
        assertEquals(before, writes.get());
        assertEquals(then, lasting());
    }

    /** It asks for nothing, but its keep-alives come back from a revision that is lower. */
    @Test
    void anIdleNodeStops() throws Exception {
        ClusterNode idle = cluster.start("a");
        TestClient a = new TestClient(idle);
        a.mkdir("/d");
        idle.sync(SECOND);
        MemoryStore.Snapshot old = store.save();
        a.mkdir("/e");
        idle.sync(SECOND);
        store.restore(old);
        long start = System.nanoTime();
        await("it stops", () -> stopped("a", "etcd's history went back"));
        assertTrue(System.nanoTime() - start < 3 * SECOND);
    }

    @Test
    void goingOnIsSeen() throws Exception {
        Fault.plant(Set.of(Fault.HISTORY_GOES_BACK));
        assertArrayEquals(filled(1), readAfterRestore());
        assertEquals(List.of(), cluster.stopped);
    }

    @Test
    void whatWasRemovedSinceIsNotRead() throws Exception {
        assertThrows(FsException.class, this::readAfterRestore);
        await("it stops", () -> stopped("b", "etcd's history went back"));
    }

    /** By a node that has seen more than the snapshot has, and changed nothing since. */
    private byte[] readAfterRestore() throws Exception {
        ClusterNode n1 = cluster.start("a");
        TestClient a = new TestClient(n1);
        TestClient b = new TestClient(cluster.start("b"));
        a.mkdir("/d");
        a.write("/d/f", 0, filled(1), 0);
        a.fsync("/d/f");
        MemoryStore.Snapshot old = store.save();
        a.unlink("/d/f");
        assertTrue(n1.leave(5 * SECOND));
        store.restore(old);
        return b.read("/d/f");
    }

    /** All have left when the older snapshot is restored: the device remembers. */
    @Test
    void nobodyMountsIt() throws Exception {
        MemoryStore.Snapshot old = snapshotAndMore();
        store.restore(old);
        String why = assertThrows(StartException.class, () -> cluster.start("b")).getMessage();
        assertTrue(why.startsWith("etcd's history went back: it is at revision " + old.revision() + ", and was at "), why);
        assertTrue(why.contains("when node 'a' last said so"), why);
        assertThrows(StartException.class, () -> cluster.start("a"));
        assertEquals(old.revision(), store.revision());
    }

    /** A restore that raises the revision, or an etcd that has grown since: the markers of batches stay behind. */
    @Test
    void norOneWhoseRevisionWasRaised() throws Exception {
        MemoryStore.Snapshot old = snapshotAndMore();
        long newest = store.revision();
        store.restore(old);
        while (store.revision() <= newest) {
            store.commit(new Txn(List.of(), List.of(Op.put(Key.of("somebody else's"), new byte[0])), List.of()), SECOND);
        }
        String why = assertThrows(StartException.class, () -> cluster.start("b")).getMessage();
        assertTrue(why.startsWith("etcd's history went back: the last batch of node 'a' in it is of revision "), why);
    }

    @Test
    void mountingItIsSeen() throws Exception {
        Fault.plant(Set.of(Fault.MARKS_IGNORED));
        store.restore(snapshotAndMore());
        TestClient b = new TestClient(cluster.start("b"));
        assertEquals(BYTES, b.stat("/d/f").size());
    }

    @Test
    void withTheDevicesCopyOfTheSameTimeItIsMounted() throws Exception {
        ClusterNode n1 = cluster.start("a");
        TestClient a = new TestClient(n1);
        a.mkdir("/d");
        a.write("/d/f", 0, filled(1), 0);
        assertTrue(n1.leave(5 * SECOND));
        MemoryStore.Snapshot old = store.save();
        byte[] image = cluster.device.copy();
        more();
        store.restore(old);
        assertThrows(StartException.class, () -> cluster.start("b"));
        cluster.device.restore(image);
        assertArrayEquals(filled(1), new TestClient(cluster.start("b")).read("/d/f"));
        assertEquals(List.of(), cluster.stopped);
    }

    /** One that crashed has told the device when it began to serve. */
    @Test
    void whatBeganLaterIsKnownThoughItDidNotLeave() throws Exception {
        ClusterNode n1 = cluster.start("a");
        assertTrue(n1.leave(5 * SECOND));
        MemoryStore.Snapshot old = store.save();
        cluster.start("b");
        MemoryStore.Snapshot newer = store.save();
        store.restore(old);
        assertThrows(StartException.class, () -> cluster.start("c"));
        store.restore(newer);
        cluster.start("c");
    }

    /** From when a file was there that has been removed since, and everybody has left. */
    private MemoryStore.Snapshot snapshotAndMore() throws Exception {
        ClusterNode n1 = cluster.start("a");
        TestClient a = new TestClient(n1);
        a.mkdir("/d");
        a.write("/d/f", 0, filled(1), 0);
        a.fsync("/d/f");
        assertTrue(n1.leave(5 * SECOND));
        MemoryStore.Snapshot old = store.save();
        more();
        return old;
    }

    private void more() throws Exception {
        ClusterNode n1 = cluster.start("a");
        TestClient a = new TestClient(n1);
        a.unlink("/d/f");
        a.write("/d/g", 0, filled(2), 0);
        a.fsync("/d/g");
        assertTrue(n1.leave(5 * SECOND));
    }

    @Test
    void nodesStopIfAnotherClusterAnswers() throws Exception {
        AtomicBoolean other = new AtomicBoolean();
        MetadataStore way = (MetadataStore) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {MetadataStore.class}, (proxy, method, args) -> {
            if (other.get()) {
                throw new OtherClusterException("e1 is in another one");
            }
            try {
                return method.invoke(store, args);
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        });
        TestClient a = new TestClient(cluster.start("a", way));
        a.mkdir("/d");
        other.set(true);
        await("it stops", () -> stopped("a", "another etcd cluster answers: e1"));
        assertThrows(FsException.class, () -> a.mkdir("/e"));
    }
}
