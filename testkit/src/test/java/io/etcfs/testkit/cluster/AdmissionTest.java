package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.device.DeviceException;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Registered;
import io.etcfs.core.session.NodeStoppedError;
import io.etcfs.core.session.StartException;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A device that has to be told whose writes to accept: when it is told, and what is known of it in etcd. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class AdmissionTest {
    private static final long SECOND = 1_000_000_000L;
    private static final byte[] DATA = new byte[100_000];
    private static final int O_DIRECT = 040000;

    private final Keys keys = new Keys(TestCluster.NAME);
    private TestCluster cluster;
    private HookedStore way;

    @BeforeEach
    void start() {
        cluster = new TestCluster(64L << 20);
        cluster.fencer.registers = true;
        way = new HookedStore(cluster.store);
    }

    @AfterEach
    void stop() {
        Fault.plant(Set.of());
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private KeyValue get(Key key) throws Exception {
        return cluster.store.range(key, null, 0, false, 0, SECOND).only();
    }

    private long session() throws Exception {
        KeyValue kv = get(keys.session("n1"));
        return kv == null ? 0 : kv.createRevision();
    }

    private Registered registered() throws Exception {
        return Registered.parseFrom(get(keys.registered("n1")).value());
    }

    private void loseSession() throws Exception {
        cluster.store.revokeLease(get(keys.session("n1")).leaseId(), SECOND);
    }

    private interface Condition {
        boolean holds() throws Exception;
    }

    private static void await(String what, Condition condition) throws Exception {
        long until = System.nanoTime() + 20 * SECOND;
        while (!condition.holds()) {
            assertTrue(System.nanoTime() < until, "not within 20 s: " + what);
            Thread.sleep(5);
        }
    }

    private void vanish() throws Exception {
        way.cut = true;
        for (Key leased : List.of(keys.session("n1"), keys.membership("n1"))) {
            KeyValue kv = get(leased);
            if (kv != null) {
                cluster.store.revokeLease(kv.leaseId(), SECOND);
            }
        }
    }

    @Test
    void eachSessionIsAdmittedBeforeItWrites() throws Exception {
        AtomicLong admitted = new AtomicLong();
        AtomicBoolean early = new AtomicBoolean();
        cluster.fencer.device = session -> {
            assertTrue(registeredHas(session), "etcd knows of it before the device");
            admitted.set(session);
        };
        cluster.device.beforeWrite = offset -> {
            try {
                long now = session();
                early.compareAndSet(false, now != 0 && now != admitted.get());
            } catch (Exception e) {
                early.set(true);
            }
        };
        TestClient a = new TestClient(cluster.start("n1", way));
        long first = session();
        a.write("/f", 0, DATA, 0);
        a.fsync("/f");
        assertEquals(List.of(first), registered().getSessionsList());
        loseSession();
        await("the next session", () -> session() != 0 && session() != first && registered().getSessionsList().equals(List.of(session())));
        a.write("/f", 0, DATA, O_DIRECT);
        a.fsync("/f");
        assertFalse(early.get());
        assertEquals(List.of(new TestFencer.Admitted(first, List.of(), true), new TestFencer.Admitted(session(), List.of(first), true)), cluster.fencer.admitted);
    }

    private boolean registeredHas(long session) {
        try {
            return registered().getSessionsList().contains(session);
        } catch (Exception e) {
            return false;
        }
    }

    @Test
    void theNextProcessKnowsWhatTheLastRegistered() throws Exception {
        cluster.start("n1", way);
        long first = session();
        vanish();
        cluster.start("n1");
        assertEquals(new TestFencer.Admitted(session(), List.of(first), false), cluster.fencer.admitted.getLast(), "what it may have on its way, nobody has waited for");
        cluster.node(1).leave(5 * SECOND);
        assertTrue(registered().getQuiet());
        long second = registered().getSessions(0);
        ClusterNode third = cluster.start("n1");
        assertEquals(new TestFencer.Admitted(session(), List.of(second), true), cluster.fencer.admitted.getLast());
        assertEquals(session(), third.status().sessionRevision());
    }

    /** Started again on another machine while it may still run on the first: whoever severs it has to know both until the device has cut off the first. */
    @Test
    void machinesAreRecordedWithTheirSessions() throws Exception {
        cluster.fencer.machine = "m1";
        cluster.start("n1", way);
        assertEquals(List.of("m1"), registered().getMachinesList());
        vanish();
        cluster.fencer.machine = "m2";
        AtomicBoolean both = new AtomicBoolean();
        cluster.fencer.device = session -> both.set(registeredHas(session) && machines().equals(List.of("m1", "m2")));
        ClusterNode second = cluster.start("n1");
        assertTrue(both.get());
        assertEquals(List.of(List.of(), List.of("m1")), cluster.fencer.machines);
        assertEquals(List.of("m2"), registered().getMachinesList());
        second.leave(5 * SECOND);
        assertTrue(registered().getQuiet());
        assertEquals(List.of("m2"), registered().getMachinesList());
    }

    private List<String> machines() {
        try {
            return registered().getMachinesList();
        } catch (Exception e) {
            return List.of();
        }
    }

    @Test
    void whoSeversIsToldOfTheMachine() throws Exception {
        cluster.fencer.mode = TestFencer.Mode.CONFIRM;
        cluster.fencer.machine = "m1";
        cluster.start("n2");
        cluster.start("n1", way);
        vanish();
        await("it is fenced", () -> get(keys.fenceDone("n1")) != null);
        assertEquals(List.of("m1"), cluster.fencer.asked.getFirst().machines());
        way.cut = false;
        await("it learns that it was fenced", () -> cluster.stopped.removeIf(s -> s.startsWith("n1: this node was fenced")));
    }

    /** Not every device can be asked whether that is so: where it can't, who did not leave in order would never be mounted again. */
    @Test
    void whoWasFencedHasNothingOnItsWay() throws Exception {
        cluster.fencer.mode = TestFencer.Mode.CONFIRM;
        cluster.start("n2");
        cluster.start("n1", way);
        long first = session();
        vanish();
        await("it is fenced", () -> get(keys.fenceDone("n1")) != null);
        assertTrue(registered().getQuiet());
        assertEquals(List.of(first), registered().getSessionsList());
        cluster.start("n1");
        assertEquals(new TestFencer.Admitted(session(), List.of(first), true), cluster.fencer.admitted.getLast());
        assertFalse(registered().getQuiet());
    }

    /** A member is not fenced, and whose key was replaced can't be: it waits without being or doing either. */
    @Test
    void whoCanNotBeAdmittedBeforeItIsFencedWaitsForThat() throws Exception {
        cluster.fencer.mode = TestFencer.Mode.CONFIRM;
        cluster.start("n2");
        cluster.start("n1", way);
        long first = session();
        cluster.fencer.prepared = session -> {
            throw new DeviceException(16, "what " + session + " had begun may be under way");
        };
        vanish();
        starting().get();
        assertEquals(List.of(first), cluster.fencer.asked.getFirst().registered(), "it was fenced, for what it had");
        assertEquals(new TestFencer.Admitted(session(), List.of(first), true), cluster.fencer.admitted.getLast());
    }

    @Test
    void whomNobodyFencesWaitsToo() throws Exception {
        cluster.start("n1", way);
        long first = session();
        CountDownLatch asked = new CountDownLatch(2);
        cluster.fencer.prepared = session -> {
            asked.countDown();
            if (asked.getCount() > 0) {
                throw new DeviceException(16, "not now");
            }
            try {
                assertNull(get(keys.membership("n1")));
                assertEquals(List.of(first), registered().getSessionsList());
            } catch (Exception e) {
                throw new DeviceException(5, e.toString());
            }
        };
        vanish();
        starting().get();
        assertEquals(new TestFencer.Admitted(session(), List.of(first), false), cluster.fencer.admitted.getLast());
    }

    private CompletableFuture<ClusterNode> starting() {
        return CompletableFuture.supplyAsync(() -> {
            try {
                return cluster.start("n1");
            } catch (StartException e) {
                throw new IllegalStateException(e);
            }
        }, r -> Thread.ofVirtual().start(r));
    }

    /** Its writes have ended with it, where the device is the kernel's own. */
    @Test
    void theNextProcessOfTheSameBootNeedNotAskTheDevice() throws Exception {
        cluster.fencer.boot = "b1";
        cluster.start("n1", way);
        long first = session();
        cluster.fencer.prepared = session -> {
            throw new DeviceException(16, "not in another boot");
        };
        vanish();
        cluster.start("n1");
        assertEquals(new TestFencer.Admitted(session(), List.of(first), true), cluster.fencer.admitted.getLast());
        assertEquals(List.of("b1"), registered().getBootsList());
    }

    @Test
    void theNextProcessOfAnotherBootDoes() throws Exception {
        cluster.fencer.boot = "b1";
        cluster.start("n1", way);
        long first = session();
        vanish();
        cluster.fencer.boot = "b2";
        AtomicLong asked = new AtomicLong();
        cluster.fencer.prepared = asked::set;
        cluster.start("n1");
        assertEquals(first, asked.get());
        assertEquals(new TestFencer.Admitted(session(), List.of(first), false), cluster.fencer.admitted.getLast());
        assertEquals(List.of("b2"), registered().getBootsList());
    }

    /** The record would go on naming the machine that it ran on before, and that one would be cut off in the place of its own. */
    @Test
    void whoHadAFencerOfMachinesDoesNotStartWithout() throws Exception {
        cluster.fencer.machine = "m1";
        ClusterNode first = cluster.start("n1");
        first.leave(5 * SECOND);
        cluster.fencer.registers = false;
        StartException refused = assertThrows(StartException.class, () -> cluster.start("n1"));
        assertTrue(refused.getMessage().contains("give the same --fencer"), refused.getMessage());
        assertEquals(List.of("m1"), registered().getMachinesList());
    }

    @Test
    void whomTheDeviceDoesNotAcceptDoesNotStart() throws Exception {
        cluster.fencer.device = session -> {
            throw new DeviceException(16, "reserved by others");
        };
        StartException refused = assertThrows(StartException.class, () -> cluster.start("n1", way));
        assertTrue(refused.getMessage().contains("reserved by others"), refused.getMessage());
        assertNull(get(keys.session("n1")), "no session is left behind that nobody uses");
    }

    /** As with a device that takes its time: the session is over when it has accepted it. */
    @Test
    void aSessionThatEndedMeanwhileIsNotUsed() throws Exception {
        AtomicInteger times = new AtomicInteger();
        cluster.fencer.device = session -> {
            if (times.incrementAndGet() == 1) {
                try {
                    loseSession();
                } catch (Exception e) {
                    throw new DeviceException(5, e.toString());
                }
            }
        };
        ClusterNode n1 = cluster.start("n1", way);
        long first = cluster.fencer.admitted.getFirst().session();
        assertTrue(n1.status().sessionRevision() > first);
        assertFalse(cluster.fencer.accepted.contains(first));
        assertEquals(new TestFencer.Admitted(session(), List.of(first), false), cluster.fencer.admitted.getLast(), "the device may know the first");
        TestClient a = new TestClient(n1);
        a.write("/f", 0, DATA, 0);
        assertArrayEquals(DATA, a.read("/f"));
    }

    /** With that rule broken: the test above can fail. */
    @Test
    void withoutAskingEtcdAgainItIsUsed() throws Exception {
        Fault.plant(Set.of(Fault.ADMITTED_THOUGH_ENDED));
        cluster.fencer.device = session -> {
            try {
                loseSession();
            } catch (Exception e) {
                throw new DeviceException(5, e.toString());
            }
        };
        cluster.start("n1", way);
        assertEquals(cluster.fencer.admitted.getFirst().session(), cluster.fencer.accepted.getFirst());
        cluster.fencer.device = session -> {};
        Fault.plant(Set.of());
        await("its next session", () -> registered().getSessionsList().equals(List.of(session())));
    }

    @Test
    void whoSeversIsToldOfAllThatMayBeRegistered() throws Exception {
        cluster.fencer.mode = TestFencer.Mode.CONFIRM;
        cluster.start("n2");
        cluster.start("n1", way);
        long first = session();
        AtomicBoolean second = new AtomicBoolean();
        cluster.fencer.device = session -> {
            // It never gets to know that the device has accepted it.
            second.set(true);
            way.cut = true;
        };
        loseSession();
        await("its next session is accepted", second::get);
        vanish();
        await("it is fenced", () -> get(keys.fenceDone("n1")) != null);
        long last = cluster.fencer.admitted.getLast().session();
        assertEquals(List.of(first, last), cluster.fencer.asked.getFirst().registered());
        assertTrue(cluster.fencer.asked.getFirst().before() > last);
        cluster.fencer.device = session -> {};
        way.cut = false;
        await("it learns that it was fenced", () -> cluster.stopped.removeIf(s -> s.startsWith("n1: this node was fenced")));
    }

    /**
     * A write of node 1 is on its way in the device when its process ends, and another node has its directory by then. The next process has a session, and the device takes its
     * time to end what it had accepted from the last one. Whether what node 2 has read of that block meanwhile is what it stays.
     */
    private boolean whatWasReadStaysWhatItWas() throws Exception {
        TestClient one = new TestClient(cluster.start("n1", way));
        TestClient two = new TestClient(cluster.start("n2"));
        one.write("/f", 0, new byte[4096], O_DIRECT);
        one.fsync("/f");
        CountDownLatch onItsWay = new CountDownLatch(1);
        CountDownLatch lands = new CountDownLatch(1);
        CountDownLatch landed = new CountDownLatch(1);
        cluster.device.beforeWrite = offset -> {
            if (onItsWay.getCount() > 0) {
                onItsWay.countDown();
                awaitQuietly(lands);
            }
        };
        byte[] written = new byte[4096];
        Arrays.fill(written, (byte) 'w');
        cluster.tasks.start("late", () -> {
            try {
                one.write("/f", 0, written, O_DIRECT);
            } catch (FsException e) {
                // Its node has ended.
            }
            landed.countDown();
        });
        onItsWay.await();
        way.cut = true;
        two.stat("/f");
        CountDownLatch admitting = new CountDownLatch(1);
        cluster.fencer.device = session -> {
            admitting.countDown();
            try {
                Thread.sleep(2_500);
                lands.countDown();
                await("the device has nothing of the last process under way", () -> contents()[0] == 'w');
            } catch (Exception e) {
                throw new DeviceException(5, e.toString());
            }
        };
        CompletableFuture<ClusterNode> next = starting();
        admitting.await();
        Thread.sleep(1_500);
        byte[] read = two.read("/f");
        cluster.fencer.device = session -> {};
        next.get();
        return Arrays.equals(read, two.read("/f"));
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Of the only block that was ever written in place. */
    private byte[] contents() throws DeviceException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment block = arena.allocate(4096, 4096);
            cluster.device.read(4096L * io.etcfs.core.space.Arena.RESERVED_BLOCKS, block);
            return block.toArray(ValueLayout.JAVA_BYTE);
        }
    }

    @Test
    void aSessionThatTheDeviceHasNotAcceptedYetEndsNothing() throws Exception {
        assertTrue(whatWasReadStaysWhatItWas());
    }

    @Test
    void toGoByItsKeyIsSeen() throws Exception {
        Fault.plant(Set.of(Fault.ENDED_BEFORE_ADMITTED));
        assertFalse(whatWasReadStaysWhatItWas());
    }

    @Test
    void whomTheDeviceRefusesStops() throws Exception {
        AtomicBoolean refuses = new AtomicBoolean();
        TestClient a = new TestClient(cluster.start("n1", way, new RefusingDevice(cluster.device, refuses), 64L << 20));
        a.write("/f", 0, DATA, O_DIRECT);
        a.fsync("/f");
        refuses.set(true);
        assertThrows(NodeStoppedError.class, () -> a.write("/f", 0, new byte[4096], O_DIRECT));
        await("it stops", () -> cluster.stopped.removeIf(s -> s.startsWith("n1: this node was fenced")));
        refuses.set(false);
    }
}
