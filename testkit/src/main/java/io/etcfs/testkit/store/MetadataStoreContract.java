package io.etcfs.testkit.store;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.LeaseGrant;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.OpResult;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.RangeResult;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreRejectedException.Reason;
import io.etcfs.core.store.StoreStatus;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.TxnResult;
import io.etcfs.core.store.Watch;
import io.etcfs.core.store.WatchEvent;
import io.etcfs.core.store.WatchListener;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/**
 * What every {@link MetadataStore} does, as tests. A subclass says which store; one store may serve all tests, each works under a prefix of its own.
 * The store has etcd's defaults: 128 operations, requests of 1.5 MiB.
 */
public abstract class MetadataStoreContract {
    private static final long TIMEOUT_NS = 5_000_000_000L;
    private static final long PATIENCE_MS = 5_000;
    private static final AtomicLong TESTS = new AtomicLong();

    private final Key prefix = Key.of("contract/" + ProcessHandle.current().pid() + "-" + TESTS.incrementAndGet() + "/");

    protected abstract MetadataStore store();

    /** Compacts the store's history up to a revision. */
    protected abstract void compact(long revision) throws Exception;

    // Transactions

    @Test
    protected void writesOfOneTransactionShareARevision() throws Exception {
        TxnResult first = committed(put("a", "1"), put("b", "2"));
        KeyValue a = get("a");
        KeyValue b = get("b");
        assertEquals(first.revision(), a.createRevision());
        assertEquals(first.revision(), a.modRevision());
        assertEquals(first.revision(), b.modRevision());
        assertEquals(1, a.version());
        assertEquals(0, a.leaseId());
        TxnResult second = committed(put("a", "3"));
        a = get("a");
        assertEquals(first.revision() + 1, second.revision());
        assertEquals(first.revision(), a.createRevision());
        assertEquals(second.revision(), a.modRevision());
        assertEquals(2, a.version());
        assertEquals("3", text(a.value()));
    }

    @Test
    protected void aKeyThatCameBackStartsAtVersionOne() throws Exception {
        committed(put("a", "1"));
        committed(put("a", "2"));
        committed(Op.delete(key("a")));
        TxnResult again = committed(put("a", "3"));
        KeyValue a = get("a");
        assertEquals(1, a.version());
        assertEquals(again.revision(), a.createRevision());
    }

    @Test
    protected void onlyWritesMakeRevisions() throws Exception {
        long before = committed(put("a", "1")).revision();
        assertEquals(before, committed(Op.get(key("a"))).revision());
        TxnResult nothing = committed(Op.delete(key("none")));
        assertEquals(before, nothing.revision());
        assertEquals(0, ((OpResult.Deleted) nothing.results().getFirst()).count());
        assertEquals(before, committed().revision());
    }

    @Test
    protected void aGuardChoosesTheBranch() throws Exception {
        TxnResult made = committed(put("a", "1"));
        Txn txn = new Txn(List.of(Compare.modRevision(key("a"), made.revision() - 1)), List.of(put("b", "x")), List.of(Op.get(key("a"))));
        TxnResult result = assertInstanceOf(Outcome.Conflict.class, store().commit(txn, TIMEOUT_NS)).result();
        assertFalse(result.succeeded());
        assertEquals("1", text(result.ranged(0).only().value()));
        assertNull(get("b"));
        txn = new Txn(List.of(Compare.modRevision(key("a"), made.revision())), List.of(put("b", "x")), List.of());
        assertInstanceOf(Outcome.Committed.class, store().commit(txn, TIMEOUT_NS));
        assertNotNull(get("b"));
    }

