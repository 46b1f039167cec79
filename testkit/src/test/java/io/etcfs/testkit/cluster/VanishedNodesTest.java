package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fence.DeclareDead;
import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.FenceIntent;
import io.etcfs.core.record.proto.Generation;
import io.etcfs.core.record.proto.Owner;
import io.etcfs.core.session.StartException;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.Txn;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Nodes that leave, that vanish, that come back: what becomes of their membership, arenas and open files. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class VanishedNodesTest {
    private static final long SECOND = 1_000_000_000L;
    private static final byte[] DATA = new byte[300_000];
    private static final int O_DIRECT = 040000;

    private final Keys keys = new Keys(TestCluster.NAME);
    private TestCluster cluster;
    private HookedStore way;
    private ClusterNode n1;
    private ClusterNode n2;
    private TestClient a;
    private TestClient b;

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(64L << 20);
        way = new HookedStore(cluster.store);
        n1 = cluster.start("n1");
        n2 = cluster.start("n2", way);
        a = new TestClient(n1);
        b = new TestClient(n2);
        b.mkdir("/d");
        b.write("/d/f", 0, DATA, 0);
        b.fsync("/d/f");
        assertTrue(exists(keys.arenasOf("n2")));
    }

    @AfterEach
    void stop() {
        cluster.fencer.release();
        way.hook = txn -> null;
        cluster.close();
        cluster.stopped.removeIf(s -> s.startsWith("n2: this node was fenced"));
        assertEquals(List.of(), cluster.stopped);
    }

    private static Call call() {
        return new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
    }

    private long count(Key prefix) throws Exception {
        return cluster.store.range(prefix, prefix.prefixEnd(), 0, true, 0, SECOND).count();
    }

    private boolean exists(Key prefix) throws Exception {
        return count(prefix) > 0;
    }

    private KeyValue get(Key key) throws Exception {
        return cluster.store.range(key, null, 0, false, 0, SECOND).only();
    }

    private interface Condition {
        boolean holds() throws Exception;
    }

    private static void await(String what, Condition condition) throws Exception {
        long until = System.nanoTime() + 40 * SECOND;
        while (!condition.holds()) {
            assertTrue(System.nanoTime() < until, "not within 40 s: " + what);
            Thread.sleep(5);
        }
    }

    private static void pause(long ns) {
        try {
            Thread.sleep(ns / 1_000_000);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private long generation() throws Exception {
        return Generation.parseFrom(get(keys.generation("n2")).value()).getGeneration();
    }

    /** It is gone, and its leases have run out. */
    private void vanish() throws Exception {
        way.cut = true;
        runOut();
    }

    private void runOut() throws Exception {
        for (Key leased : List.of(keys.session("n2"), keys.membership("n2"))) {
            KeyValue kv = get(leased);
            if (kv != null) {
                cluster.store.revokeLease(kv.leaseId(), SECOND);
            }
        }
    }

    private void comeBack() throws Exception {
        n2 = cluster.start("n2");
        b = new TestClient(n2);
    }

    @Test
    void whoLeavesIsNotFencedAndItsSpaceIsUsed() throws Exception {
        long freeBefore = a.freeBlocks();
        n2.leave(5 * SECOND);
        assertTrue(exists(keys.departed("n2")));
        assertFalse(exists(keys.membership("n2")));
        assertFalse(exists(keys.arenasOf("n2")));
        assertEquals(freeBefore, a.freeBlocks(), "what is free stays free");
        // 64 MiB are four arenas; one of them was n2's.
        for (int i = 0; i < 60; i++) {
            a.write("/fill" + i, 0, new byte[1 << 20], 0);
        }
        assertFalse(exists(keys.freeArenas()), "the arena that was given back is used");
        assertArrayEquals(DATA, a.read("/d/f"));
        assertEquals(List.of(), cluster.fencer.asked);
        assertFalse(exists(keys.fencesPending()) || exists(keys.fencesDone()));
        assertEquals(0, generation());
    }

    @Test
    void whoVanishesIsFencedOnceAndItsSpaceIsUsed() throws Exception {
        cluster.fencer.mode = TestFencer.Mode.CONFIRM;
        long session = get(keys.session("n2")).createRevision();
        vanish();
        await("the fence is done", () -> exists(keys.fenceDone("n2")));
        assertEquals(1, cluster.fencer.asked.size());
        assertEquals("n2", cluster.fencer.asked.getFirst().node());
        assertTrue(cluster.fencer.asked.getFirst().before() > session);
        assertEquals(1, generation());
        assertFalse(exists(keys.arenasOf("n2")) || exists(keys.fencesPending()));
        assertArrayEquals(DATA, a.read("/d/f"));
        for (int i = 0; i < 60; i++) {
            a.write("/fill" + i, 0, new byte[1 << 20], 0);
        }
        assertFalse(exists(keys.freeArenas()));
        way.cut = false;
        await("it learns that it was fenced", () -> cluster.stopped.stream().anyMatch(s -> s.startsWith("n2: this node was fenced")));
        comeBack();
        assertEquals(1, n2.status().generation());
        assertFalse(exists(keys.fenceDone("n2")));
        assertArrayEquals(DATA, b.read("/d/f"));
        b.unlink("/d/f");
    }

    @Test
    void withoutConfirmationNothingIsTaken() throws Exception {
        for (TestFencer.Mode mode : List.of(TestFencer.Mode.REFUSE, TestFencer.Mode.FAIL)) {
            cluster.fencer.mode = mode;
            vanish();
            await("the intent says why", () -> exists(keys.fencePending("n2")) && !FenceIntent.parseFrom(get(keys.fencePending("n2")).value()).getSaw().isEmpty());
            assertEquals("n2", FenceIntent.parseFrom(get(keys.fencePending("n2")).value()).getHost());
            assertEquals(0, generation());
            assertTrue(exists(keys.arenasOf("n2")));
            assertFalse(exists(keys.fenceDone("n2")));
            way = new HookedStore(cluster.store);
            n2 = cluster.start("n2", way);
            b = new TestClient(n2);
            assertFalse(exists(keys.fencePending("n2")), "it is back");
            b.write("/d/f", 0, DATA, 0);
            b.fsync("/d/f");
        }
    }

    @Test
    void whoComesBackWhileItIsSeveredIsLeftAlone() throws Exception {
        cluster.fencer.mode = TestFencer.Mode.HANG;
        vanish();
        await("somebody severs it", () -> !cluster.fencer.asked.isEmpty());
        comeBack();
        b.write("/d/g", 0, DATA, 0);
        cluster.fencer.release();
        await("the controller gives its claim up", () -> !exists(keys.fenceClaim("n2")));
        b.fsync("/d/g");
        assertArrayEquals(DATA, a.read("/d/g"));
        assertEquals(0, generation());
        assertTrue(exists(keys.arenasOf("n2")));
    }

    private record Opened(long ino, long handle) {}

    /** As a process has it that has been holding it for a while: the kernel has given the lookup back. */
    private static Opened open(ClusterNode node, String path) throws Exception {
        long dir = node.lookup(call(), 1, "d".getBytes()).ino();
        long ino = node.lookup(call(), dir, path.substring(3).getBytes()).ino();
        long handle = node.open(call(), ino, 2, false).handle();
        node.forget(ino, 1);
        return new Opened(ino, handle);
    }

    /** Three files are open on the node that vanishes: one that has its name, one without that is open elsewhere, too, one without that is not. */
    @Test
    void whatADeadNodeHadOpenIsFreed() throws Exception {
        long free = a.freeBlocks();
        for (String name : List.of("/d/named", "/d/shared", "/d/alone")) {
            b.write(name, 0, DATA, 0);
            open(n2, name);
        }
        Opened shared = open(n1, "/d/shared");
        a.list("/d");
        b.unlink("/d/shared");
        b.unlink("/d/alone");
        n2.sync(5 * SECOND);
        a.list("/d");
        assertEquals(3, count(keys.openedBy("n2")));
        assertEquals(2, count(keys.orphans()));
        vanish();
        await("the intent is there", () -> exists(keys.fencePending("n2")));
        assertEquals(3, count(keys.openedBy("n2")), "nothing of it is touched before it is known to be dead");
        assertEquals(DeclareDead.Result.DONE, new DeclareDead(cluster.store, cluster.clock, keys).run("n2", "a test", 20 * SECOND));
        await("its keys are gone", () -> !exists(keys.openedBy("n2")));
        await("the orphan that nobody else has open is freed", () -> count(keys.orphans()) == 1);
        assertEquals(1, count(keys.openedBy("n1")));
        n1.release(call(), shared.ino, shared.handle);
        await("the other one, too", () -> !exists(keys.orphans()) && !exists(keys.openedBy("n1")));
        a.unlink("/d/named");
        n1.sync(5 * SECOND);
        await("all blocks are free", () -> a.freeBlocks() == free);
    }

    /** It has more to take over than it gets done: what it has begun it frees, and the rest is the next node's. */
    @Test
    void whoLeavesWhileItTakesOverLeavesInOrder() throws Exception {
        HookedStore slow = new HookedStore(cluster.store);
        ClusterNode n0 = cluster.start("n0", slow);
        for (int i = 0; i < 300; i++) {
            String name = "/d/open" + i;
            b.write(name, 0, new byte[4096], 0);
            open(n2, name);
            b.unlink(name);
        }
        n2.sync(20 * SECOND);
        vanish();
        await("the intent is there", () -> exists(keys.fencePending("n2")));
        slow.hook = txn -> {
            pause(3_000_000);
            return null;
        };
        slow.rangeDelayMs = 3;
        assertEquals(DeclareDead.Result.DONE, new DeclareDead(cluster.store, cluster.clock, keys).run("n2", "a test", 20 * SECOND));
        await("it takes over", () -> exists(keys.openedBy("n0")));
        assertTrue(n0.leave(10 * SECOND));
        assertTrue(exists(keys.departed("n0")));
        assertFalse(exists(keys.openedBy("n0")));
        assertTrue(exists(keys.openedBy("n2")), "there is more than it gets done");
        // At its next sweep.
        await("the next node frees them", () -> !exists(keys.openedBy("n2")) && !exists(keys.orphans()) && !exists(keys.openedBy("n1")));
    }

    @Test
    void aNodeCanEndAtAnyStepOfLeaving() throws Exception {
        cluster.fencer.mode = TestFencer.Mode.CONFIRM;
        int left = 0;
        int fenced = 0;
        for (int last = 0; left < 2; last++) {
            assertTrue(last < 60, "it never gets to leave");
            b.write("/d/file" + last, 0, DATA, 0);
            AtomicInteger steps = new AtomicInteger(last);
            HookedStore its = way;
            way.hook = txn -> {
                if (txn.success().isEmpty()) {
                    return null;
                }
                if (steps.getAndDecrement() <= 0) {
                    its.cut = true;
                    return new Outcome.Unknown("it is dead");
                }
                return null;
            };
            n2.leave(SECOND / 2);
            boolean clean = !its.cut;
            its.cut = true;
            runOut();
            if (clean) {
                left++;
                assertTrue(exists(keys.departed("n2")) && !exists(keys.arenasOf("n2")) && !exists(keys.openedBy("n2")));
                Thread.sleep(200);
                assertFalse(exists(keys.fencePending("n2")) || exists(keys.fenceDone("n2")), "a clean departure is fenced");
            } else {
                fenced++;
                await("it is fenced", () -> exists(keys.fenceDone("n2")));
                assertFalse(exists(keys.departed("n2")) || exists(keys.arenasOf("n2")));
            }
            assertEquals(fenced, generation(), "each crash is fenced once");
            assertArrayEquals(DATA, a.read("/d/f"));
            way = new HookedStore(cluster.store);
            n2 = cluster.start("n2", way);
            b = new TestClient(n2);
        }
        assertTrue(fenced >= 4, "only " + fenced + " steps");
    }

    @Test
    void whoseMembershipHasRunOutCanNotDepart() throws Exception {
        // Its beats get no answer about the membership, so that it does not register again.
        way.hook = txn -> txn.success().stream().anyMatch(op -> op instanceof Op.Put p && p.key().equals(keys.membership("n2"))) ? new Outcome.Unknown("no answer") : null;
        cluster.store.revokeLease(get(keys.membership("n2")).leaseId(), SECOND);
        n2.leave(5 * SECOND);
        await("it is to be fenced", () -> exists(keys.fencePending("n2")));
        assertFalse(exists(keys.departed("n2")) || exists(keys.membership("n2")));
    }

    /** Another process is started under the name of one that runs: that goes on undisturbed, and stays a member. */
    @Test
    void aSecondProcessOfTheSameNameDoesNotJoin() throws Exception {
        long membership = get(keys.membership("n2")).modRevision();
        StartException refused = assertThrows(StartException.class, () -> cluster.start("n2"));
        assertTrue(refused.getMessage().contains("in use"), refused.getMessage());
        assertEquals(membership, get(keys.membership("n2")).modRevision());
        b.write("/d/f", 0, DATA, 0);
        b.fsync("/d/f");
    }

    /** A node that was cut off is started again elsewhere, leaves in order, and only then the first process gets through: what it had is others' by now. */
    @Test
    void whoFindsThatAnotherProcessWasTheNodeStops() throws Exception {
        vanish();
        cluster.start("n2").leave(5 * SECOND);
        assertTrue(exists(keys.departed("n2")));
        List<String> full = MibFiles.fill(a, "");
        n1.sync(5 * SECOND);
        a.unlink(full.removeLast());
        way.cut = false;
        await("it has a session again, or has stopped", () -> exists(keys.session("n2")) || !cluster.stopped.isEmpty());
        try {
            b.write("/late", 0, DATA, 0);
            b.fsync("/late");
        } catch (FsException e) {
            // As it should be.
        }
        MibFiles.check(a, full);
        await("it stops", () -> cluster.stopped.removeIf(s -> s.equals("n2: another process was started as node n2 while this one was cut off")));
    }

    /** It is a member already when etcd does not answer what it asks next, once. */
    @Test
    void whoCanNotStartLeaves() throws Exception {
        HookedStore its = new HookedStore(cluster.store);
        for (Key unanswered : List.of(keys.arenasOf("n3"), keys.openedBy("n3"))) {
            AtomicInteger answers = new AtomicInteger();
            its.lost = key -> key.equals(unanswered) && answers.getAndIncrement() == 0;
            assertThrows(StartException.class, () -> cluster.start("n3", its));
            assertTrue(exists(keys.departed("n3")));
            assertFalse(exists(keys.membership("n3")) || exists(keys.session("n3")));
        }
    }

    /** An outage takes session and membership, and its new session before it is a member again: a fence for the first would not hold what it wrote under the second. */
    @Test
    void anIntentEndsWithANewSession() throws Exception {
        cluster.fencer.mode = TestFencer.Mode.REFUSE;
        way.hook = txn -> txn.success().stream().anyMatch(op -> op instanceof Op.Put p && p.key().equals(keys.membership("n2"))) ? new Outcome.Unknown("no answer") : null;
        way.cut = true;
        runOut();
        await("the intent is there", () -> exists(keys.fencePending("n2")));
        way.cut = false;
        await("it has a session", () -> exists(keys.session("n2")));
        assertFalse(exists(keys.fencePending("n2")));
        way.hook = txn -> null;
        await("it is a member", () -> exists(keys.membership("n2")));
    }

    /** What a dead node had last needs no copies any more. */
    @Test
    void whatADeadNodeHeldHasNoSuspects() throws Exception {
        vanish();
        a.read("/d/f");
        Key owner = keys.owner(n1.lookup(call(), 1, "d".getBytes()).ino());
        n1.sync(5 * SECOND);
        assertEquals(1, Owner.parseFrom(get(owner).value()).getSuspectsCount());
        await("the intent is there", () -> exists(keys.fencePending("n2")));
        assertEquals(DeclareDead.Result.DONE, new DeclareDead(cluster.store, cluster.clock, keys).run("n2", "a test", 20 * SECOND));
        TestClient c = new TestClient(cluster.start("n3"));
        await("the next holder finds none", () -> {
            a.write("/d/f", 0, DATA, 0);
            c.write("/d/f", 0, DATA, 0);
            return Owner.parseFrom(get(owner).value()).getSuspectsCount() == 0;
        });
    }

    /** More of what was freed waits for a node that is away than is read at once. */
    @Test
    void whatWaitsForADeadNodeDoesNotHoldUpOtherSpace() throws Exception {
        ClusterNode n3 = cluster.start("n3");
        TestClient c = new TestClient(n3);
        c.mkdir("/c");
        a.write("/c/f", 0, DATA, 0);
        a.fsync("/c/f");
        vanish();
        for (int i = 0; i < 510; i++) {
            a.write("/d/g", 0, new byte[1], 0);
            n1.sync(5 * SECOND);
            a.unlink("/d/g");
            n1.sync(5 * SECOND);
        }
        assertTrue(freedBy("n1") >= 510);
        c.unlink("/c/f");
        n3.sync(5 * SECOND);
        await("what another node has freed is free", () -> freedBy("n3") == 0);
        assertTrue(freedBy("n1") >= 510);
    }

    private long freedBy(String node) throws Exception {
        return cluster.store.range(keys.unfrees(), keys.unfrees().prefixEnd(), 0, true, 0, SECOND).keyValues().stream().filter(kv -> keys.parseUnfree(kv.key()).node().equals(node)).count();
    }

    /** Its membership has run out, and etcd takes longer to answer its new registration than a session lives without beats. */
    @Test
    void whoseRegistrationIsSlowDepartsAllTheSame() throws Exception {
        CountDownLatch registering = new CountDownLatch(1);
        way.hook = txn -> {
            if (registering.getCount() > 0 && txn.success().stream().anyMatch(op -> op instanceof Op.Put p && p.key().equals(keys.membership("n2")))) {
                registering.countDown();
                pause(4 * SECOND);
                return new Outcome.Unknown("slow");
            }
            return null;
        };
        cluster.store.revokeLease(get(keys.membership("n2")).leaseId(), SECOND);
        registering.await();
        n2.leave(20 * SECOND);
        assertTrue(exists(keys.departed("n2")));
        assertFalse(exists(keys.fencePending("n2")));
    }

    /** It lost its session, others took what it held, and it left in order before anybody saw its next session. */
    @Test
    void whoLeftInOrderIsNoSuspect() throws Exception {
        long free = a.freeBlocks();
        way.cut = true;
        cluster.store.revokeLease(get(keys.session("n2")).leaseId(), SECOND);
        a.read("/d/f");
        Key owner = keys.owner(n1.lookup(call(), 1, "d".getBytes()).ino());
        a.unlink("/d/f");
        n1.sync(5 * SECOND);
        assertEquals(1, Owner.parseFrom(get(owner).value()).getSuspectsCount());
        n1.leave(5 * SECOND);
        way.cut = false;
        await("it is back", () -> exists(keys.session("n2")));
        n2.leave(5 * SECOND);
        assertTrue(exists(keys.departed("n2")));
        TestClient c = new TestClient(cluster.start("n3"));
        await("the next holder finds none", () -> {
            c.write("/d/g", 0, DATA, 0);
            c.fsync("/d/g");
            return Owner.parseFrom(get(owner).value()).getSuspectsCount() == 0;
        });
        c.unlink("/d/g");
        await("what was freed meanwhile is free", () -> !exists(keys.unfrees()) && c.freeBlocks() >= free);
    }

    /** An overwrite of a session that is lost is still on its way when the node leaves, and nothing is left to be published: its arenas must not be others' when it lands. (More than one
     * condition of leaving sees to that.) */
    @Test
    void whoseWriteIsStillOnItsWayDoesNotDepart() throws Exception {
        CountDownLatch onItsWay = new CountDownLatch(1);
        CountDownLatch landed = new CountDownLatch(1);
        cluster.device.beforeWrite = offset -> {
            onItsWay.countDown();
            try {
                landed.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        };
        cluster.tasks.start("late", () -> {
            try {
                b.write("/d/f", 0, new byte[4096], O_DIRECT);
            } catch (FsException e) {
                // What becomes of it is not what is asked here.
            }
        });
        onItsWay.await();
        cluster.store.revokeLease(get(keys.session("n2")).leaseId(), SECOND);
        await("it knows", () -> n2.status().sessionLeftNs() == 0);
        n2.leave(SECOND);
        boolean departed = exists(keys.departed("n2"));
        boolean kept = exists(keys.arenasOf("n2"));
        landed.countDown();
        assertFalse(departed);
        assertTrue(kept);
    }

    /** Each step of leaving that is still on its way when the next process has joined. */
    @Test
    void stepsOfLeavingThatComeLateChangeNothing() throws Exception {
        List<Txn> late = new CopyOnWriteArrayList<>();
        way.hook = txn -> {
            if (txn.success().stream().anyMatch(op -> op instanceof Op.Put p && (p.key().startsWith(keys.freeArenas()) || p.key().equals(keys.departed("n2"))))) {
                late.add(txn);
                return new Outcome.Unknown("slow");
            }
            return null;
        };
        n2.leave(SECOND / 2);
        assertFalse(late.isEmpty());
        comeBack();
        for (Txn txn : late) {
            assertInstanceOf(Outcome.Conflict.class, cluster.store.commit(txn, SECOND));
        }
        b.write("/d/f", 0, DATA, 0);
        b.fsync("/d/f");
        assertFalse(exists(keys.freeArenas()));
    }

    /** Another process registers between the registration of one and its session, and is then gone: who gets the session is a member on its own lease. */
    @Test
    void ofTwoProcessesThatJoinAtOnceOneIsTheMember() throws Exception {
        AtomicLong lease = new AtomicLong();
        HookedStore others = new HookedStore(cluster.store);
        others.hook = txn -> {
            for (Op op : txn.success()) {
                if (op instanceof Op.Put p && p.key().equals(keys.membership("n3"))) {
                    lease.set(p.leaseId());
                } else if (op instanceof Op.Put p && p.key().equals(keys.session("n3"))) {
                    others.cut = true;
                    return new Outcome.Unknown("it is dead");
                }
            }
            return null;
        };
        HookedStore own = new HookedStore(cluster.store);
        own.hook = txn -> {
            if (lease.get() == 0 && txn.success().stream().anyMatch(op -> op instanceof Op.Put p && p.key().equals(keys.session("n3")))) {
                cluster.tasks.start("other", () -> assertThrows(StartException.class, () -> cluster.start("n3", others)));
                while (!others.cut) {
                    Thread.onSpinWait();
                }
            }
            return null;
        };
        ClusterNode n3 = cluster.start("n3", own);
        cluster.store.revokeLease(lease.get(), SECOND);
        assertTrue(exists(keys.membership("n3")));
        n3.leave(5 * SECOND);
        assertTrue(exists(keys.departed("n3")));
    }
}
