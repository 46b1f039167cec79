package io.etcfs.etcd;

import static io.etcfs.etcd.TestStores.SECOND_NS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreStatus;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.Watch;
import io.etcfs.testkit.store.EtcdServers;
import io.etcfs.testkit.store.RecordingListener;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a cluster of one member can show: outages, a full database, users, TLS. */
class OneServerTest {
    private static final Key KEY = Key.of("one");

    @Test
    void anOutageMakesTransactionsUnknownAndWatchesWait() throws Exception {
        RecordingListener heard = new RecordingListener();
        try (EtcdServers servers = EtcdServers.start(1); EtcdStore store = TestStores.open(servers); Watch watch = store.watch(KEY, null, 0, heard)) {
            assertTrue(heard.next(5_000).resync());
            servers.stop(0);
            assertInstanceOf(Outcome.Unknown.class, store.commit(TestStores.put("hung", "1"), SECOND_NS / 2));
            assertThrows(StoreUnavailableException.class, () -> store.range(KEY, null, 0, false, 0, SECOND_NS / 2));
            assertThrows(StoreUnavailableException.class, () -> store.keepAlive(1, SECOND_NS / 4));
            servers.resume(0);
            long before = assertInstanceOf(Outcome.Committed.class, store.commit(TestStores.put("one", "1"), 5 * SECOND_NS)).result().revision();
            assertEquals(before, heard.next(5_000).revision());

            servers.kill(0);
            long startNs = System.nanoTime();
            assertInstanceOf(Outcome.Unknown.class, store.commit(TestStores.put("dead", "1"), SECOND_NS / 2));
            assertThrows(StoreUnavailableException.class, () -> store.range(KEY, null, 0, false, 0, SECOND_NS / 2));
            assertThrows(StoreUnavailableException.class, () -> store.status(SECOND_NS / 2));
            assertTrue(System.nanoTime() - startNs < 2 * SECOND_NS);
            servers.restart(0);
            long after = assertInstanceOf(Outcome.Committed.class, store.commit(TestStores.put("one", "2"), 5 * SECOND_NS)).result().revision();
            RecordingListener.Heard next = heard.next(5_000);
            assertNotNull(next);
            assertEquals(after, next.revision());
            assertNull(heard.next(100));
        }
    }

    @Test
    void aFullDatabaseLeavesATransactionUnknown() throws Exception {
        EtcdServers.Setup setup = new EtcdServers.Setup(1, null, false, List.of("--quota-backend-bytes=" + (8 << 20)));
        try (EtcdServers servers = EtcdServers.start(setup); EtcdStore store = TestStores.open(servers)) {
            assertEquals(8 << 20, store.status(5 * SECOND_NS).quotaBytes());
            assertFalse(store.status(5 * SECOND_NS).noSpaceAlarm());
            // The server counts what its database holds only ten times a second: a fast disk takes many more than eight before it refuses one.
            Outcome outcome = null;
            long endNs = System.nanoTime() + 20 * SECOND_NS;
            while (!(outcome instanceof Outcome.Unknown) && System.nanoTime() < endNs) {
                outcome = store.commit(new Txn(List.of(), List.of(Op.put(KEY.plus("fill"), new byte[1 << 20])), List.of()), 5 * SECOND_NS);
            }
            assertTrue(assertInstanceOf(Outcome.Unknown.class, outcome).cause().contains("space exceeded"));
            assertTrue(((Outcome.Unknown) outcome).noSpace());
            assertTrue(store.status(5 * SECOND_NS).noSpaceAlarm());
            // What writes nothing still goes through.
            assertInstanceOf(Outcome.Conflict.class, store.commit(new Txn(List.of(Compare.exists(KEY)), List.of(), List.of(Op.get(KEY))), 5 * SECOND_NS));
        }
    }

    /** The file does not shrink by itself. */
    @Test
    void aMemberThatWasDefragmentedHasAFileOfWhatIsInUse() throws Exception {
        try (EtcdServers servers = EtcdServers.start(1); EtcdStore store = TestStores.open(servers)) {
            for (int i = 0; i < 16; i++) {
                assertInstanceOf(Outcome.Committed.class, store.commit(new Txn(List.of(), List.of(Op.put(KEY, new byte[1 << 20])), List.of()), 5 * SECOND_NS));
            }
            store.compact(store.status(5 * SECOND_NS).revision(), 5 * SECOND_NS);
            long endNs = System.nanoTime() + 20 * SECOND_NS;
            StoreStatus.Member grown;
            do {
                // Pages that were freed count as free from the next write on.
                store.revokeLease(store.grantLease(1, 5 * SECOND_NS).leaseId(), 5 * SECOND_NS);
                grown = store.status(5 * SECOND_NS).members().getFirst();
                assertTrue(System.nanoTime() < endNs, grown.toString());
            } while (grown.dbInUseBytes() > 4 << 20);
            assertTrue(grown.dbSizeBytes() >= 16 << 20, grown.toString());
            store.defragment(grown.endpoint(), 20 * SECOND_NS);
            StoreStatus.Member small = store.status(5 * SECOND_NS).members().getFirst();
            assertTrue(small.dbSizeBytes() < 6 << 20, small.toString());
            assertEquals(1 << 20, store.range(KEY, null, 0, false, 0, 5 * SECOND_NS).only().value().length);
            assertThrows(StoreUnavailableException.class, () -> store.moveLeader(small.endpoint(), 12345, 5 * SECOND_NS));
        }
    }

