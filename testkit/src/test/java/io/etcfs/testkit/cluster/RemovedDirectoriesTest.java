package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.record.Keys;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.Txn;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * The owner record of a directory goes with the last that lives in its domain, in one transaction: at no revision is there one of a domain in which nothing lives
 * (the cluster looks at all of them), so that no node has to come by again, whatever ends before.
 */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class RemovedDirectoriesTest {
    private static final long SECOND = 1_000_000_000L;
    private static final Keys KEYS = new Keys(TestCluster.NAME);

    private TestCluster cluster;
    private HookedStore way;
    private HookedStore otherWay;
    private ClusterNode n1;
    private ClusterNode n2;
    private TestClient a;
    private TestClient b;

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(64L << 20);
        way = new HookedStore(cluster.store);
        n1 = cluster.start("n1", way);
        otherWay = new HookedStore(cluster.store);
        n2 = cluster.start("n2", otherWay);
        a = new TestClient(n1);
        b = new TestClient(n2);
    }

    @AfterEach
    void stop() {
        way.hook = txn -> null;
        way.cut = false;
        otherWay.hook = txn -> null;
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private static Call call() {
        return new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
    }

    private KeyValue get(Key key) throws Exception {
        return cluster.store.range(key, null, 0, false, 0, SECOND).only();
    }

    private static boolean deletes(Txn txn, Key key) {
        return txn.success().contains(Op.delete(key));
    }

    private long made() throws Exception {
        a.mkdir("/d");
        n1.sync(5 * SECOND);
        long ino = a.stat("/d").ino();
        assertNotNull(get(KEYS.owner(ino)));
        return ino;
    }

    @Test
    void theOwnerRecordGoesWithTheDirectory() throws Exception {
        long ino = made();
        AtomicBoolean removed = new AtomicBoolean();
        way.hook = txn -> {
            if (removed.get()) {
                // The token is never given back.
                return new Outcome.Unknown("lost");
            }
            removed.set(deletes(txn, KEYS.inode(ino, ino)));
            return null;
        };
        a.rmdir("/d");
        for (int i = 0; i < 100 && get(KEYS.inode(ino, ino)) != null; i++) {
            Thread.sleep(20);
        }
        assertTrue(removed.get());
        assertEquals(null, get(KEYS.owner(ino)));
    }

    @Test
    void itGoesWithTheLastFileWhereOneOutlivesTheDirectory() throws Exception {
        long ino = made();
        a.write("/d/f", 0, new byte[1], 0);
        a.link("/d/f", "/g");
        a.unlink("/d/f");
        a.rmdir("/d");
        n1.sync(5 * SECOND);
        assertNotNull(get(KEYS.owner(ino)));
        b.unlink("/g");
        n2.sync(5 * SECOND);
        assertEquals(null, get(KEYS.owner(ino)));
    }

    @Test
    void madeAndRemovedAtOnceItNeverHasOne() throws Exception {
        for (int i = 0; i < 30; i++) {
            a.mkdir("/d" + i);
            if (i % 3 == 0) {
                n1.sync(5 * SECOND);
            }
            a.mkdir("/d" + i + "/e");
            a.rmdir("/d" + i + "/e");
            a.rmdir("/d" + i);
        }
        n1.sync(5 * SECOND);
        assertEquals(List.of(), a.list("/"));
    }

    /** Who wants the token meanwhile gets it, and finds nothing there to own. */
    @Test
    void whoWaitsForItsTokenOwnsNothing() throws Exception {
        long ino = made();
        assertEquals(ino, n2.lookup(call(), 1, "d".getBytes(StandardCharsets.UTF_8)).ino());
        // Its S is given up first, or else n1 could not remove anything.
        CompletableFuture<Void> creating = new CompletableFuture<>();
        AtomicBoolean begun = new AtomicBoolean();
        way.hook = txn -> {
            if (deletes(txn, KEYS.inode(ino, ino)) && begun.compareAndSet(false, true)) {
                Thread.startVirtualThread(() -> {
                    try {
                        n2.create(call(), ino, "f".getBytes(StandardCharsets.UTF_8), 0644, 0, 2);
                        creating.complete(null);
                    } catch (Throwable e) {
                        creating.completeExceptionally(e);
                    }
                });
                awaitWant(ino);
            }
            return null;
        };
        a.rmdir("/d");
        ExecutionException refused = assertThrows(ExecutionException.class, () -> creating.get(20, TimeUnit.SECONDS));
        assertEquals(Errno.ENOENT, ((FsException) refused.getCause()).errno());
        assertEquals(null, get(KEYS.owner(ino)));
        n2.forget(ino, 1);
    }

    private static boolean puts(Txn txn, Key key) {
        return txn.success().stream().anyMatch(op -> op instanceof Op.Put p && p.key().equals(key) || op instanceof Op.Nested n && puts(n.txn(), key));
    }

    /** The answer to who takes the token of a removed directory is lost: he finds his key, and no owner record beside it. */
    @Test
    void whoTakesItsTokenAndIsNotAnsweredFindsIt() throws Exception {
        long ino = made();
        assertEquals(ino, n2.lookup(call(), 1, "d".getBytes(StandardCharsets.UTF_8)).ino());
        a.rmdir("/d");
        n1.sync(5 * SECOND);
        AtomicBoolean lost = new AtomicBoolean();
        otherWay.hook = txn -> {
            if (puts(txn, KEYS.lockExclusive(ino, "n2")) && lost.compareAndSet(false, true)) {
                cluster.store.commit(txn, SECOND);
                return new Outcome.Unknown("lost");
            }
            return null;
        };
        long begin = System.nanoTime();
        assertEquals(Errno.ENOENT, assertThrows(FsException.class, () -> n2.create(call(), ino, "f".getBytes(StandardCharsets.UTF_8), 0644, 0, 2)).errno());
        assertTrue(lost.get());
        assertTrue(System.nanoTime() - begin < 5 * SECOND, "it waited for its own key");
        assertEquals(null, get(KEYS.owner(ino)));
        n2.forget(ino, 1);
    }

    /** A request to share the token arrives twice, the second time when who asked has it alone: nothing but that key of his says so. */
    @Test
    void aLateRequestToShareItsTokenAddsNoKey() throws Exception {
        long ino = made();
        assertEquals(ino, n2.lookup(call(), 1, "d".getBytes(StandardCharsets.UTF_8)).ino());
        a.rmdir("/d");
        n1.sync(5 * SECOND);
        AtomicReference<Txn> late = new AtomicReference<>();
        otherWay.hook = txn -> {
            if (puts(txn, KEYS.lockShared(ino, "n2"))) {
                late.compareAndSet(null, txn);
            }
            return null;
        };
        assertEquals(0, n2.getattr(call(), ino, -1).attributes().nlink());
        assertNotNull(late.get());
        assertEquals(Errno.ENOENT, assertThrows(FsException.class, () -> n2.create(call(), ino, "f".getBytes(StandardCharsets.UTF_8), 0644, 0, 2)).errno());
        assertNotNull(get(KEYS.lockExclusive(ino, "n2")));
        cluster.store.commit(late.get(), SECOND);
        assertEquals(null, get(KEYS.lockShared(ino, "n2")));
        n2.forget(ino, 1);
    }

    private void awaitWant(long ino) {
        try {
            for (int i = 0; i < 200 && get(KEYS.want(ino, "n2")) == null; i++) {
                Thread.sleep(10);
            }
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    /** As a clean unmount after outages: the node waited for ever for owner records that a task of an earlier session was deleting. */
    @Test
    void whoRemovedOneLeavesCleanlyThoughItsSessionEndedTwiceSince() throws Exception {
        long ino = made();
        a.write("/x", 0, new byte[1], 0);
        a.fsync("/x");
        Key lock = KEYS.lockExclusive(ino, "n1");
        CountDownLatch held = new CountDownLatch(1);
        way.hook = txn -> {
            if (deletes(txn, lock)) {
                way.cut = true;
                return new Outcome.Unknown("cut off");
            }
            return null;
        };
        a.rmdir("/d");
        for (int i = 0; i < 500 && !way.cut; i++) {
            Thread.sleep(10);
        }
        assertTrue(way.cut);
        Thread.sleep(3_000);
        // A transaction about that record alone is on its way while the next session ends and another one is opened.
        way.hook = txn -> {
            if (txn.success().size() == 1 && deletes(txn, KEYS.owner(ino))) {
                try {
                    held.await(20, TimeUnit.SECONDS);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
                return new Outcome.Unknown("lost");
            }
            return null;
        };
        way.cut = false;
        a.write("/y", 0, new byte[1], 0);
        a.fsync("/y");
        way.cut = true;
        Thread.sleep(3_000);
        way.cut = false;
        a.write("/z", 0, new byte[1], 0);
        a.fsync("/z");
        held.countDown();
        n1.leave(5 * SECOND);
        assertNotNull(get(KEYS.departed("n1")));
        assertEquals(0, cluster.store.range(KEYS.arenasOf("n1"), KEYS.arenasOf("n1").prefixEnd(), 0, true, 0, SECOND).keyValues().size());
    }
}