    @Test
    protected void comparesEveryTargetAndRelation() throws Exception {
        LeaseGrant lease = store().grantLease(60, TIMEOUT_NS);
        long first = committed(put("a", "m")).revision();
        long second = committed(Op.put(key("a"), bytes("m"), lease.leaseId())).revision();
        for (Compare.Target target : List.of(Compare.Target.CREATE_REVISION, Compare.Target.MOD_REVISION, Compare.Target.VERSION, Compare.Target.LEASE)) {
            long actual = switch (target) {
                case CREATE_REVISION -> first;
                case MOD_REVISION -> second;
                case VERSION -> 2;
                case LEASE -> lease.leaseId();
                case VALUE -> throw new AssertionError();
            };
            for (long with : new long[] {actual - 1, actual, actual + 1}) {
                assertEquals(actual == with, holds(new Compare(key("a"), null, target, Compare.Relation.EQUAL, with, null)));
                assertEquals(actual != with, holds(new Compare(key("a"), null, target, Compare.Relation.NOT_EQUAL, with, null)));
                assertEquals(actual > with, holds(new Compare(key("a"), null, target, Compare.Relation.GREATER, with, null)));
                assertEquals(actual < with, holds(new Compare(key("a"), null, target, Compare.Relation.LESS, with, null)));
            }
        }
        for (String with : List.of("l", "m", "n")) {
            int order = "m".compareTo(with);
            assertEquals(order == 0, holds(new Compare(key("a"), null, Compare.Target.VALUE, Compare.Relation.EQUAL, 0, bytes(with))));
            assertEquals(order != 0, holds(new Compare(key("a"), null, Compare.Target.VALUE, Compare.Relation.NOT_EQUAL, 0, bytes(with))));
            assertEquals(order > 0, holds(new Compare(key("a"), null, Compare.Target.VALUE, Compare.Relation.GREATER, 0, bytes(with))));
            assertEquals(order < 0, holds(new Compare(key("a"), null, Compare.Target.VALUE, Compare.Relation.LESS, 0, bytes(with))));
        }
        store().revokeLease(lease.leaseId(), TIMEOUT_NS);
    }

    @Test
    protected void anAbsentKeyHasNumbersZeroAndNoValue() throws Exception {
        assertTrue(holds(Compare.absent(key("none"))));
        assertFalse(holds(Compare.exists(key("none"))));
        assertTrue(holds(Compare.modRevision(key("none"), 0)));
        assertFalse(holds(Compare.value(key("none"), new byte[0])));
        assertFalse(holds(new Compare(key("none"), null, Compare.Target.VALUE, Compare.Relation.NOT_EQUAL, 0, bytes("x"))));
    }

    @Test
    protected void aRangeCompareHoldsForEachKey() throws Exception {
        Key from = key("lock/");
        Key end = from.prefixEnd();
        assertTrue(holds(Compare.noneIn(from, end)));
        long first = committed(put("lock/1", "")).revision();
        assertFalse(holds(Compare.noneIn(from, end)));
        long second = committed(put("lock/2", "")).revision();
        assertTrue(holds(new Compare(from, end, Compare.Target.MOD_REVISION, Compare.Relation.GREATER, first - 1, null)));
        assertFalse(holds(new Compare(from, end, Compare.Target.MOD_REVISION, Compare.Relation.GREATER, first, null)));
        assertTrue(holds(new Compare(from, end, Compare.Target.MOD_REVISION, Compare.Relation.LESS, second + 1, null)));
        // All but one key: the ranges on both of its sides.
        assertFalse(holds(Compare.noneIn(from, key("lock/2"))));
        assertTrue(holds(Compare.noneIn(key("lock/2").next(), end)));
    }

    @Test
    protected void operationsOfABranchSeeTheOnesBefore() throws Exception {
        committed(put("a", "1"), put("b", "1"));
        TxnResult result = committed(Op.get(key("a")), put("a", "2"), Op.get(key("a")), Op.delete(key("b")), Op.prefix(prefix, 0));
        assertEquals("1", text(result.ranged(0).only().value()));
        assertEquals("2", text(result.ranged(2).only().value()));
        assertEquals(result.revision(), result.ranged(2).only().modRevision());
        assertEquals(new OpResult.Deleted(1), result.results().get(3));
        assertEquals(List.of(key("a")), result.ranged(4).keyValues().stream().map(KeyValue::key).toList());
    }

    @Test
    protected void nestedComparesSeeTheStateBeforeTheWholeTransaction() throws Exception {
        committed(put("guard", "old"));
        Txn inner = new Txn(List.of(Compare.value(key("guard"), bytes("old")), Compare.absent(key("new"))),
            List.of(put("taken", "yes"), Op.get(key("guard"))), List.of(put("taken", "no")));
        TxnResult result = committed(put("guard", "changed"), put("new", "1"), new Op.Nested(inner), Op.get(key("taken")));
        TxnResult nested = result.nested(2);
        assertTrue(nested.succeeded());
        assertEquals(result.revision(), nested.revision());
        // Its reads do see what the transaction has written so far.
        assertEquals("changed", text(nested.ranged(1).only().value()));
        assertEquals("yes", text(result.ranged(3).only().value()));
        assertEquals(result.revision(), get("taken").modRevision());
    }

