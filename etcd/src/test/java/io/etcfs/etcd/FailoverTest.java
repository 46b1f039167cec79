package io.etcfs.etcd;

import static io.etcfs.etcd.TestStores.SECOND_NS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.store.Key;
import io.etcfs.core.store.LeaseGrant;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreStatus;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Watch;
import io.etcfs.testkit.store.EtcdServers;
import io.etcfs.testkit.store.RecordingListener;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Three members, of which the store's preferred one, a follower, dies or hangs. */
class FailoverTest {
    private static final Key KEY = Key.of("failover");

    private static EtcdServers servers;

    private int preferred;
    private EtcdStore store;
    private EtcdStore others;

    @BeforeAll
    static void start() throws Exception {
        servers = EtcdServers.start(3);
    }

    @AfterAll
    static void stop() {
        servers.close();
    }

    @BeforeEach
    void preferAFollower() throws Exception {
        StoreStatus status;
        try (EtcdStore any = TestStores.open(servers)) {
            do {
                status = any.status(5 * SECOND_NS);
            } while (status.members().stream().noneMatch(StoreStatus.Member::leader));
            assertEquals(3, status.members().stream().map(StoreStatus.Member::memberId).distinct().count());
        }
        String follower = status.members().stream().filter(member -> !member.leader()).findFirst().orElseThrow().endpoint();
        preferred = servers.endpoints().indexOf(follower);
        List<String> rest = new ArrayList<>(servers.endpoints());
        rest.remove(follower);
        others = TestStores.open(EtcdOptions.of(rest.toArray(String[]::new)));
        rest.addFirst(follower);
        store = TestStores.open(EtcdOptions.of(rest.toArray(String[]::new)));
        assertInstanceOf(Outcome.Committed.class, store.commit(TestStores.put("failover", "start"), 5 * SECOND_NS));
        // The connections to the others are made meanwhile.
        assertEquals(3, store.status(5 * SECOND_NS).members().stream().filter(member -> member.error() == null).count());
    }

    @AfterEach
    void close() {
        store.close();
        others.close();
    }

    @Test
    void aDeadMemberCostsAtMostOneUnknown() throws Exception {
        servers.kill(preferred);
        try {
            int unknown = 0;
            for (int i = 0; i < 20; i++) {
                unknown += store.commit(TestStores.put("failover", "v" + i), 5 * SECOND_NS) instanceof Outcome.Unknown ? 1 : 0;
                assertNotNull(store.range(KEY, null, 0, false, 0, 2 * SECOND_NS).only());
            }
            assertTrue(unknown <= 1, unknown + " unknown");
            StoreStatus status = store.status(SECOND_NS);
            assertEquals(2, status.members().stream().filter(member -> member.error() == null).count());
            EtcdVersion.requireAtLeast(3, 5, 13, status);
        } finally {
            servers.restart(preferred);
        }
    }

    /** The lead goes to the member that is named, and each member can be defragmented, also the one that does not lead any more. */
    @Test
    void theLeaderIsMovedAndEachMemberIsDefragmented() throws Exception {
        StoreStatus before = store.status(5 * SECOND_NS);
        StoreStatus.Member leader = before.members().stream().filter(StoreStatus.Member::leader).findFirst().orElseThrow();
        StoreStatus.Member next = before.members().stream().filter(member -> !member.leader()).findFirst().orElseThrow();
        store.moveLeader(leader.endpoint(), next.memberId(), 5 * SECOND_NS);
        for (StoreStatus.Member member : before.members()) {
            store.defragment(member.endpoint(), 10 * SECOND_NS);
        }
        StoreStatus after = store.status(5 * SECOND_NS);
        assertEquals(List.of(next.memberId()), after.members().stream().filter(StoreStatus.Member::leader).map(StoreStatus.Member::memberId).toList());
        assertEquals("start", new String(store.range(KEY, null, 0, false, 0, 5 * SECOND_NS).only().value()));
        assertThrows(StoreUnavailableException.class, () -> store.moveLeader(leader.endpoint(), next.memberId(), SECOND_NS));
    }

