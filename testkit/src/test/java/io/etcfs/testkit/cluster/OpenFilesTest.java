package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fault.Fault;
import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.fs.MustWait;
import io.etcfs.core.record.Keys;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.Txn;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Rules of spec/Orphans.tla that the simulator seldom sees broken, or never: each case, and the same with the rule broken. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class OpenFilesTest {
    private static final long SECOND = 1_000_000_000L;
    private static final long LOOKED_UP_MS = 1_000;
    private static final int O_RDWR = 2;
    private static final Keys KEYS = new Keys(TestCluster.NAME);

    private TestCluster cluster;
    private HookedStore way;
    private ClusterNode n1;
    private TestClient a;
    private TestClient b;

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(64L << 20);
        way = new HookedStore(cluster.store);
        n1 = cluster.start("n1", way);
        a = new TestClient(n1);
        b = new TestClient(cluster.start("n2"));
    }

    @AfterEach
    void stop() {
        Fault.plant(Set.of());
        way.hook = txn -> null;
        cluster.recordsArePlanted();
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private static Call call() {
        return new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
    }

    private boolean there(Key key) throws Exception {
        return cluster.store.range(key, null, 0, false, 0, SECOND).only() != null;
    }

    private static boolean deletes(Txn txn, Key key) {
        return txn.success().stream().anyMatch(op -> op.equals(Op.delete(key)) || op instanceof Op.Nested n && deletes(n.txn(), key));
    }

    private static boolean puts(Txn txn, Key key) {
        return txn.success().stream().anyMatch(op -> op instanceof Op.Put p && p.key().equals(key));
    }

    /** n1 knows /f, and another node has the directory, too. */
    private long looked() throws Exception {
        a.write("/f", 0, "text".getBytes(StandardCharsets.UTF_8), 0);
        a.fsync("/f");
        return n1.lookup(call(), 1, "f".getBytes(StandardCharsets.UTF_8)).ino();
    }

    private boolean readable(long ino, long handle) {
        try (Arena arena = Arena.ofConfined()) {
            return n1.read(call(), ino, handle, 0, 4, O_RDWR, arena.allocate(16_384, 4096)).byteSize() == 4;
        } catch (FsException e) {
            return false;
        }
    }

    /** The delete of {@code open:} by an earlier close is carried out long after the file was opened again and the token given away. True: that open is still good. */
    private boolean outlivesALateClose() throws Exception {
        long ino = looked();
        Key open = KEYS.open(1, ino, "n1");
        long first = n1.open(call(), ino, O_RDWR, false).handle();
        b.list("/");
        assertTrue(there(open), "not pinned as the token became SHARED");
        AtomicReference<Txn> late = new AtomicReference<>();
        CompletableFuture<Long> second = new CompletableFuture<>();
        way.hook = txn -> {
            if (deletes(txn, open) && late.compareAndSet(null, txn)) {
                try {
                    second.complete(n1.open(call(), ino, O_RDWR, false).handle());
                } catch (FsException e) {
                    second.completeExceptionally(e);
                }
                return new Outcome.Unknown("late");
            }
            return null;
        };
        n1.release(call(), ino, first);
        long handle = second.get(10, TimeUnit.SECONDS);
        b.write("/g", 0, new byte[1], 0);
        cluster.store.commit(late.get(), SECOND);
        b.unlink("/f");
        b.fsync("/g");
        boolean good = readable(ino, handle);
        n1.release(call(), ino, handle);
        n1.forget(ino, 1);
        return good;
    }

    @Test
    void aCloseThatComesLateLeavesTheNextOpenAlone() throws Exception {
        assertTrue(outlivesALateClose());
    }

    @Test
    void itTakesThePinIfThatIsNotPutAgain() throws Exception {
        Fault.plant(Set.of(Fault.OPEN_PINNED_ONCE));
        assertEquals(false, outlivesALateClose());
    }

    @Test
    void itTakesThePinIfItDoesNotCompare() throws Exception {
        Fault.plant(Set.of(Fault.CLOSED_BLINDLY));
        assertEquals(false, outlivesALateClose());
    }

    /** An open is asked for while the batch that gives the token away is on its way. True: it waits, or is good for what it was answered. */
    private boolean isNotOpenedWhileTheTokenGoes() throws Exception {
        long ino = looked();
        Key lock = KEYS.lockExclusive(1, "n1");
        AtomicReference<Long> handle = new AtomicReference<>();
        AtomicReference<Boolean> asked = new AtomicReference<>(false);
        way.hook = txn -> {
            if (deletes(txn, lock) && !asked.getAndSet(true)) {
                try {
                    handle.set(n1.open(new Call(1, 0, 0, 1, false, Call.Interruption.NEVER), ino, O_RDWR, false).handle());
                } catch (MustWait e) {
                    // As it should.
                } catch (FsException e) {
                    throw new IllegalStateException(e);
                }
            }
            return null;
        };
        // The name that was just looked up would be pinned for who is about to open it.
        Thread.sleep(700);
        b.write("/g", 0, new byte[1], 0);
        b.unlink("/f");
        b.fsync("/g");
        assertTrue(asked.get());
        boolean good = handle.get() == null || readable(ino, handle.get());
        if (handle.get() != null) {
            n1.release(call(), ino, handle.get());
        }
        n1.forget(ino, 1);
        return good;
    }

    @Test
    void nothingIsOpenedUnderATokenThatGoes() throws Exception {
        assertTrue(isNotOpenedWhileTheTokenGoes());
    }

    @Test
    void whatIsOpenedThenIsFreed() throws Exception {
        Fault.plant(Set.of(Fault.OPENED_WHILE_GIVEN));
        assertEquals(false, isNotOpenedWhileTheTokenGoes());
    }

    /** The last batch of a process that was killed arrives while the next one starts, and pins a file. True: that pin is taken away again. */
    private boolean aPinOfTheProcessBeforeGoes() throws Exception {
        long ino = looked();
        Key opened = KEYS.opened("n1", 1, ino);
        n1.open(call(), ino, O_RDWR, false);
        AtomicReference<Txn> late = new AtomicReference<>();
        way.hook = txn -> {
            if (puts(txn, opened) && late.compareAndSet(null, txn)) {
                // As if it was killed.
                way.cut = true;
                return new Outcome.Unknown("killed");
            }
            return null;
        };
        Thread.startVirtualThread(() -> {
            try {
                b.list("/");
            } catch (FsException e) {
                cluster.stopped.add("n2: " + e);
            }
        });
        for (int i = 0; i < 500 && late.get() == null; i++) {
            Thread.sleep(10);
        }
        assertNotNull(late.get());
        CompletableFuture<ClusterNode> next = new CompletableFuture<>();
        Thread.startVirtualThread(() -> {
            try {
                next.complete(cluster.start("n1"));
            } catch (Exception e) {
                next.completeExceptionally(e);
            }
        });
        Thread.sleep(500);
        cluster.store.commit(late.get(), SECOND);
        assertTrue(there(opened), "the session of the process before was gone already");
        next.get(20, TimeUnit.SECONDS);
        for (int i = 0; i < 30 && there(opened); i++) {
            Thread.sleep(100);
        }
        return !there(opened);
    }

    @Test
    void whatTheProcessBeforeHadOpenIsReadOnceItCanOpenNoMore() throws Exception {
        assertTrue(aPinOfTheProcessBeforeGoes());
    }

    @Test
    void readBeforeItIsMissed() throws Exception {
        Fault.plant(Set.of(Fault.OPENED_READ_EARLY));
        assertEquals(false, aPinOfTheProcessBeforeGoes());
    }

    /** n1 knows a file that n2 has open and removes, and opens it by its number then: as who looked it up before does. */
    private Errno openedWithoutName() throws Exception {
        long ino = looked();
        // Else it is pinned with the token, as n1 may be about to open it.
        Thread.sleep(LOOKED_UP_MS);
        ClusterNode n2 = cluster.node(1);
        n2.lookup(call(), 1, "f".getBytes(StandardCharsets.UTF_8));
        long kept = n2.open(call(), ino, O_RDWR, false).handle();
        b.unlink("/f");
        n2.sync(5 * SECOND);
        assertTrue(there(KEYS.inode(1, ino)), "freed while it is open elsewhere");
        try {
            n1.release(call(), ino, n1.open(call(), ino, O_RDWR, false).handle());
            return null;
        } catch (FsException e) {
            return e.errno();
        } finally {
            n2.release(call(), ino, kept);
        }
    }

    @Test
    void aFileWithoutANameIsNotOpenedByWhoHasItNotOpen() throws Exception {
        assertEquals(Errno.ESTALE, openedWithoutName());
    }

    @Test
    void itIsOpenedIfTheNameIsNotLookedAt() throws Exception {
        Fault.plant(Set.of(Fault.OPENED_WITHOUT_NAME));
        assertNull(openedWithoutName());
    }
}