    @Test
    protected void nestedTransactionsNest() throws Exception {
        Txn innermost = new Txn(List.of(Compare.exists(key("none"))), List.of(), List.of(put("deep", "1")));
        Txn middle = new Txn(List.of(), List.of(new Op.Nested(innermost), put("middle", "1")), List.of());
        TxnResult result = committed(new Op.Nested(middle), new Op.Nested(new Txn(List.of(), List.of(Op.get(key("deep"))), List.of())));
        assertFalse(result.nested(0).nested(0).succeeded());
        assertEquals("1", text(result.nested(1).ranged(0).only().value()));
        assertEquals(get("deep").modRevision(), get("middle").modRevision());
    }

    @Test
    protected void oneKeyIsPutOnce() throws Exception {
        assertRejected(Reason.INVALID, put("a", "1"), put("a", "2"));
        assertRejected(Reason.INVALID, put("a", "1"), nested(put("a", "2")));
        assertRejected(Reason.INVALID, nested(put("a", "1")), nested(put("a", "2")));
        assertRejected(Reason.INVALID, put("a", "1"), Op.delete(key("a")));
        assertRejected(Reason.INVALID, put("a/1", "1"), new Op.Delete(key("a/"), key("a/").prefixEnd()));
        assertRejected(Reason.INVALID, nested(put("a/1", "1")), new Op.Delete(key("a/"), key("a/").prefixEnd()));
        assertNull(get("a"));
        // Branches that exclude each other may put the same key, and a key may be deleted twice.
        committed(new Op.Nested(new Txn(List.of(), List.of(put("a", "1")), List.of(put("a", "2")))));
        committed(Op.delete(key("a")), Op.delete(key("a")), new Op.Delete(prefix, prefix.prefixEnd()));
        assertNull(get("a"));
    }

    @Test
    protected void anEmptyKeyIsRefused() {
        assertRejected(Reason.INVALID, Op.put(Key.of(""), bytes("x")));
        assertThrows(StoreRejectedException.class, () -> store().range(Key.of(""), null, 0, false, 0, TIMEOUT_NS));
    }

    @Test
    protected void atMost128Operations() throws Exception {
        List<Op> ops = new ArrayList<>();
        List<Compare> compares = new ArrayList<>();
        for (int i = 0; i < 128; i++) {
            ops.add(put("n" + i, "x"));
            compares.add(Compare.absent(key("n" + i)));
        }
        assertInstanceOf(Outcome.Committed.class, store().commit(new Txn(compares, ops, ops), TIMEOUT_NS));
        compares.add(Compare.absent(key("n")));
        assertEquals(Reason.TOO_LARGE, rejection(new Txn(compares, List.of(), List.of())));
        ops.add(put("n", "x"));
        assertEquals(Reason.TOO_LARGE, rejection(new Txn(List.of(), ops, List.of())));
        // What is left for a nested transaction is what the longest list around it leaves.
        List<Op> outer = new ArrayList<>(ops.subList(0, 100));
        outer.add(nested(ops.subList(101, 128).toArray(Op[]::new)));
        assertInstanceOf(Outcome.Committed.class, store().commit(new Txn(List.of(), outer, List.of()), TIMEOUT_NS));
        outer.set(100, nested(ops.subList(100, 128).toArray(Op[]::new)));
        assertEquals(Reason.TOO_LARGE, rejection(new Txn(List.of(), outer, List.of())));
    }

    @Test
    protected void aRequestThatIsTooLargeIsRefused() {
        assertRejected(Reason.TOO_LARGE, Op.put(key("large"), new byte[1600 << 10]));
        // Large enough to be refused below etcd, by the transport.
        assertRejected(Reason.TOO_LARGE, Op.put(key("large"), new byte[3 << 20]));
    }

    // Reads