    @Test
    void aHangingMemberMakesOneTransactionUnknown() throws Exception {
        LeaseGrant lease = store.grantLease(10, 5 * SECOND_NS);
        store.keepAlive(lease.leaseId(), SECOND_NS);
        servers.stop(preferred);
        try {
            assertInstanceOf(Outcome.Unknown.class, store.commit(TestStores.put("failover/hung", "late"), SECOND_NS / 2));
            assertInstanceOf(Outcome.Committed.class, store.commit(TestStores.put("failover", "next"), SECOND_NS));
            int beats = 0;
            for (int attempt = 0; attempt < 2; attempt++) {
                try {
                    assertEquals(10, store.keepAlive(lease.leaseId(), 3 * SECOND_NS / 10).ttlSeconds());
                    beats++;
                } catch (StoreUnavailableException e) {
                    assertEquals(0, attempt, "the attempt after goes to another member");
                }
            }
            assertTrue(beats >= 1);
        } finally {
            servers.resume(preferred);
        }
        store.revokeLease(lease.leaseId(), 5 * SECOND_NS);
    }

    @Test
    void aReadAsksTheNextMemberWhenOneHangs() throws Exception {
        servers.stop(preferred);
        try {
            long startNs = System.nanoTime();
            assertEquals("start", new String(store.range(KEY, null, 0, false, 0, 2 * SECOND_NS).only().value()));
            assertTrue(System.nanoTime() - startNs < 1_500_000_000L);
            store.revokeLease(store.grantLease(10, 2 * SECOND_NS).leaseId(), 2 * SECOND_NS);
        } finally {
            servers.resume(preferred);
        }
    }

    @Test
    void aWatchMovesOnFromADeadMember() throws Exception {
        RecordingListener heard = new RecordingListener();
        try (Watch watch = store.watch(KEY, null, 0, heard)) {
            assertTrue(heard.next(5_000).resync());
            servers.kill(preferred);
            try {
                long[] revisions = new long[5];
                for (int i = 0; i < revisions.length; i++) {
                    Outcome outcome = others.commit(TestStores.put("failover", "v" + i), 5 * SECOND_NS);
                    revisions[i] = assertInstanceOf(Outcome.Committed.class, outcome).result().revision();
                }
                for (long revision : revisions) {
                    RecordingListener.Heard next = heard.next(5_000);
                    assertNotNull(next);
                    assertEquals(revision, next.revision());
                    assertEquals("PUT failover", next.summary());
                }
                assertNull(heard.next(200));
            } finally {
                servers.restart(preferred);
            }
        }
    }

    @Test
    void aWatchMovesOnFromAHangingMemberAndSaysWhatItMayHaveMissed() throws Exception {
        RecordingListener heard = new RecordingListener();
        try (Watch watch = store.watch(KEY, null, 0, heard)) {
            assertTrue(heard.next(5_000).resync());
            servers.stop(preferred);
            try {
                others.commit(TestStores.put("failover", "missed"), 5 * SECOND_NS);
                long compacted = assertInstanceOf(Outcome.Committed.class, others.commit(TestStores.put("failover", "compacted"), 5 * SECOND_NS)).result().revision();
                others.compact(compacted, 5 * SECOND_NS);
                long after = assertInstanceOf(Outcome.Committed.class, others.commit(TestStores.put("failover", "heard"), 5 * SECOND_NS)).result().revision();
                RecordingListener.Heard gap = heard.next(10_000);
                assertNotNull(gap);
                assertTrue(gap.resync());
                assertEquals(compacted, gap.revision());
                assertEquals(after, heard.next(5_000).revision());
                assertNull(heard.next(200));
            } finally {
                servers.resume(preferred);
            }
        }
    }

    @Test
    void aQuietWatchFollowsTheRevisionAndMissesNothingByCompaction() throws Exception {
        RecordingListener heard = new RecordingListener();
        try (Watch watch = store.watch(KEY, null, 0, heard)) {
            assertTrue(heard.next(5_000).resync());
            long revision = 0;
            for (int i = 0; i < 5; i++) {
                revision = assertInstanceOf(Outcome.Committed.class, others.commit(TestStores.put("elsewhere", "x"), 5 * SECOND_NS)).result().revision();
            }
            // Long enough for a sign of life, which tells the watch that it has seen everything up to here.
            TimeUnit.MILLISECONDS.sleep(1_500);
            servers.kill(preferred);
            try {
                others.compact(revision, 5 * SECOND_NS);
                long after = assertInstanceOf(Outcome.Committed.class, others.commit(TestStores.put("failover", "heard"), 5 * SECOND_NS)).result().revision();
                RecordingListener.Heard next = heard.next(10_000);
                assertNotNull(next);
                assertEquals("PUT failover", next.summary());
                assertEquals(after, next.revision());
            } finally {
                servers.restart(preferred);
            }
        }
    }
}