    @Test
    void logsInAgainWhenTheTokenIsNoLongerGood(@TempDir Path directory) throws Exception {
        Path passwordFile = Files.writeString(directory.resolve("password"), "s3cret\n");
        Path wrongFile = Files.writeString(directory.resolve("wrong"), "wr0ng\n");
        RecordingListener heard = new RecordingListener();
        EtcdServers.Setup setup = new EtcdServers.Setup(1, null, false, List.of("--auth-token-ttl=1", "--bcrypt-cost=4"));
        try (EtcdServers servers = EtcdServers.start(setup)) {
            EtcdOptions options = EtcdOptions.of(servers.endpoints().getFirst()).withUser("node", passwordFile);
            try (EtcdStore store = TestStores.open(options); Watch watch = store.watch(KEY, null, 0, heard)) {
                // Before authentication is enabled the login is not needed, and not refused.
                assertInstanceOf(Outcome.Committed.class, store.commit(TestStores.put("one", "open"), 5 * SECOND_NS));
                servers.etcdctl("user", "add", "root:root");
                servers.etcdctl("user", "grant-role", "root", "root");
                servers.etcdctl("user", "add", "node:s3cret");
                servers.etcdctl("role", "add", "node");
                servers.etcdctl("role", "grant-permission", "node", "--prefix=true", "readwrite", "one");
                servers.etcdctl("user", "grant-role", "node", "node");
                servers.etcdctl("auth", "enable");
                assertInstanceOf(Outcome.Committed.class, store.commit(TestStores.put("one", "login"), 5 * SECOND_NS));
                // That is for administrators only.
                assertThrows(StoreRejectedException.class, () -> store.defragment(servers.endpoints().getFirst(), 5 * SECOND_NS));
                long lease = store.grantLease(20, 5 * SECOND_NS).leaseId();
                TimeUnit.MILLISECONDS.sleep(2_500);
                assertInstanceOf(Outcome.Committed.class, store.commit(TestStores.put("one", "again"), 5 * SECOND_NS));
                TimeUnit.MILLISECONDS.sleep(2_500);
                assertEquals(20, store.keepAlive(lease, 5 * SECOND_NS).ttlSeconds());
                TimeUnit.MILLISECONDS.sleep(2_500);
                long last = store.range(KEY, null, 0, false, 0, 5 * SECOND_NS).only().modRevision();
                RecordingListener.Heard next;
                do {
                    next = heard.next(5_000);
                } while (next != null && next.revision() < last);
                assertNotNull(next, "the watch goes on");
                RecordingListener later = new RecordingListener();
                try (Watch second = store.watch(KEY.plus("/"), null, 0, later)) {
                    assertTrue(later.next(5_000).resync());
                }
                StoreRejectedException denied = assertThrows(StoreRejectedException.class, () -> store.commit(TestStores.put("two", "x"), 5 * SECOND_NS));
                assertEquals(StoreRejectedException.Reason.UNAUTHENTICATED, denied.reason());
            }
            try (EtcdStore store = TestStores.open(options.withUser("node", wrongFile))) {
                StoreRejectedException denied = assertThrows(StoreRejectedException.class, () -> store.commit(TestStores.put("one", "x"), 5 * SECOND_NS));
                assertEquals(StoreRejectedException.Reason.UNAUTHENTICATED, denied.reason());
                assertFalse(denied.getMessage().contains("wr0ng"));
            }
            try (EtcdStore store = TestStores.open(servers)) {
                assertThrows(StoreRejectedException.class, () -> store.commit(TestStores.put("one", "x"), 5 * SECOND_NS));
            }
        }
    }

    @Test
    void speaksTlsWithCertificatesOnBothSides(@TempDir Path directory) throws Exception {
        Certificates.make(directory);
        Path ca = directory.resolve("ca.pem");
        EtcdServers.Tls tls = new EtcdServers.Tls(directory.resolve("server.pem"), directory.resolve("server.key"), ca);
        try (EtcdServers servers = EtcdServers.start(new EtcdServers.Setup(1, tls, false, List.of()))) {
            EtcdOptions options = EtcdOptions.of(servers.endpoints().getFirst());
            RecordingListener heard = new RecordingListener();
            try (EtcdStore store = TestStores.open(options.withTls(ca, directory.resolve("client.pem"), directory.resolve("client.key")));
                    Watch watch = store.watch(KEY, null, 0, heard)) {
                assertTrue(heard.next(10_000).resync());
                assertInstanceOf(Outcome.Committed.class, store.commit(TestStores.put("one", "tls"), 5 * SECOND_NS));
                assertEquals("PUT one", heard.next(5_000).summary());
                assertTrue(store.keepAlive(store.grantLease(5, 5 * SECOND_NS).leaseId(), 5 * SECOND_NS).ttlSeconds() > 0);
            }
            try (EtcdStore store = TestStores.open(options.withTls(ca, null, null))) {
                assertThrows(StoreUnavailableException.class, () -> store.range(KEY, null, 0, false, 0, SECOND_NS));
            }
            try (EtcdStore store = TestStores.open(options.withTls(directory.resolve("otherca.pem"), directory.resolve("client.pem"), directory.resolve("client.key")))) {
                assertThrows(StoreUnavailableException.class, () -> store.range(KEY, null, 0, false, 0, SECOND_NS));
                assertInstanceOf(Outcome.Unknown.class, store.commit(TestStores.put("one", "x"), SECOND_NS));
            }
        }
    }
}