    @Test
    protected void rangesAreInKeyOrderAndCut() throws Exception {
        committed(put("b", "2"), put("a", "1"), put("c", "3"), Op.put(key("a").plus(new byte[] {(byte) 0xff}), bytes("high")));
        RangeResult all = store().range(prefix, prefix.prefixEnd(), 0, false, 0, TIMEOUT_NS);
        assertEquals(List.of(key("a"), key("a").plus(new byte[] {(byte) 0xff}), key("b"), key("c")), all.keyValues().stream().map(KeyValue::key).toList());
        assertFalse(all.more());
        assertEquals(4, all.count());
        RangeResult cut = store().range(prefix, prefix.prefixEnd(), 3, true, 0, TIMEOUT_NS);
        assertEquals(3, cut.keyValues().size());
        assertTrue(cut.more());
        assertEquals(4, cut.count());
        assertEquals(0, cut.keyValues().getFirst().value().length);
        RangeResult exact = store().range(prefix, prefix.prefixEnd(), 4, false, 0, TIMEOUT_NS);
        assertFalse(exact.more());
        assertTrue(store().range(key("c"), key("a"), 0, false, 0, TIMEOUT_NS).keyValues().isEmpty());
        assertEquals("2", text(store().range(key("b"), null, 0, false, 0, TIMEOUT_NS).only().value()));
        OpResult.Ranged inTxn = committed(Op.prefix(prefix, 2)).ranged(0);
        assertTrue(inTxn.more());
        assertEquals(4, inTxn.count());
    }

    @Test
    protected void olderRevisionsCanBeReadUntilTheyAreCompacted() throws Exception {
        long r1 = committed(put("a", "1"), put("b", "1")).revision();
        long r2 = committed(put("a", "2"), Op.delete(key("b"))).revision();
        long r3 = committed(put("b", "3")).revision();
        assertEquals("1", text(readAt("a", r1).only().value()));
        assertEquals("1", text(readAt("b", r1).only().value()));
        assertEquals("2", text(readAt("a", r2).only().value()));
        assertNull(readAt("b", r2).only());
        assertEquals(r2, readAt("a", r2).revision());
        assertEquals("3", text(readAt("b", r3).only().value()));
        compact(r2);
        assertEquals(Reason.COMPACTED, assertThrows(StoreRejectedException.class, () -> readAt("a", r1)).reason());
        assertEquals("2", text(readAt("a", r2).only().value()));
        assertNull(readAt("b", r2).only());
        assertEquals(Reason.FUTURE, assertThrows(StoreRejectedException.class, () -> readAt("a", r3 + 1_000_000)).reason());
    }

    // Leases

    @Test
    protected void aLeaseEndsWithItsKeysInOneRevision() throws Exception {
        LeaseGrant lease = store().grantLease(2, TIMEOUT_NS);
        assertTrue(lease.ttlSeconds() >= 2);
        committed(leased("a", lease), leased("b", lease), put("c", "stays"));
        committed(put("b", "detached"));
        committed(leased("d", lease));
        assertEquals(lease.leaseId(), get("a").leaseId());
        RecordingListener heard = new RecordingListener();
        long start = store().range(prefix, null, 0, false, 0, TIMEOUT_NS).revision() + 1;
        try (Watch watch = store().watch(prefix, prefix.prefixEnd(), start, heard)) {
            assertTrue(next(heard).resync());
            RecordingListener.Heard end = next(heard);
            assertEquals("DELETE " + key("a") + ", DELETE " + key("d"), end.summary());
        }
        assertNull(get("a"));
        assertEquals("detached", text(get("b").value()));
        assertEquals(0, store().keepAlive(lease.leaseId(), TIMEOUT_NS).ttlSeconds());
        assertRejected(Reason.LEASE_NOT_FOUND, leased("a", lease));
    }

    @Test
    protected void aLeaseLivesAsLongAsItIsRenewed() throws Exception {
        LeaseGrant lease = store().grantLease(2, TIMEOUT_NS);
        committed(leased("a", lease));
        for (int i = 0; i < 8; i++) {
            Thread.sleep(500);
            assertTrue(store().keepAlive(lease.leaseId(), TIMEOUT_NS).ttlSeconds() >= 2);
        }
        assertNotNull(get("a"));
        store().revokeLease(lease.leaseId(), TIMEOUT_NS);
        assertNull(get("a"));
        store().revokeLease(lease.leaseId(), TIMEOUT_NS);
        assertEquals(0, store().keepAlive(lease.leaseId(), TIMEOUT_NS).ttlSeconds());
    }

    @Test
    protected void aBeatCarriesTheTimeItWasSent() throws Exception {
        LeaseGrant lease = store().grantLease(10, TIMEOUT_NS);
        long sentNs = store().keepAlive(lease.leaseId(), TIMEOUT_NS).sentAtNs();
        Thread.sleep(50);
        long later = store().keepAlive(lease.leaseId(), TIMEOUT_NS).sentAtNs();
        assertTrue(sentNs >= lease.sentAtNs());
        assertTrue(later - sentNs >= 50_000_000L, "sent " + (later - sentNs) + " ns apart");
        store().revokeLease(lease.leaseId(), TIMEOUT_NS);
    }

