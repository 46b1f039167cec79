package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Generation;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.Txn;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Messages that come late, twice or after what they belong to has ended. What the simulator found, each by itself. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LateMessagesTest {
    private static final long SECOND = 1_000_000_000L;
    private final Keys keys = new Keys(TestCluster.NAME);
    private TestCluster cluster;
    private HookedStore way;
    private ClusterNode first;
    private TestClient[] clients;

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(256L << 20);
        way = new HookedStore(cluster.store);
        first = cluster.start("n1", way);
        clients = new TestClient[] {new TestClient(first), new TestClient(cluster.start("n2"))};
    }

    @AfterEach
    void stop() {
        way.hook = txn -> null;
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private static boolean puts(List<Op> ops, String part) {
        return ops.stream().anyMatch(op -> op instanceof Op.Put p && p.key().toString().contains(part) || op instanceof Op.Nested n && puts(n.txn().success(), part));
    }

    private boolean exists(Key key) throws Exception {
        return cluster.store.range(key, key.prefixEnd(), 0, true, 0, SECOND).count() > 0;
    }

    @Test
    void theAnswerToAHandoverComesAfterItsSessionHasEnded() throws Exception {
        clients[0].mkdir("/d");
        clients[0].write("/d/f", 0, "mine".getBytes(), 0);
        clients[0].fsync("/d/f");
        long directory = clients[0].stat("/d").ino();
        CountDownLatch lost = new CountDownLatch(1);
        CountDownLatch given = new CountDownLatch(1);
        String owner = keys.owner(directory).toString();
        AtomicLong openNotBeforeNs = new AtomicLong();
        way.hook = txn -> {
            if (puts(txn.success(), "/session:")) {
                openNotBeforeNs.compareAndSet(0, System.nanoTime() + SECOND / 2);
                lost.countDown();
                return System.nanoTime() < openNotBeforeNs.get() ? new Outcome.Unknown("slow") : null;
            }
            if (puts(txn.success(), "/batch:") && puts(txn.success(), owner) && given.getCount() > 0) {
                Outcome late = cluster.store.commit(txn, SECOND);
                given.countDown();
                try {
                    lost.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
                return late;
            }
            return null;
        };
        assertArrayEquals("mine".getBytes(), clients[1].read("/d/f"));
        assertTrue(given.await(5, TimeUnit.SECONDS), "the directory was handed over in a batch");
        cluster.store.revokeLease(cluster.store.range(keys.session("n1"), null, 0, false, 0, SECOND).only().leaseId(), SECOND);
        lost.await();
        assertEquals(List.of("f"), clients[0].list("/d"));
        clients[0].write("/d/g", 0, new byte[1], 0);
        assertEquals(List.of("f", "g"), clients[1].list("/d"));
    }

    @Test
    void aNodeWithNothingToPublishLearnsThatItWasFenced() throws Exception {
        cluster.store.commit(new Txn(List.of(), List.of(Op.put(keys.generation("n1"), Generation.newBuilder().setGeneration(1).build().toByteArray())), List.of()), SECOND);
        long until = System.nanoTime() + 5 * SECOND;
        while (cluster.stopped.isEmpty() && System.nanoTime() < until) {
            Thread.sleep(5);
        }
        assertEquals(1, cluster.stopped.size());
        assertTrue(cluster.stopped.getFirst().contains("fenced"), cluster.stopped.getFirst());
        cluster.stopped.clear();
    }

    @Test
    void aBatchThatWasDeliveredTwiceCountsOnce() throws Exception {
        way.hook = txn -> {
            if (puts(txn.success(), "/batch:")) {
                cluster.store.commit(txn, SECOND);
                return cluster.store.commit(txn, SECOND);
            }
            return null;
        };
        for (int i = 0; i < 5; i++) {
            clients[0].mkdir("/d" + i);
            clients[0].write("/d" + i + "/f", 0, new byte[1], 0);
            clients[0].fsync("/d" + i + "/f");
        }
        assertEquals(List.of("d0", "d1", "d2", "d3", "d4"), clients[1].list("/"));
    }

    /** A registration and a claim of an arena of a process that is gone arrive after the departure. */
    @Test
    void whatArrivesAfterTheDepartureChangesNothing() throws Exception {
        AtomicReference<Txn> registration = new AtomicReference<>();
        AtomicReference<Txn> claim = new AtomicReference<>();
        HookedStore third = new HookedStore(cluster.store);
        third.hook = txn -> {
            if (puts(txn.success(), "/membership:")) {
                registration.compareAndSet(null, txn);
            }
            if (puts(txn.success(), "/arena:n3/")) {
                claim.set(txn);
            }
            return null;
        };
        ClusterNode leaving = cluster.start("n3", third);
        new TestClient(leaving).write("/x", 0, new byte[1], 0);
        leaving.leave(5 * SECOND);
        for (Txn late : List.of(registration.get(), claim.get())) {
            try {
                assertInstanceOf(Outcome.Conflict.class, cluster.store.commit(late, SECOND));
            } catch (io.etcfs.core.store.StoreRejectedException e) {
                assertEquals(io.etcfs.core.store.StoreRejectedException.Reason.LEASE_NOT_FOUND, e.reason());
            }
        }
        assertTrue(exists(keys.departed("n3")));
        assertEquals(false, exists(keys.membership("n3")));
        assertEquals(false, exists(keys.arenasOf("n3")));
    }
}
