package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.device.DeviceException;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.label.Mkfs;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Membership;
import io.etcfs.core.record.proto.Super;
import io.etcfs.core.session.StartException;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.testkit.device.MemoryDevice;
import io.etcfs.testkit.store.MemoryStore;
import io.etcfs.testkit.store.MonotonicClock;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Nodes that begin to start and then may not, or shall not. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class RefusedStartTest {
    private static final long SECOND = 1_000_000_000L;
    private static final Keys KEYS = new Keys(TestCluster.NAME);

    @AfterEach
    void repair() {
        Fault.plant(Set.of());
    }

    private static boolean exists(MetadataStore store, Key key) throws Exception {
        return get(store, key) != null;
    }

    private static KeyValue get(MetadataStore store, Key key) throws Exception {
        return store.range(key, null, 0, false, 0, SECOND).only();
    }

    // ---- another filesystem since the superblock was read

    private static Super make(MetadataStore store, MemoryDevice device, long arenaMib) throws Exception {
        return new Mkfs(store, device, SECOND).make(new Mkfs.Request(TestCluster.NAME, "/dev/x", true, arenaMib << 20, UUID.randomUUID(), new byte[16], 1));
    }

    private static ClusterNode node(MetadataStore store, MonotonicClock clock, MemoryDevice device, Super superblock) throws Exception {
        return new ClusterNode(new ClusterNode.Ports(store, device, clock, (n, body) -> Thread.ofVirtual().name(n).start(body), new Random(1), new TestFencer()),
                new ClusterNode.Settings(TestCluster.NAME, "late", "late-1", Membership.newBuilder().setHost("late").build(), 5 * SECOND, 128, 64L << 20), superblock,
                get(store, KEYS.superblock()).createRevision());
    }

    private static String startOnAnotherFilesystem() throws Exception {
        MonotonicClock clock = new MonotonicClock();
        MetadataStore store = new MemoryStore(clock, (name, body) -> Thread.ofVirtual().name(name).start(body));
        MemoryDevice device = new MemoryDevice(128L << 20, 128L << 20);
        try {
            ClusterNode late = node(store, clock, device, make(store, device, 16));
            // Nobody is a member, nobody has a session: it may be made anew.
            make(store, device, 32);
            late.start();
            late.leave(5 * SECOND);
            return "started";
        } catch (StartException e) {
            assertFalse(exists(store, KEYS.membership("late")));
            assertFalse(exists(store, KEYS.session("late")));
            return e.getMessage();
        } finally {
            store.close();
        }
    }

    @Test
    void aMountThatHasReadTheSuperblockOfTheFilesystemOfBeforeIsRefused() throws Exception {
        assertTrue(startOnAnotherFilesystem().contains("made anew while this node was starting"));
    }

    @Test
    void withoutTheCompareItStarts() throws Exception {
        Fault.plant(Set.of(Fault.SUPERBLOCK_NOT_COMPARED));
        assertEquals("started", startOnAnotherFilesystem());
    }

    // ---- a device that does not accept a node

    /** Whether a node counts as vanished, in the end, that had left in order, or was never there, and is not admitted to the device. */
    private static boolean vanishes(boolean wasThere) throws Exception {
        TestCluster cluster = new TestCluster(64L << 20);
        try {
            cluster.fencer.registers = true;
            cluster.fencer.machine = "i-1/vol-1";
            cluster.fencer.mode = TestFencer.Mode.CONFIRM;
            ClusterNode n1 = cluster.start("n1");
            if (wasThere) {
                assertTrue(cluster.start("n2").leave(5 * SECOND));
            }
            cluster.fencer.device = session -> {
                throw new DeviceException(5, "the volume is not attached to this instance");
            };
            StartException refused = assertThrows(StartException.class, () -> cluster.start("n2"));
            assertTrue(refused.getMessage().contains("not attached"), refused.getMessage());
            boolean member = exists(cluster.store, KEYS.membership("n2"));
            assertEquals(member, !exists(cluster.store, KEYS.departed("n2")));
            assertFalse(exists(cluster.store, KEYS.session("n2")));
            cluster.fencer.device = session -> {};
            if (!member) {
                // What was tried does not stand in the way of the next time.
                assertTrue(cluster.start("n2").leave(5 * SECOND));
            }
            n1.leave(2 * SECOND);
            return member;
        } finally {
            cluster.store.close();
        }
    }

    @Test
    void whoHadLeftAndIsNotAdmittedHasLeftStill() throws Exception {
        assertFalse(vanishes(true));
    }

    @Test
    void whoWasNeverThereAndIsNotAdmittedHasLeft() throws Exception {
        assertFalse(vanishes(false));
    }

    @Test
    void notTakenBackItVanishes() throws Exception {
        Fault.plant(Set.of(Fault.REFUSED_NOT_TAKEN_BACK));
        assertTrue(vanishes(true));
    }

    /** Who had not left in order is not made to look so by a start that fails: others wait for its fence. */
    @Test
    void whoHadVanishedIsNotTakenForOneThatLeft() throws Exception {
        TestCluster cluster = new TestCluster(64L << 20);
        cluster.fencer.registers = true;
        ClusterNode n1 = cluster.start("n1");
        HookedStore way = new HookedStore(cluster.store);
        cluster.start("n2", way);
        way.cut = true;
        for (Key leased : List.of(KEYS.session("n2"), KEYS.membership("n2"))) {
            cluster.store.revokeLease(get(cluster.store, leased).leaseId(), SECOND);
        }
        cluster.fencer.device = session -> {
            throw new DeviceException(5, "no");
        };
        assertThrows(StartException.class, () -> cluster.start("n2"));
        assertFalse(exists(cluster.store, KEYS.departed("n2")));
        cluster.fencer.device = session -> {};
        n1.leave(2 * SECOND);
        cluster.store.close();
    }

    // ---- SIGTERM while a node starts

    /** Whenever it is asked whether it is wanted still, from the first time on: it has left in the end. */
    @Test
    void whoIsNotWantedAnyMoreWhileItStartsHasLeft() throws Exception {
        TestCluster cluster = new TestCluster(64L << 20);
        cluster.fencer.registers = true;
        ClusterNode n1 = cluster.start("n1");
        assertTrue(cluster.start("n2").leave(5 * SECOND));
        // Again and again, so that it looks often.
        cluster.fencer.device = session -> {
            throw new DeviceException(5, "not yet");
        };
        for (int after = 0; after < 5; after++) {
            AtomicInteger asked = new AtomicInteger();
            int limit = after;
            List<String> stopped = new CopyOnWriteArrayList<>();
            ClusterNode starting = cluster.make("n2", cluster.store);
            starting.onStop(stopped::add);
            StartException e = assertThrows(StartException.class, () -> starting.start(() -> asked.incrementAndGet() > limit));
            assertTrue(e.getMessage().contains("stopped before it had started"), e.getMessage());
            assertFalse(exists(cluster.store, KEYS.membership("n2")));
            assertTrue(exists(cluster.store, KEYS.departed("n2")));
            assertEquals(List.of(), stopped);
        }
        cluster.fencer.device = session -> {};
        n1.leave(2 * SECOND);
        cluster.store.close();
    }
}
