package io.etcfs.etcd;

import static io.etcfs.etcd.TestStores.SECOND_NS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.LeaseBeat;
import io.etcfs.core.store.OtherClusterException;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.Watch;
import io.etcfs.testkit.store.EtcdServers;
import io.etcfs.testkit.store.RecordingListener;
import io.etcfs.etcd.wire.DefragmentResponse;
import io.etcfs.etcd.wire.RangeResponse;
import io.etcfs.etcd.wire.ResponseHeader;
import java.util.List;
import org.junit.jupiter.api.Test;

class OneClusterTest {
    private static RangeResponse of(long clusterId) {
        return RangeResponse.newBuilder().setHeader(ResponseHeader.newBuilder().setClusterId(clusterId)).build();
    }

    @Test
    void whoAnswersFirstSaysWhichItIs() {
        OneCluster cluster = new OneCluster();
        assertTrue(cluster.admits("a", DefragmentResponse.getDefaultInstance()));
        assertTrue(cluster.admits("a", of(7)));
        assertTrue(cluster.admits("b", of(7)));
        assertTrue(cluster.admits("b", of(0)));
        cluster.require();
        assertTrue(!cluster.admits("c", of(-1)));
        assertEquals("c is in etcd cluster ffffffffffffffff, who answered before was in 7", assertThrows(OtherClusterException.class, cluster::require).getMessage());
    }

    /** Two members of which each is a cluster of its own. What the second one answers is seen by nobody, a watch's events included. */
    @Test
    void aMemberOfAnotherClusterIsNotHeard() throws Exception {
        try (EtcdServers first = EtcdServers.start(1); EtcdServers second = EtcdServers.start(new EtcdServers.Setup(1, null, false, List.of("--initial-cluster-token", "another")))) {
            try (EtcdStore other = TestStores.open(second)) {
                assertInstanceOf(Outcome.Committed.class, other.commit(TestStores.put("k", "other"), 5 * SECOND_NS));
            }
            RecordingListener heard = new RecordingListener();
            try (EtcdStore store = TestStores.open(EtcdOptions.of(first.endpoints().getFirst(), second.endpoints().getFirst()))) {
                Key key = Key.of("k");
                assertInstanceOf(Outcome.Committed.class, store.commit(TestStores.put("k", "first"), 5 * SECOND_NS));
                Watch watch = store.watch(key, null, 1, heard);
                assertTrue(heard.next(5_000).resync());
                heard.next(5_000);
                LeaseBeat beat = store.keepAlive(store.grantLease(10, 5 * SECOND_NS).leaseId(), 5 * SECOND_NS);
                assertEquals(2, beat.memberRevision());
                first.kill(0);
                assertThrows(OtherClusterException.class, () -> {
                    while (true) {
                        assertInstanceOf(Outcome.Unknown.class, store.commit(TestStores.put("k", "again"), SECOND_NS));
                    }
                });
                assertThrows(OtherClusterException.class, () -> store.range(key, null, 0, false, 0, SECOND_NS));
                assertThrows(OtherClusterException.class, () -> store.keepAlive(1, SECOND_NS));
                assertThrows(OtherClusterException.class, () -> store.status(SECOND_NS));
                Thread.sleep(500);
                watch.close();
                assertEquals(0, heard.waiting());
            }
        }
    }

    /** Without anything to read etcd would answer it from what the one member knows. */
    @Test
    void aTransactionThatOnlyComparesAsksForAReadThatAllAgreeOn() {
        Txn txn = new Txn(List.of(Compare.absent(Key.of("k"))), List.of(), List.of());
        assertEquals(1, Wire.txn(txn).getFailureCount());
        assertTrue(Wire.txn(txn).getFailure(0).hasRequestRange());
        Txn nothing = new Txn(List.of(), List.of(), List.of());
        assertEquals(0, Wire.txn(nothing).getFailureCount());
    }
}
