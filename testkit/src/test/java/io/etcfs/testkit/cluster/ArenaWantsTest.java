package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fault.Fault;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.record.Keys;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Nobody gets ENOSPC while blocks are free in another node's arenas. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ArenaWantsTest {
    private static final int MIB = 1 << 20;
    private static final int BLOCK = 4096;
    private static final int O_DIRECT = 040000;
    private static final int DEVICE_MIB = 64;
    private static final int ARENA_MIB = 16;
    /** What may be left: blocks that wait for a batch, and the label. */
    private static final int LEFT_MIB = 2;

    private TestCluster cluster;
    private HookedStore way;
    private ClusterNode n1;
    private ClusterNode n2;
    private TestClient a;
    private TestClient b;
    private boolean broken;

    @BeforeEach
    void start() throws Exception {
        start(DEVICE_MIB);
    }

    private void start(int deviceMib) throws Exception {
        cluster = new TestCluster((long) deviceMib * MIB);
        way = new HookedStore(cluster.store);
        n1 = cluster.start("n1", way);
        n2 = cluster.start("n2");
        a = new TestClient(n1);
        b = new TestClient(n2);
        a.mkdir("/a");
        b.mkdir("/b");
    }

    @AfterEach
    void stop() {
        Fault.plant(Set.of());
        cluster.close();
        assertEquals(broken, !cluster.stopped.isEmpty(), cluster.stopped::toString);
    }

    @Test
    void whatOneNodeDeletesAnotherCanUse() throws Exception {
        List<String> full = MibFiles.fill(a, "/a");
        assertTrue(full.size() >= DEVICE_MIB - LEFT_MIB, full.size() + " MiB");
        List<String> kept = new ArrayList<>();
        for (int i = 0; i < full.size(); i++) {
            if (i % 2 == 0) {
                a.unlink(full.get(i));
            } else {
                kept.add(full.get(i));
            }
        }
        n1.sync(5_000_000_000L);
        List<String> written = MibFiles.fill(b, "/b");
        assertTrue(written.size() >= full.size() / 2 - LEFT_MIB, written.size() + " MiB of " + full.size() / 2);
        MibFiles.check(a, kept);
        MibFiles.check(a, written);
        MibFiles.check(b, written);
        // And back: what is freed in an arena that has gone to the other node.
        for (String path : kept) {
            a.unlink(path);
        }
        for (String path : written) {
            b.unlink(path);
        }
        n1.sync(5_000_000_000L);
        n2.sync(5_000_000_000L);
        List<String> again = MibFiles.fill(a, "/a");
        assertTrue(again.size() >= DEVICE_MIB - 2 * LEFT_MIB, again.size() + " MiB");
        MibFiles.check(b, again);
    }

    /** Both nodes write and delete at the same time. */
    private void writeAndDelete(int steps, int maxBytes) throws Exception {
        try (ExecutorService both = Executors.newVirtualThreadPerTaskExecutor()) {
            Future<Map<String, Byte>> one = both.submit(() -> churn(a, "/a", 1, steps, maxBytes));
            Future<Map<String, Byte>> two = both.submit(() -> churn(b, "/b", 2, steps, maxBytes));
            for (Future<Map<String, Byte>> done : List.of(one, two)) {
                for (Map.Entry<String, Byte> e : done.get().entrySet()) {
                    for (TestClient reader : List.of(a, b)) {
                        byte[] read = reader.read(e.getKey());
                        byte[] expected = new byte[read.length];
                        Arrays.fill(expected, e.getValue());
                        assertArrayEquals(expected, read, e.getKey());
                    }
                }
            }
        }
    }

    private static Map<String, Byte> churn(TestClient by, String directory, long seed, int steps, int maxBytes) throws FsException {
        Random random = new Random(seed);
        Map<String, Byte> files = new HashMap<>();
        for (int i = 0; i < steps; i++) {
            String path = directory + "/f" + random.nextInt(60);
            byte value = (byte) random.nextInt(1, 127);
            byte[] bytes = new byte[random.nextInt(1, maxBytes)];
            Arrays.fill(bytes, value);
            if (files.remove(path) != null) {
                by.unlink(path);
            }
            try {
                by.write(path, 0, bytes, 0);
                files.put(path, value);
                byte[] there = by.read(path);
                assertArrayEquals(Arrays.copyOf(bytes, there.length), there, path);
            } catch (FsException e) {
                assertEquals(Errno.ENOSPC, e.errno());
                by.unlink(path);
            }
        }
        return files;
    }

    @Test
    void aFullDeviceIsSharedByNodesThatWriteAndDelete() throws Exception {
        writeAndDelete(300, MIB);
    }

    /** The only arena goes to and fro. */
    private void shareOneArena() throws Exception {
        cluster.close();
        start(ARENA_MIB);
        writeAndDelete(2_000, 16 << 10);
    }

    @Test
    void oneArenaIsEnoughForTwoNodes() throws Exception {
        shareOneArena();
    }

    /** A write of node 1 is on its way to a new block of the only arena when node 2 wants to write. */
    private void askWhileAWriteIsUnderWay(Callable<?> meanwhile) throws Exception {
        cluster.close();
        start(ARENA_MIB);
        a.write("/a/first", 0, new byte[BLOCK], O_DIRECT);
        a.fsync("/a/first");
        CountDownLatch onItsWay = new CountDownLatch(1);
        CountDownLatch released = new CountDownLatch(1);
        cluster.device.beforeWrite = offset -> {
            if (onItsWay.getCount() > 0) {
                onItsWay.countDown();
                try {
                    released.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
        };
        try (ExecutorService both = Executors.newVirtualThreadPerTaskExecutor()) {
            Future<?> one = both.submit(() -> {
                a.write("/a/f", 0, MibFiles.content("/a/f"), O_DIRECT);
                return null;
            });
            assertTrue(onItsWay.await(10, TimeUnit.SECONDS));
            Future<?> two = both.submit(() -> {
                b.write("/b/f", 0, MibFiles.content("/b/f"), O_DIRECT);
                return null;
            });
            Thread.sleep(400);
            Future<?> three = both.submit(meanwhile);
            Thread.sleep(100);
            released.countDown();
            one.get();
            two.get();
            three.get();
        } finally {
            released.countDown();
        }
        for (TestClient reader : List.of(a, b)) {
            MibFiles.check(reader, List.of("/a/f", "/b/f"));
        }
    }

    @Test
    void anArenaIsGivenWhenAllInItIsPublished() throws Exception {
        askWhileAWriteIsUnderWay(() -> null);
    }

    /** Node 1 reads which arenas are its own while it gives the only one away, and hears the answer after that. */
    private void readWhileItIsGiven() throws Exception {
        askWhileAWriteIsUnderWay(() -> {
            way.afterRange = key -> {
                if (key.equals(new Keys(TestCluster.NAME).arenasOf("n1"))) {
                    try {
                        Thread.sleep(500);
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                    }
                }
            };
            a.write("/a/g", 0, MibFiles.content("/a/g"), O_DIRECT);
            return null;
        });
        MibFiles.check(b, List.of("/a/f", "/a/g", "/b/f"));
    }

    @Test
    void anArenaThatWasGivenIsNotTakenForOnesOwn() throws Exception {
        readWhileItIsGiven();
    }

    @Test
    void whoTakesItForHisOwnIsSeen() {
        Fault.plant(Set.of(Fault.GIVEN_ARENA_READ_LATE));
        broken = true;
        try {
            readWhileItIsGiven();
        } catch (Exception | AssertionError e) {
            // Perhaps. That the records are damaged is looked at in any case.
        }
    }

    /**
     * Node 1 claims an arena that nobody sweeps, and the answer of what is in it comes late: meanwhile it has found that the arena is its own, has used it and given it
     * to node 2.
     */
    private void claimThatIsReadLate() throws Exception {
        cluster.close();
        Keys keys = new Keys(TestCluster.NAME);
        cluster = new TestCluster((long) ARENA_MIB * MIB);
        HookedStore way2 = new HookedStore(cluster.store);
        way2.hook = txn -> txn.success().contains(Op.delete(keys.freeArena(0))) ? new Outcome.Unknown("lost") : null;
        n2 = cluster.start("n2", way2);
        b = new TestClient(n2);
        b.mkdir("/b");
        ClusterNode n3 = cluster.start("n3");
        new TestClient(n3).write("/b/gone", 0, new byte[MIB], 0);
        n3.leave(5_000_000_000L);
        b.unlink("/b/gone");
        n2.sync(5_000_000_000L);
        CountDownLatch claimed = new CountDownLatch(1);
        CountDownLatch answer = new CountDownLatch(1);
        way = new HookedStore(cluster.store);
        way.afterRange = key -> {
            if (key.equals(keys.blocksOf(0)) && claimed.getCount() > 0) {
                claimed.countDown();
                try {
                    answer.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
        };
        try {
            n1 = cluster.start("n1", way);
            a = new TestClient(n1);
            assertTrue(claimed.await(20, TimeUnit.SECONDS));
            a.write("/a", 0, MibFiles.content("/a"), O_DIRECT);
            a.fsync("/a");
            way2.hook = txn -> null;
            b.write("/b/f", 0, MibFiles.content("/b/f"), O_DIRECT);
            b.fsync("/b/f");
            assertEquals(0, n1.status().arenas());
        } finally {
            answer.countDown();
        }
        Thread.sleep(500);
        assertEquals(0, n1.status().arenas());
        a.write("/g", 0, MibFiles.content("/g"), O_DIRECT);
        MibFiles.check(b, List.of("/a", "/b/f", "/g"));
    }

    @Test
    void anArenaThatWasClaimedAndGivenIsNotTakenForOnesOwn() throws Exception {
        claimThatIsReadLate();
    }

    @Test
    void whoTakesAClaimedOneForHisOwnIsSeen() {
        Fault.plant(Set.of(Fault.GIVEN_ARENA_READ_LATE));
        assertThrows(AssertionError.class, this::claimThatIsReadLate);
    }

    /**
     * Node 1 reads what others have freed in the only arena, and hears the answer late: meanwhile it has given the arena to node 2, which has taken those blocks back and
     * used them, and has it again.
     */
    private void sweepThatIsReadLate() throws Exception {
        cluster.close();
        start(ARENA_MIB);
        Keys keys = new Keys(TestCluster.NAME);
        a.write("/a/gone", 0, MibFiles.content("/a/gone"), 0);
        a.fsync("/a/gone");
        CountDownLatch read = new CountDownLatch(1);
        CountDownLatch answer = new CountDownLatch(1);
        AtomicBoolean freed = new AtomicBoolean();
        way.lost = key -> {
            freed.compareAndSet(false, key.equals(keys.unfreeOf(0)) && exists(keys.unfreeOf(0)));
            return false;
        };
        way.afterRange = key -> {
            if (key.equals(keys.unfreeOf(0)) && freed.get() && read.getCount() > 0) {
                read.countDown();
                try {
                    answer.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
        };
        List<String> written;
        try {
            b.unlink("/a/gone");
            n2.sync(5_000_000_000L);
            assertTrue(read.await(20, TimeUnit.SECONDS));
            written = new ArrayList<>(MibFiles.fill(b, "/b"));
            assertTrue(written.size() >= ARENA_MIB - LEFT_MIB, written.size() + " MiB");
            b.unlink(written.removeFirst());
            n2.sync(5_000_000_000L);
            a.write("/a/f", 0, new byte[BLOCK], 0);
            a.fsync("/a/f");
            assertEquals(1, n1.status().arenas());
        } finally {
            answer.countDown();
        }
        Thread.sleep(500);
        List<String> more = MibFiles.fill(a, "/a");
        n1.sync(5_000_000_000L);
        for (TestClient reader : List.of(a, b)) {
            MibFiles.check(reader, written);
            MibFiles.check(reader, more);
        }
    }

    private boolean exists(Key prefix) {
        try {
            return cluster.store.range(prefix, prefix.prefixEnd(), 1, true, 0, 1_000_000_000L).count() > 0;
        } catch (StoreUnavailableException | StoreRejectedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void whatOthersTookBackIsNotTakenBackAgain() throws Exception {
        sweepThatIsReadLate();
    }

    @Test
    void toTakeItBackAgainIsSeen() {
        Fault.plant(Set.of(Fault.SWEPT_AS_READ));
        broken = true;
        try {
            sweepThatIsReadLate();
        } catch (Exception | AssertionError e) {
            // Perhaps. That the records are damaged is looked at in any case.
        }
    }

    /** Node 1 claims the only arena, does not hear what is in it, and has no need of it: its room is node 2's, which asks. */
    @Test
    void anArenaWhoseClaimWasNotHeardOfToItsEndCanBeGiven() throws Exception {
        cluster.close();
        Keys keys = new Keys(TestCluster.NAME);
        cluster = new TestCluster((long) ARENA_MIB * MIB);
        cluster.requestDeadlineNs = 20_000_000_000L;
        HookedStore way2 = new HookedStore(cluster.store);
        way2.hook = txn -> txn.success().contains(Op.delete(keys.freeArena(0))) ? new Outcome.Unknown("lost") : null;
        n2 = cluster.start("n2", way2);
        b = new TestClient(n2);
        ClusterNode n3 = cluster.start("n3");
        new TestClient(n3).write("/gone", 0, new byte[MIB], 0);
        n3.leave(5_000_000_000L);
        b.unlink("/gone");
        n2.sync(5_000_000_000L);
        CountDownLatch lost = new CountDownLatch(1);
        way = new HookedStore(cluster.store);
        way.lost = key -> {
            boolean first = key.equals(keys.blocksOf(0)) && lost.getCount() > 0;
            if (first) {
                lost.countDown();
            }
            return first;
        };
        n1 = cluster.start("n1", way);
        assertTrue(lost.await(20, TimeUnit.SECONDS));
        assertTrue(exists(keys.arenasOf("n1")));
        way2.hook = txn -> null;
        b.write("/f", 0, MibFiles.content("/f"), O_DIRECT);
        MibFiles.check(b, List.of("/f"));
    }

    @Test
    void anArenaThatIsGivenBeforeThatIsSeen() {
        Fault.plant(Set.of(Fault.ARENA_GIVEN_IN_USE));
        broken = true;
        assertThrows(ExecutionException.class, () -> askWhileAWriteIsUnderWay(() -> null));
    }

    @Test
    void whereNobodyHasRoomThatIsSaidSoon() throws Exception {
        List<String> full = MibFiles.fill(a, "/a");
        long before = System.nanoTime();
        List<String> rest = MibFiles.fill(b, "/b");
        assertTrue(rest.size() <= 1, "there is no more room than what the last file had: " + rest);
        assertTrue(System.nanoTime() - before < 5_000_000_000L);
        MibFiles.check(b, full);
        assertEquals(0, cluster.store.range(new Keys(TestCluster.NAME).arenaWants(), new Keys(TestCluster.NAME).arenaWants().prefixEnd(), 0, true, 0, 1_000_000_000L).count());
    }

    /** Node 1 has the only arena, and nobody hears of it for longer than its session lives. */
    private void writeWhileWhoHasRoomIsAway() throws Exception {
        cluster.close();
        start(ARENA_MIB);
        a.write("/a/f", 0, MibFiles.content("/a/f"), 0);
        a.fsync("/a/f");
        try (ExecutorService apart = Executors.newVirtualThreadPerTaskExecutor()) {
            way.cut = true;
            Future<?> back = apart.submit(() -> {
                Thread.sleep(5_000);
                way.cut = false;
                return null;
            });
            b.write("/b/f", 0, MibFiles.content("/b/f"), 0);
            back.get();
        } finally {
            way.cut = false;
        }
        MibFiles.check(b, List.of("/a/f", "/b/f"));
        MibFiles.check(a, List.of("/b/f"));
    }

    @Test
    void aMemberThatHasRoomAndDoesNotAnswerIsWaitedFor() throws Exception {
        writeWhileWhoHasRoomIsAway();
    }

    @Test
    void notToWaitForItIsSeen() {
        Fault.plant(Set.of(Fault.UNANSWERED_IS_FULL));
        assertEquals(Errno.ENOSPC, assertThrows(FsException.class, this::writeWhileWhoHasRoomIsAway).errno());
    }

    /** Each look for room gets no answer at one of its steps, again and again for longer than others are asked. */
    private void writeWhileMessagesAreLost() throws Exception {
        cluster.close();
        start(ARENA_MIB);
        b.write("/b/first", 0, new byte[BLOCK], 0);
        b.fsync("/b/first");
        Keys keys = new Keys(TestCluster.NAME);
        long untilNs = System.nanoTime() + 5_000_000_000L;
        Set<Key> lost = Set.of(keys.arenasOf("n1"), keys.freeArenas());
        way.lost = key -> lost.contains(key) && System.nanoTime() < untilNs;
        a.write("/a/f", 0, MibFiles.content("/a/f"), 0);
        assertTrue(System.nanoTime() >= untilNs);
        MibFiles.check(b, List.of("/a/f"));
    }

    @Test
    void anAnswerThatIsLostDoesNotMeanThatThereIsNoRoom() throws Exception {
        writeWhileMessagesAreLost();
    }

    @Test
    void toTakeItForThatIsSeen() {
        Fault.plant(Set.of(Fault.UNANSWERED_IS_FULL));
        assertEquals(Errno.ENOSPC, assertThrows(FsException.class, this::writeWhileMessagesAreLost).errno());
    }

    private List<Integer> bothNeedWhatTheOtherHas() throws Exception {
        return bothNeedWhatTheOtherHas(0);
    }

    /** Each node has an arena with half as much room as is left; both need more than that, at the same time, or the first one first, and its reads take that long. */
    private List<Integer> bothNeedWhatTheOtherHas(long firstsRangesMs) throws Exception {
        cluster.close();
        start(2 * ARENA_MIB);
        TestClient[] clients = {a, b};
        String[] big = {"/a/big", "/b/big"};
        for (int k = 0; k < 2; k++) {
            clients[k].write(big[k], 0, new byte[ARENA_MIB * MIB - MIB / 2 - (k == 0 ? BLOCK : 0)], 0);
            clients[k].fsync(big[k]);
        }
        int wanted = MIB * 3 / 4;
        CountDownLatch both = new CountDownLatch(2);
        way.rangeDelayMs = firstsRangesMs;
        try (ExecutorService apart = Executors.newVirtualThreadPerTaskExecutor()) {
            List<Future<Integer>> written = new ArrayList<>();
            for (int k = 0; k < 2; k++) {
                TestClient by = clients[k];
                String path = k == 0 ? "/a/f" : "/b/f";
                by.write(path, 0, new byte[0], 0);
                written.add(apart.submit(() -> {
                    both.countDown();
                    both.await();
                    while (by == b && firstsRangesMs > 0 && cluster.store.range(new Keys(TestCluster.NAME).arenaWant("n1"), null, 0, true, 0, 1_000_000_000L).keyValues().isEmpty()) {
                        Thread.sleep(5);
                    }
                    try {
                        by.fallocate(path, 0, wanted, 0);
                        return wanted;
                    } catch (FsException e) {
                        assertEquals(Errno.ENOSPC, e.errno());
                        return 0;
                    }
                }));
            }
            return List.of(written.get(0).get(), written.get(1).get());
        }
    }

    @Test
    void oneOfTwoThatAreShortGetsWhatBothHave() throws Exception {
        assertEquals(List.of(0, MIB * 3 / 4), bothNeedWhatTheOtherHas().stream().sorted().toList());
    }

    /** The node that is slower in asking for the free pool, and asks first. */
    private List<Integer> theSlowerAsksFirst() throws Exception {
        return bothNeedWhatTheOtherHas(50);
    }

    @Test
    void whatWasGivenIsLeftToWhoAskedFirst() throws Exception {
        assertEquals(List.of(0, MIB * 3 / 4), theSlowerAsksFirst().stream().sorted().toList());
    }

    @Test
    void toTakeItBackIsSeen() {
        Fault.plant(Set.of(Fault.GIVEN_ARENA_TAKEN_BACK));
        Throwable failure = assertThrows(ExecutionException.class, this::theSlowerAsksFirst).getCause();
        assertTrue(failure instanceof AssertionError && failure.getMessage().contains("ETIMEDOUT"), failure::toString);
    }

    @Test
    void ifNeitherGivesThatIsSeen() throws Exception {
        Fault.plant(Set.of(Fault.SHORT_GIVES_NOTHING, Fault.UNANSWERED_IS_FULL));
        assertEquals(List.of(0, 0), bothNeedWhatTheOtherHas());
    }
}
