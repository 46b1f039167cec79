package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.domain.Inode;
import io.etcfs.core.file.Extent;
import io.etcfs.core.file.ExtentMap;
import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.fs.Operations;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Lock;
import io.etcfs.core.record.proto.Owner;
import io.etcfs.core.record.proto.Unfree;
import io.etcfs.core.record.proto.Want;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.Txn;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Requests that etcd carries out late or whose answer is lost, and work that is too much for one transaction. */
@Timeout(60)
class LateAndLargeTest {
    private static final long SECOND = 1_000_000_000L;
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
    }

    @AfterEach
    void stop() {
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private static Call call() {
        return new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
    }

    private KeyValue get(Key key) throws Exception {
        return cluster.store.range(key, null, 0, false, 0, SECOND).only();
    }

    private void commit(Op... ops) throws Exception {
        cluster.recordsArePlanted();
        cluster.store.commit(new Txn(List.of(), List.of(ops), List.of()), SECOND);
    }

    /** A want of a node that is not there. */
    private Op want(long res) {
        return Op.put(keys.want(res, "n9"), Want.newBuilder().setKind(Want.Kind.EXCLUSIVE).setSession(1).build().toByteArray());
    }

    private interface Probe {
        boolean holds() throws Exception;
    }

    private static void eventually(String what, Probe probe) throws Exception {
        long until = System.nanoTime() + 8 * SECOND;
        while (!probe.holds()) {
            if (System.nanoTime() > until) {
                throw new AssertionError(what);
            }
            Thread.sleep(20);
        }
    }

    /** Makes {@code /d} with the file {@code f} on a node that leaves again, so that nobody holds anything of it. */
    private long directoryOfNobody() throws Exception {
        ClusterNode n2 = cluster.start("n2");
        TestClient b = new TestClient(n2);
        b.mkdir("/d");
        b.write("/d/f", 0, new byte[10], 0);
        long ino = b.stat("/d").ino();
        n2.leave(5 * SECOND);
        return ino;
    }

    @Test
    void aKeyThatIsTakenUpIsNotDeletedAsUnknown() throws Exception {
        long d = directoryOfNobody();
        var session = io.etcfs.core.record.proto.Session.parseFrom(get(keys.session("n1")).value());
        long revision = get(keys.session("n1")).createRevision();
        Owner owner = Owner.parseFrom(get(keys.owner(d)).value());
        CountDownLatch held = new CountDownLatch(1);
        CompletableFuture<Outcome> late = new CompletableFuture<>();
        way.hook = txn -> {
            if (txn.success().size() == 2 && txn.success().get(0) instanceof Op.Delete del && del.key().equals(keys.lockExclusive(d, "n1")) && held.getCount() > 0) {
                held.countDown();
                try {
                    Thread.sleep(1000);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
                late.complete(cluster.store.commit(txn, SECOND));
                return late.join();
            }
            return null;
        };
        // A request of n1 that committed after it stopped waiting left a key; somebody else waits for it.
        commit(Op.put(keys.lockExclusive(d, "n1"), Lock.newBuilder().setSession(revision).build().toByteArray(), session.getLease()),
                Op.put(keys.owner(d), owner.toBuilder().setNode("n1").setSession(revision).setGivenUp(false).build().toByteArray()));
        for (int i = 0; i < 3; i++) {
            commit(want(d));
        }
        assertEquals(true, held.await(5, TimeUnit.SECONDS), "the unknown key is given back");
        commit(Op.delete(keys.want(d, "n9")));
        a.write("/d/mine", 0, new byte[1], 0);
        late.get(5, TimeUnit.SECONDS);
        TestClient c = new TestClient(cluster.start("n3"));
        c.write("/d/theirs", 0, new byte[1], 0);
        assertEquals(List.of("f", "mine", "theirs"), c.list("/d"));
        assertEquals(List.of("f", "mine", "theirs"), a.list("/d"));
    }

    @Test
    void anUpgradeDoesNotGoByWhatWasHeldBeforeARecall() throws Exception {
        long d = directoryOfNobody();
        assertEquals(List.of("f"), a.list("/d"));
        CountDownLatch looking = new CountDownLatch(1);
        CountDownLatch look = new CountDownLatch(1);
        way.hook = txn -> {
            if (txn.compares().isEmpty() && txn.success().size() == 3 && txn.success().get(0) instanceof Op.Range r && r.key().equals(keys.owner(d)) && look.getCount() > 0) {
                looking.countDown();
                try {
                    look.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
            return null;
        };
        CompletableFuture<Void> writing = CompletableFuture.runAsync(() -> {
            try {
                a.write("/d/new", 0, new byte[1], 0);
            } catch (FsException e) {
                throw new IllegalStateException(e);
            }
        });
        looking.await();
        commit(want(d));
        eventually("the shared token is given up", () -> get(keys.lockShared(d, "n1")) == null);
        commit(Op.delete(keys.want(d, "n9")));
        Thread.sleep(100);
        look.countDown();
        writing.get(10, TimeUnit.SECONDS);
        assertEquals(List.of("f", "new"), a.list("/d"));
    }

    @Test
    void aDirectoryOfManyPagesIsReadWhole() throws Exception {
        a.mkdir("/d");
        long d = n1.lookup(call(), 1, "d".getBytes()).ino();
        for (int i = 0; i < 13_000; i++) {
            n1.mknod(call(), d, ("f" + i).getBytes(), 0100644, 0, 0);
        }
        TestClient b = new TestClient(cluster.start("n2"));
        List<String> found = b.list("/d");
        assertEquals(13_000, found.size());
        assertEquals(13_000, new java.util.HashSet<>(found).size());
        assertEquals(1, b.stat("/d/f12999").nlink());
    }

    /** The domain of a directory that was removed is read as a whole. It is only large: nobody is told that etcd does not answer. */
    @Test
    void aDomainThatTakesLongerThanAnOperationWaitsIsReadAllTheSame() throws Exception {
        a.mkdir("/d");
        a.mkdir("/e");
        long d = n1.lookup(call(), 1, "d".getBytes()).ino();
        long e = n1.lookup(call(), 1, "e".getBytes()).ino();
        for (int i = 0; i < 13_000; i++) {
            n1.mknod(call(), d, ("f" + i).getBytes(), 0100644, 0, 0);
            n1.rename(call(), d, ("f" + i).getBytes(), e, ("f" + i).getBytes(), 0);
        }
        a.rmdir("/d");
        HookedStore slow = new HookedStore(cluster.store);
        cluster.requestDeadlineNs = SECOND;
        TestClient b = new TestClient(cluster.start("n2", slow));
        slow.rangeDelayMs = 700;
        long begin = System.nanoTime();
        assertEquals(1, b.stat("/e/f12999").nlink());
        assertTrue(System.nanoTime() - begin > 1_400_000_000L);
        slow.rangeDelayMs = 0;
        assertEquals(13_000, b.list("/e").size());
    }

    @Test
    void aDirectoryWithManyOpenFilesIsGivenUp() throws Exception {
        a.mkdir("/d");
        long d = n1.lookup(call(), 1, "d".getBytes()).ino();
        List<Operations.Created> open = new ArrayList<>();
        for (int i = 0; i < 150; i++) {
            open.add(n1.create(call(), d, ("f" + i).getBytes(), 0644, 0, 2));
        }
        TestClient b = new TestClient(cluster.start("n2"));
        assertEquals(150, b.list("/d").size());
        assertEquals(150, cluster.store.range(keys.opensOf(d), keys.opensOf(d).prefixEnd(), 0, true, 0, SECOND).keyValues().size());
        for (int i = 0; i < 150; i++) {
            b.unlink("/d/f" + i);
        }
        for (Operations.Created c : open) {
            n1.release(call(), c.entry().ino(), c.opened().handle());
            n1.forget(c.entry().ino(), 1);
        }
        n1.forget(d, 1);
        eventually("all are freed", () -> cluster.store.range(keys.orphans(), keys.orphans().prefixEnd(), 0, true, 0, SECOND).keyValues().isEmpty());
        eventually("their keys are gone", () -> cluster.store.range(keys.opensOf(d), keys.opensOf(d).prefixEnd(), 0, true, 0, SECOND).keyValues().isEmpty());
    }

    @Test
    void aLostAnswerDoesNotKeepACloserBusy() throws Exception {
        a.mkdir("/d");
        long d = n1.lookup(call(), 1, "d".getBytes()).ino();
        Operations.Created f = n1.create(call(), d, "f".getBytes(), 0644, 0, 2);
        long ino = f.entry().ino();
        TestClient b = new TestClient(cluster.start("n2"));
        b.write("/d/f", 0, new byte[3], 0);
        assertEquals(true, get(keys.open(d, ino, "n1")) != null);
        way.hook = txn -> {
            if (!txn.success().isEmpty() && txn.success().get(0) instanceof Op.Delete del && del.key().equals(keys.open(d, ino, "n1"))) {
                cluster.store.commit(txn, SECOND);
                return new Outcome.Unknown("the answer is lost");
            }
            return null;
        };
        n1.release(call(), ino, f.opened().handle());
        n1.forget(ino, 1);
        n1.forget(d, 1);
        eventually("nothing is left of the file on the node", () -> n1.status().vnodes() <= 1);
    }

    @Test
    void aNodeThatCannotFollowTheTokensStops() throws Exception {
        a.mkdir("/d");
        commit(Op.put(Key.of((keys.locks() + "what is this").getBytes()), new byte[0]));
        eventually("the node stops", () -> cluster.stopped.stream().anyMatch(s -> s.startsWith("n1: a watch failed")));
        cluster.stopped.clear();
    }

    /** So that what comes next finds the open batch half full. */
    private void fillBatch() throws Exception {
        a.fsync("/f");
        for (int i = 0; i < 30; i++) {
            a.write("/small" + i, 0, new byte[0], 0);
        }
    }

    @Test
    void extentsMoveToRecordsWhileABatchTakesThem() throws Exception {
        long range = 32L << 20;
        a.write("/f", 0, new byte[0], 0);
        for (int i = 1; i <= 32; i++) {
            a.fallocate("/f", 2 * i * range - 4096, 8192, 0);
        }
        fillBatch();
        a.write("/f", 66 * range - 4096, new byte[8192], 0);
        a.fsync("/f");
        assertEquals(66 * 8, a.stat("/f").blocks());
    }

    @Test
    void aFileInManyArenasIsRemoved() throws Exception {
        try (TestCluster large = new TestCluster(640L << 20)) {
            ClusterNode n = large.start("n1");
            TestClient c = new TestClient(n);
            long before = c.freeBlocks();
            c.write("/f", 0, new byte[0], 0);
            c.fallocate("/f", 0, 576L << 20, 0);
            c.fsync("/f");
            for (int i = 0; i < 28; i++) {
                c.write("/small" + i, 0, new byte[0], 0);
            }
            c.unlink("/f");
            Thread.sleep(100);
            eventually("all blocks are free again", () -> c.freeBlocks() == before);
            assertEquals(List.of(), large.stopped);
        }
    }

    @Test
    void anArenaThatWasGivenBackStaysGivenBack() throws Exception {
        a.write("/f", 0, new byte[100_000], 0);
        a.fsync("/f");
        Inode f = Inode.decode(a.stat("/f").ino(), 1, get(keys.inode(1, a.stat("/f").ino())).value());
        long block = f.extents.all().getFirst().deviceBlock();
        way.hook = txn -> {
            if (txn.success().size() == 2 && txn.success().get(0) instanceof Op.Delete del && del.key().equals(keys.arena("n1", 0))) {
                Outcome o = cluster.store.commit(txn, SECOND);
                // Just then somebody frees a block of it.
                byte[] freed = Unfree.newBuilder().addRuns(Unfree.Run.newBuilder().setDeviceBlock(block).setLength(1)).build().toByteArray();
                cluster.recordsArePlanted();
                cluster.store.commit(new Txn(List.of(), List.of(Op.put(keys.unfree(0, "n9", 1), freed)), List.of()), SECOND);
                try {
                    Thread.sleep(200);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
                return o;
            }
            return null;
        };
        n1.leave(5 * SECOND);
        assertEquals(List.of(), cluster.store.range(keys.arenasOf("n1"), keys.arenasOf("n1").prefixEnd(), 0, true, 0, SECOND).keyValues());
        assertEquals(true, get(keys.freeArena(0)) != null);
        assertEquals(true, get(keys.unfree(0, "n9", 1)) != null);
    }

    @Test
    void theTailOfALongFileIsFreedToItsEnd() throws Exception {
        long range = 32L << 20;
        a.write("/f", 0, new byte[0], 0);
        for (int i = 0; i < 100; i++) {
            a.fallocate("/f", i * range, 4096, 0);
        }
        a.truncate("/f", 50 * range);
        long ino = a.stat("/f").ino();
        eventually("the rest is freed", () -> get(keys.remainder(1, ino)) == null && a.stat("/f").blocks() == 50 * 8);
        a.write("/f", 60 * range, new byte[1], 0);
        assertEquals(60 * range + 1, a.stat("/f").size());
    }

    @Test
    void manyFilesWithLargeAttributesChangeAtOnce() throws Exception {
        byte[] value = new byte[2000];
        for (int i = 0; i < 110; i++) {
            a.write("/f" + i, 0, new byte[0], 0);
            long ino = n1.lookup(call(), 1, ("f" + i).getBytes()).ino();
            for (int x = 0; x < 8; x++) {
                n1.setxattr(call(), ino, ("user." + x).getBytes(), value, 0);
            }
        }
        a.fsync("/f109");
        for (int i = 0; i < 110; i++) {
            long ino = n1.lookup(call(), 1, ("f" + i).getBytes()).ino();
            n1.setattr(call(), ino, new Operations.Change(0600, null, null, null, null, null, null, -1, false));
        }
        a.fsync("/f109");
        assertEquals(List.of(), cluster.stopped);
    }

    /** Files whose every block is an extent, in arenas of others: what is freed takes more than the names and inodes that go. */
    @Test
    void filesInManyPiecesAreRemovedAtOnce() throws Exception {
        int files = 24;
        int pieces = 16_000;
        List<Long> inos = new ArrayList<>();
        for (int f = 0; f < files; f++) {
            a.write("/f" + f, 0, new byte[0], 0);
            inos.add(a.stat("/f" + f).ino());
        }
        n1.leave(5 * SECOND);
        for (long ino : inos) {
            Inode inode = Inode.decode(ino, 1, get(keys.inode(1, ino)).value());
            inode.size = pieces * 4096L;
            inode.valid = inode.size;
            inode.flags |= Inode.FLAG_EXTENT_RECORDS;
            for (int k = 0; k < pieces; k++) {
                inode.extents.put(new Extent(k, pieces - k, 1, 0, 0));
            }
            commit(Op.put(keys.inode(1, ino), inode.encode()));
            for (long range = 0; range <= (pieces - 1) / ExtentMap.RANGE_BLOCKS; range++) {
                commit(Op.put(keys.extents(ino, range), inode.encodeExtentRecord(range)));
            }
        }
        HookedStore its = new HookedStore(cluster.store);
        ClusterNode n2 = cluster.start("n2", its);
        TestClient b = new TestClient(n2);
        for (int f = 0; f < files; f++) {
            assertEquals(1, b.read("/f" + f, 0, 1).length);
        }
        CountDownLatch release = new CountDownLatch(1);
        its.hook = txn -> {
            if (txn.success().stream().anyMatch(op -> op instanceof Op.Put p && p.key().equals(keys.batch("n2")))) {
                try {
                    release.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
            return null;
        };
        // Until this is published all that follows is collected.
        b.mkdir("/d");
        Thread.sleep(100);
        for (int f = 0; f < files; f++) {
            b.unlink("/f" + f);
        }
        release.countDown();
        n2.sync(20 * SECOND);
        assertEquals(List.of("d"), b.list("/"));
        eventually("all of them are freed", () -> cluster.store.range(keys.orphans(), keys.orphans().prefixEnd(), 1, true, 0, SECOND).count() == 0);
        n2.sync(20 * SECOND);
        long freed = 0;
        for (KeyValue kv : cluster.store.range(keys.unfrees(), keys.unfrees().prefixEnd(), 0, false, 0, SECOND).keyValues()) {
            freed += Unfree.parseFrom(kv.value()).getRunsCount();
        }
        assertEquals((long) files * pieces, freed);
    }

    /** Each looks again when something has changed: that the other one looked is nothing that has. */
    @Test
    void operationsThatWaitForSeveralTokensDoNotKeepEachOtherAwake() throws Exception {
        for (String dir : List.of("/a", "/a/x", "/a/y", "/b")) {
            a.mkdir(dir);
        }
        // Somebody has the rename token, which both need.
        commit(Op.put(keys.lockExclusive(0, "n9"), Lock.newBuilder().setSession(1).build().toByteArray()));
        List<CompletableFuture<Void>> renames = new ArrayList<>();
        for (String name : List.of("/x", "/y")) {
            renames.add(CompletableFuture.runAsync(() -> {
                try {
                    a.rename("/a" + name, "/b" + name);
                } catch (FsException e) {
                    throw new IllegalStateException(e);
                }
            }, task -> cluster.tasks.start("rename", task)));
        }
        Thread.sleep(500);
        Duration before = ProcessHandle.current().info().totalCpuDuration().orElseThrow();
        Thread.sleep(1_000);
        Duration used = ProcessHandle.current().info().totalCpuDuration().orElseThrow().minus(before);
        commit(Op.delete(keys.lockExclusive(0, "n9")));
        for (CompletableFuture<Void> rename : renames) {
            rename.get(5, TimeUnit.SECONDS);
        }
        assertEquals(List.of("x", "y"), a.list("/b"));
        assertTrue(used.toMillis() < 500, () -> "waiting for a second took " + used.toMillis() + " ms of processor time");
    }

    /** To give them back takes longer than its membership lives, and than it has for leaving. */
    @Test
    void whoOwnsManyArenasLeavesInOrder() throws Exception {
        ownArenas(100);
        way.hook = txn -> {
            if (givesArenaBack(txn)) {
                pause(1_700);
            }
            return null;
        };
        assertTrue(n1.leave(5 * SECOND));
        assertNotNull(get(keys.departed("n1")));
        assertNull(get(keys.membership("n1")));
        assertEquals(0, cluster.store.range(keys.arenasOf("n1"), keys.arenasOf("n1").prefixEnd(), 0, true, 0, SECOND).count());
    }

    /** What can't be recorded any more is not waited for. */
    @Test
    void whoLosesItsMembershipWhileItGivesArenasBackDoesNotGoOn() throws Exception {
        ownArenas(100);
        AtomicBoolean lost = new AtomicBoolean();
        way.hook = txn -> {
            if (givesArenaBack(txn) && lost.compareAndSet(false, true)) {
                try {
                    cluster.store.revokeLease(get(keys.membership("n1")).leaseId(), SECOND);
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            }
            return null;
        };
        long began = System.nanoTime();
        assertFalse(n1.leave(50 * SECOND));
        assertTrue(System.nanoTime() - began < 20 * SECOND);
        assertNull(get(keys.departed("n1")));
    }

    /** Beyond the end of the device. */
    private void ownArenas(int count) throws Exception {
        for (int id = 0; id < count; id++) {
            commit(Op.put(keys.arena("n1", 1_000 + id), io.etcfs.core.record.proto.Arena.getDefaultInstance().toByteArray()));
        }
    }

    private boolean givesArenaBack(Txn txn) {
        return txn.success().stream().anyMatch(op -> op instanceof Op.Put p && p.key().startsWith(keys.freeArenas()));
    }

    private static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