    @Test
    protected void aDeadLeaseRefusesTheTransactionOnlyInTheBranchTaken() throws Exception {
        LeaseGrant dead = store().grantLease(60, TIMEOUT_NS);
        store().revokeLease(dead.leaseId(), TIMEOUT_NS);
        assertRejected(Reason.LEASE_NOT_FOUND, put("a", "1"), leased("b", dead));
        assertNull(get("a"));
        Op notTaken = new Op.Nested(new Txn(List.of(Compare.exists(key("none"))), List.of(leased("b", dead)), List.of()));
        committed(put("a", "1"), notTaken);
        assertNotNull(get("a"));
        assertRejected(Reason.LEASE_NOT_FOUND, put("c", "1"), nested(leased("b", dead)));
        assertNull(get("c"));
    }

    // Watches

    @Test
    protected void aWatchHearsEachRevisionOnceInOrder() throws Exception {
        RecordingListener heard = new RecordingListener();
        try (Watch watch = store().watch(prefix, prefix.prefixEnd(), 0, heard)) {
            assertTrue(next(heard).resync());
            long r1 = committed(put("b", "1"), put("a", "1")).revision();
            long r2 = committed(Op.delete(key("b")), put("a", "2"), put("c", "1")).revision();
            committed(Op.put(Key.of("elsewhere"), bytes("x")));
            RecordingListener.Heard first = next(heard);
            assertEquals(r1, first.revision());
            assertEquals("PUT " + key("b") + ", PUT " + key("a"), first.summary());
            RecordingListener.Heard second = next(heard);
            assertEquals(r2, second.revision());
            assertEquals("DELETE " + key("b") + ", PUT " + key("a") + ", PUT " + key("c"), second.summary());
            KeyValue deleted = second.events().getFirst().keyValue();
            assertEquals(r2, deleted.modRevision());
            assertEquals(0, deleted.value().length);
            KeyValue put = second.events().get(1).keyValue();
            assertEquals(2, put.version());
            assertEquals(r1, put.createRevision());
            assertArrayEquals(bytes("2"), put.value());
            assertNull(heard.next(200));
        }
    }

    @Test
    protected void aWatchStartsInThePast() throws Exception {
        long r1 = committed(put("a", "1")).revision();
        committed(put("a", "2"));
        long r3 = committed(Op.delete(key("a"))).revision();
        RecordingListener heard = new RecordingListener();
        try (Watch watch = store().watch(key("a"), null, r1 + 1, heard)) {
            RecordingListener.Heard established = next(heard);
            assertTrue(established.resync());
            assertEquals(r1, established.revision(), "nothing after this can have been missed");
            assertEquals(r1 + 1, next(heard).revision());
            assertEquals(r3, next(heard).revision());
            committed(put("a2", "not watched"));
            assertNull(heard.next(200));
        }
    }

    @Test
    protected void aWatchFromACompactedRevisionSaysSo() throws Exception {
        long r1 = committed(put("a", "1")).revision();
        committed(put("a", "2"));
        long r3 = committed(put("a", "3")).revision();
        compact(r3);
        RecordingListener heard = new RecordingListener();
        try (Watch watch = store().watch(key("a"), null, r1, heard)) {
            RecordingListener.Heard gap = next(heard);
            while (gap.resync() && gap.revision() < r1) {
                gap = next(heard);
            }
            assertTrue(gap.resync());
            assertTrue(gap.revision() >= r3, "missed up to " + gap.revision());
            long r4 = committed(put("a", "4")).revision();
            assertEquals(r4, next(heard).revision());
        }
    }

    @Test
    protected void aClosedWatchIsSilent() throws Exception {
        RecordingListener heard = new RecordingListener();
        Watch watch = store().watch(prefix, prefix.prefixEnd(), 0, heard);
        assertTrue(next(heard).resync());
        watch.close();
        committed(put("a", "1"));
        assertNull(heard.next(300));
        watch.close();
    }

