package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.domain.Inode;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.fault.Rare;
import io.etcfs.core.file.Extent;
import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.fs.MustWait;
import io.etcfs.core.fs.Operations;
import io.etcfs.core.record.Keys;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.Op;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A write in place that is on its way to the device while its node is cut off, and lands after another node has taken over. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LateWritesTest {
    private static final int BLOCK = 4096;
    private static final int O_RDWR = 2;
    private static final int O_DSYNC = 010000;
    private static final int O_DIRECT = 040000;
    private final Keys keys = new Keys(TestCluster.NAME);
    private final CountDownLatch released = new CountDownLatch(1);
    private TestCluster cluster;
    private HookedStore way;
    private HookedStore waySecond;
    private boolean staysCut;
    private TestClient one;
    private TestClient two;
    private CompletableFuture<Errno> late;

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(256L << 20);
        way = new HookedStore(cluster.store);
        one = new TestClient(cluster.start("n1", way));
        waySecond = new HookedStore(cluster.store);
        two = new TestClient(cluster.start("n2", waySecond));
    }

    @AfterEach
    void stop() {
        Fault.plant(Set.of());
        Rare.prefer(Set.of());
        way.cut = staysCut;
        released.countDown();
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private static byte[] bytes(int c, int blocks) {
        byte[] b = new byte[blocks * BLOCK];
        Arrays.fill(b, (byte) c);
        return b;
    }

    private static byte[] join(byte[] a, byte[] b) {
        byte[] all = Arrays.copyOf(a, a.length + b.length);
        System.arraycopy(b, 0, all, a.length, b.length);
        return all;
    }

    /** n1 has overwritten the first block of /f, which n2 has to be shown as 'a' or 'b' for ever, and is gone for all that n2 knows. */
    private void overwriteLate() throws Exception {
        if (!two.list("/").contains("f")) {
            one.write("/f", 0, bytes('a', 2), O_DIRECT);
            one.fsync("/f");
        }
        // The token is with n1.
        one.write("/f", BLOCK, bytes('a', 1), O_DIRECT);
        one.fsync("/f");
        long inTheWay = deviceBlock() * BLOCK;
        CountDownLatch onItsWay = new CountDownLatch(1);
        AtomicLong first = new AtomicLong();
        cluster.device.beforeWrite = offset -> {
            if (offset == inTheWay && first.getAndIncrement() == 0) {
                onItsWay.countDown();
                try {
                    released.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
        };
        late = CompletableFuture.supplyAsync(() -> {
            try {
                one.write("/f", 0, bytes('b', 1), O_DIRECT);
                return null;
            } catch (FsException e) {
                return e.errno();
            }
        }, r -> Thread.ofVirtual().start(r));
        assertTrue(onItsWay.await(10, TimeUnit.SECONDS));
        way.cut = true;
    }

    /** Where the file's first block is, as published. */
    private long deviceBlock() throws Exception {
        for (KeyValue kv : cluster.store.range(keys.inodesOf(1), keys.inodesOf(1).prefixEnd(), 0, false, 0, 1_000_000_000L).keyValues()) {
            Inode i = Inode.decode(keys.parseInode(kv.key()).ino(), 1, kv.value());
            if (i.isRegular()) {
                Extent e = i.extents.at(0);
                return e.deviceBlock();
            }
        }
        throw new AssertionError("no file");
    }

    private Errno land() throws InterruptedException, ExecutionException {
        way.cut = false;
        released.countDown();
        return late.get();
    }

    @Test
    void whatWasReadStaysWhatItWas() throws Exception {
        overwriteLate();
        byte[] seen = two.read("/f");
        assertArrayEquals(bytes('a', 2), seen);
        Errno answer = land();
        assertArrayEquals(seen, two.read("/f"));
        assertEquals(Errno.EIO, answer, "n2 was shown the file without it");
        assertArrayEquals(seen, one.read("/f"));
    }

    @Test
    void whatWasWrittenStays() throws Exception {
        overwriteLate();
        two.write("/f", 100, bytes('c', 1), 0);
        byte[] seen = two.read("/f");
        assertEquals('a', seen[99]);
        land();
        assertArrayEquals(seen, two.read("/f"));
        assertArrayEquals(seen, one.read("/f"));
    }

    @Test
    void blocksThatWereFreedAreNotUsedAgainBeforeItsNodeIsBack() throws Exception {
        Rare.prefer(Set.of(Rare.BLOCKS_REUSED_FIRST));
        assertEquals(0, reusedWhileLate());
    }

    @Test
    void blocksThatAreFreedAtOnceAreUsedAgain() throws Exception {
        Rare.prefer(Set.of(Rare.BLOCKS_REUSED_FIRST));
        Fault.plant(Set.of(Fault.FREED_WHILE_SUSPECT));
        assertNotEquals(0, reusedWhileLate());
    }

    /** How many new files of n2 have got the block that n1 may still write, after the file was removed whose it was. It is in an arena of n2's. */
    private int reusedWhileLate() throws Exception {
        two.write("/f", 0, bytes('a', 2), O_DIRECT);
        two.fsync("/f");
        overwriteLate();
        long late = deviceBlock();
        two.unlink("/f");
        int reused = 0;
        for (int i = 0; i < 20; i++) {
            two.write("/g", 0, bytes('g', 2), O_DIRECT);
            two.fsync("/g");
            reused += deviceBlock() == late ? 1 : 0;
            two.unlink("/g");
        }
        return reused;
    }

    @Test
    void whatIsShownIsPublished() throws Exception {
        assertEquals(false, shownBeforeItIsPublished());
    }

    @Test
    void withoutTheWaitItIsShownBefore() throws Exception {
        Fault.plant(Set.of(Fault.COPY_SERVED_UNPUBLISHED));
        assertEquals(true, shownBeforeItIsPublished());
    }

    /** Whether n2 answers a read of copied blocks while its batches do not get through: did it end now, the next node would find the old ones. */
    private boolean shownBeforeItIsPublished() throws Exception {
        overwriteLate();
        two.stat("/f");
        CountDownLatch open = new CountDownLatch(1);
        CountDownLatch held = new CountDownLatch(1);
        waySecond.hook = txn -> {
            if (txn.success().stream().anyMatch(o -> o instanceof Op.Put p && p.key().equals(keys.batch("n2")))) {
                held.countDown();
                try {
                    open.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
            return null;
        };
        CompletableFuture<byte[]> read = CompletableFuture.supplyAsync(() -> {
            try {
                return two.read("/f");
            } catch (FsException e) {
                throw new IllegalStateException(e);
            }
        }, r -> Thread.ofVirtual().start(r));
        try {
            assertTrue(held.await(10, TimeUnit.SECONDS));
            Thread.sleep(300);
            return read.isDone();
        } finally {
            open.countDown();
            assertArrayEquals(bytes('a', 2), read.get());
        }
    }

    /** The node is back, with a newer session: nothing has to be copied any more. */
    @Test
    void nothingIsCopiedOnceItsNodeIsBack() throws Exception {
        overwriteLate();
        two.stat("/f");
        long before = deviceBlock();
        land();
        one.write("/another", 0, bytes('x', 1), 0);
        two.stat("/another");
        Thread.sleep(2_500);
        assertEquals('b', two.read("/f")[0]);
        assertEquals(before, deviceBlock());
    }

    @Test
    void whatCameLateIsDurableBeforeItIsShown() throws Exception {
        assertArrayEquals(join(bytes('b', 1), bytes('a', 1)), shownAndAfterAPowerLoss());
    }

    @Test
    void withoutAFlushWhatCameLateGoesWithThePower() throws Exception {
        Fault.plant(Set.of(Fault.TAKEN_BEFORE_FLUSH));
        assertArrayEquals(bytes('a', 2), shownAndAfterAPowerLoss());
    }

    /** What n2 reads after the device lost its power, once it was shown the bytes that came late. The next process of n1 is there then, and has flushed nothing. */
    private byte[] shownAndAfterAPowerLoss() throws Exception {
        overwriteLate();
        two.stat("/f");
        staysCut = true;
        released.countDown();
        awaitLanding();
        cluster.start("n1");
        Thread.sleep(2_500);
        assertArrayEquals(join(bytes('b', 1), bytes('a', 1)), two.read("/f"));
        cluster.device.loseUnflushed();
        return two.read("/f");
    }

    /** No write of a process is on its way when the next one of its node has a session: the node waits for that, and a machine for what a process left that ended. */
    private void awaitLanding() throws Exception {
        long at = deviceBlock() * BLOCK;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment block = arena.allocate(BLOCK, BLOCK);
            for (int i = 0; i < 1_000; i++) {
                cluster.device.read(at, block);
                if (block.get(ValueLayout.JAVA_BYTE, BLOCK - 1) == 'b') {
                    return;
                }
                Thread.sleep(10);
            }
        }
        throw new AssertionError("it has not landed");
    }

    /** A thread that must not wait makes a synchronous write, which is cut short, and hands the request over. */
    private Errno handedOver() throws Exception {
        ClusterNode n1 = cluster.node(0);
        Operations.Created f = n1.create(call(1, true), 1, "f".getBytes(StandardCharsets.UTF_8), 0644, 0, O_RDWR);
        long ino = f.entry().ino();
        long handle = f.opened().handle();
        try (Arena arena = Arena.ofShared()) {
            MemorySegment data = arena.allocate(BLOCK, BLOCK);
            n1.write(call(2, true), ino, handle, 0, data.fill((byte) 'a'), O_RDWR | O_DIRECT, false, false);
            n1.fsync(call(3, true), ino, handle, false);
            long inTheWay = deviceBlock() * BLOCK;
            CountDownLatch onItsWay = new CountDownLatch(1);
            cluster.device.beforeWrite = offset -> {
                if (offset == inTheWay && onItsWay.getCount() > 0) {
                    onItsWay.countDown();
                    try {
                        released.await();
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                    }
                }
            };
            data.fill((byte) 'b');
            CompletableFuture<Boolean> handed = CompletableFuture.supplyAsync(() -> {
                try {
                    n1.write(call(4, false), ino, handle, 0, data, O_RDWR | O_DIRECT | O_DSYNC, false, false);
                    return false;
                } catch (MustWait e) {
                    return true;
                } catch (FsException e) {
                    throw new IllegalStateException(e);
                }
            }, r -> Thread.ofVirtual().start(r));
            assertTrue(onItsWay.await(10, TimeUnit.SECONDS));
            way.cut = true;
            assertArrayEquals(bytes('a', 1), two.read("/f"));
            way.cut = false;
            // Its session is over, and so that it is seen before the write is.
            Thread.sleep(1_000);
            released.countDown();
            assertTrue(handed.get(), "it was not handed over");
            try {
                n1.write(call(4, true), ino, handle, 0, data, O_RDWR | O_DIRECT | O_DSYNC, false, false);
                return null;
            } catch (FsException e) {
                return e.errno();
            }
        } finally {
            n1.release(call(5, true), ino, handle);
            n1.forget(ino, 1);
        }
    }

    private static Call call(long unique, boolean mayWait) {
        return new Call(unique, 0, 0, 1, mayWait, Call.Interruption.NEVER);
    }

    @Test
    void whatIsHandedOverIsNotMadeAgainAfterOthers() throws Exception {
        assertEquals(Errno.EIO, handedOver());
        assertArrayEquals(bytes('a', 1), two.read("/f"));
    }

    @Test
    void madeAgainAfterOthersThatIsSeen() throws Exception {
        Fault.plant(Set.of(Fault.MADE_AGAIN_AFTER_OTHERS));
        assertEquals(null, handedOver());
    }

    /** By the time that the write is looked at again its node has the token back from those who have written over it. */
    @Test
    void whatIsSeenLateIsNotMadeAgainAfterOthers() throws Exception {
        ClusterNode n1 = cluster.node(0);
        one.write("/f", 0, bytes('a', 1), O_DIRECT);
        one.fsync("/f");
        long inTheWay = deviceBlock() * BLOCK;
        long ino = n1.lookup(call(1, true), 1, "f".getBytes(StandardCharsets.UTF_8)).ino();
        long handle = n1.open(call(2, true), ino, O_RDWR, false).handle();
        CountDownLatch onItsWay = new CountDownLatch(1);
        CountDownLatch looking = new CountDownLatch(1);
        CountDownLatch goesOn = new CountDownLatch(1);
        cluster.device.beforeWrite = offset -> {
            if (offset == inTheWay && onItsWay.getCount() > 0) {
                onItsWay.countDown();
                await(released);
            }
        };
        Call held = new Call(3, 0, 0, 1, true, () -> {
            looking.countDown();
            await(goesOn);
            return false;
        });
        try (Arena arena = Arena.ofShared()) {
            MemorySegment data = arena.allocate(BLOCK, BLOCK).fill((byte) 'b');
            late = CompletableFuture.supplyAsync(() -> {
                try {
                    n1.write(held, ino, handle, 0, data, O_RDWR | O_DIRECT, false, false);
                    return null;
                } catch (FsException e) {
                    return e.errno();
                }
            }, r -> Thread.ofVirtual().start(r));
            assertTrue(onItsWay.await(10, TimeUnit.SECONDS));
            way.deaf = true;
            way.cut = true;
            two.write("/f", 0, bytes('c', 1), O_DIRECT);
            two.fsync("/f");
            released.countDown();
            assertTrue(looking.await(10, TimeUnit.SECONDS));
            way.cut = false;
            way.deaf = false;
            one.write("/another", 0, bytes('x', 1), 0);
            goesOn.countDown();
            Errno answer = late.get();
            assertArrayEquals(bytes('c', 1), two.read("/f"));
            assertEquals(Errno.EIO, answer);
        } finally {
            n1.release(call(4, true), ino, handle);
            n1.forget(ino, 1);
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void withoutCopyingWhatWasReadChanges() throws Exception {
        Fault.plant(Set.of(Fault.SERVED_WITHOUT_COPY));
        overwriteLate();
        byte[] seen = two.read("/f");
        land();
        assertNotEquals((Object) seen[0], two.read("/f")[0]);
    }

    @Test
    void withoutEpochsWhatWasWrittenIsLost() throws Exception {
        Fault.plant(Set.of(Fault.EPOCH_IGNORED));
        overwriteLate();
        two.write("/f", 0, bytes('c', 1), O_DIRECT);
        land();
        assertThrows(AssertionError.class, () -> assertArrayEquals(join(bytes('c', 1), bytes('a', 1)), two.read("/f")));
    }
}