    @Test
    protected void closeWaitsForTheCallThatRuns() throws Exception {
        CountDownLatch running = new CountDownLatch(1);
        AtomicInteger ended = new AtomicInteger();
        Watch watch = store().watch(prefix, prefix.prefixEnd(), 0, new WatchListener() {
            @Override
            public void changed(long revision, List<WatchEvent> events) {}

            @Override
            public void resynced(long revision) {
                running.countDown();
                try {
                    Thread.sleep(200);
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
                ended.incrementAndGet();
            }
        });
        assertTrue(running.await(PATIENCE_MS, TimeUnit.MILLISECONDS));
        watch.close();
        assertEquals(1, ended.get());
    }

    @Test
    protected void aListenerMayUseTheStoreAndCloseItsWatch() throws Exception {
        AtomicReference<Watch> watch = new AtomicReference<>();
        CountDownLatch made = new CountDownLatch(1);
        CountDownLatch done = new CountDownLatch(1);
        watch.set(store().watch(prefix, prefix.prefixEnd(), 0, new WatchListener() {
            @Override
            public void changed(long revision, List<WatchEvent> events) {}

            @Override
            public void resynced(long revision) {
                try {
                    assertTrue(made.await(PATIENCE_MS, TimeUnit.MILLISECONDS));
                    committed(put("from-listener", "1"));
                } catch (Exception e) {
                    throw new AssertionError(e);
                }
                watch.get().close();
                done.countDown();
            }
        }));
        made.countDown();
        assertTrue(done.await(PATIENCE_MS, TimeUnit.MILLISECONDS));
    }

    @Test
    protected void aWatchHearsARevisionThatIsLargerThanAMessage() throws Exception {
        // 1,400 KiB in one revision, twice: what comes back in one go is more than a server puts in one message.
        RecordingListener heard = new RecordingListener();
        long start = 0;
        for (int round = 0; round < 3; round++) {
            List<Op> ops = new ArrayList<>();
            for (int i = 0; i < 28; i++) {
                ops.add(Op.put(key("big" + i), new byte[50 << 10]));
            }
            long revision = committed(ops.toArray(Op[]::new)).revision();
            start = round == 0 ? revision : start;
        }
        try (Watch watch = store().watch(prefix, prefix.prefixEnd(), start, heard)) {
            assertTrue(next(heard).resync());
            for (int round = 0; round < 3; round++) {
                RecordingListener.Heard revision = next(heard);
                assertEquals(start + round, revision.revision());
                assertEquals(28, revision.events().size());
            }
        }
        committed(new Op.Delete(prefix, prefix.prefixEnd()));
    }

    @Test
    protected void statusTellsTheRevision() throws Exception {
        long revision = committed(put("a", "1")).revision();
        StoreStatus status = store().status(TIMEOUT_NS);
        assertTrue(status.revision() >= revision);
        assertTrue(status.clusterId() != 0);
        assertNull(status.members().getFirst().error());
        assertTrue(status.members().getFirst().version().startsWith("3."));
    }

    // The words of the tests

    private Key key(String name) {
        return prefix.plus(name);
    }

    private Op put(String name, String value) {
        return Op.put(key(name), bytes(value));
    }

    private Op leased(String name, LeaseGrant lease) {
        return Op.put(key(name), bytes(name), lease.leaseId());
    }

    private static Op nested(Op... ops) {
        return new Op.Nested(new Txn(List.of(), List.of(ops), List.of()));
    }

    private TxnResult committed(Op... ops) throws StoreRejectedException {
        return assertInstanceOf(Outcome.Committed.class, store().commit(new Txn(List.of(), List.of(ops), List.of()), TIMEOUT_NS)).result();
    }

    private boolean holds(Compare compare) throws StoreRejectedException {
        return store().commit(new Txn(List.of(compare), List.of(), List.of()), TIMEOUT_NS) instanceof Outcome.Committed;
    }

    private Reason rejection(Txn txn) {
        return assertThrows(StoreRejectedException.class, () -> store().commit(txn, TIMEOUT_NS)).reason();
    }

    private void assertRejected(Reason reason, Op... ops) {
        assertEquals(reason, rejection(new Txn(List.of(), List.of(ops), List.of())));
    }

    private KeyValue get(String name) throws Exception {
        return store().range(key(name), null, 0, false, 0, TIMEOUT_NS).only();
    }

    private RangeResult readAt(String name, long revision) throws Exception {
        return store().range(key(name), null, 0, false, revision, TIMEOUT_NS);
    }

    private static RecordingListener.Heard next(RecordingListener heard) throws InterruptedException {
        RecordingListener.Heard next = heard.next(PATIENCE_MS);
        assertNotNull(next, "the watch said nothing");
        return next;
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
