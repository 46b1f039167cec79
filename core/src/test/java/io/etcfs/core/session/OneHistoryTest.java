package io.etcfs.core.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fault.Fault;
import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.LeaseBeat;
import io.etcfs.core.store.LeaseGrant;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.OtherClusterException;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.RangeResult;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreRejectedException.Reason;
import io.etcfs.core.store.StoreStatus;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.TxnResult;
import io.etcfs.core.store.Watch;
import io.etcfs.core.store.WatchEvent;
import io.etcfs.core.store.WatchListener;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class OneHistoryTest {
    private static final Key KEY = Key.of("k");
    private static final Txn TXN = new Txn(List.of(Compare.exists(KEY)), List.of(), List.of());

    /** At a revision that a test sets. What is to happen while a request is on its way happens before the answer is made, or after. */
    private static final class Scripted implements MetadataStore {
        long revision = 1;
        /** How far the one member is that answers keep-alives and status. */
        long memberRevision;
        /** After the next answer was made, before it arrives. */
        Runnable overtaken;
        RuntimeException failure;
        boolean unknown;
        int reads;
        WatchListener listener;

        private long answer() {
            if (failure != null) {
                throw failure;
            }
            long made = revision;
            Runnable first = overtaken;
            overtaken = null;
            if (first != null) {
                first.run();
            }
            return made;
        }

        @Override
        public Outcome commit(Txn txn, long timeoutNs) {
            TxnResult result = new TxnResult(answer(), true, List.of());
            return unknown ? new Outcome.Unknown("no answer") : new Outcome.Committed(result);
        }

        @Override
        public RangeResult range(Key key, Key end, long limit, boolean keysOnly, long atRevision, long timeoutNs) throws StoreRejectedException {
            reads++;
            long at = answer();
            if (atRevision > at) {
                throw new StoreRejectedException(Reason.FUTURE, "not yet");
            }
            return new RangeResult(atRevision == 0 ? at : atRevision, at, List.of(), false, 0);
        }

        @Override
        public LeaseGrant grantLease(long ttlSeconds, long timeoutNs) {
            return new LeaseGrant(1, ttlSeconds, 0);
        }

        @Override
        public LeaseBeat keepAlive(long leaseId, long timeoutNs) {
            answer();
            return new LeaseBeat(10, 0, memberRevision);
        }

        @Override
        public void revokeLease(long leaseId, long timeoutNs) {}

        @Override
        public Watch watch(Key from, Key end, long startRevision, WatchListener heard) {
            listener = heard;
            return () -> {};
        }

        @Override
        public void compact(long at, long timeoutNs) throws StoreRejectedException {
            if (at > answer()) {
                throw new StoreRejectedException(Reason.FUTURE, "not yet");
            }
        }

        @Override
        public StoreStatus status(long timeoutNs) {
            return new StoreStatus(1, memberRevision, 0, 0, 0, false, List.of());
        }

        @Override
        public void defragment(String endpoint, long timeoutNs) {}

        @Override
        public void moveLeader(String leaderEndpoint, long toMemberId, long timeoutNs) {}

        @Override
        public void close() {}
    }

    private final Scripted store = new Scripted();
    private final List<String> stops = new ArrayList<>();
    /** As a node does: a task that ends with an Error ends the node. */
    private final OneHistory history = new OneHistory(store, (name, body) -> {
        try {
            body.run();
        } catch (NodeStoppedError e) {
            stops.add("task: " + e.getMessage());
        }
        return Thread.currentThread();
    }, KEY, stops::add);

    @AfterEach
    void noFaults() {
        Fault.plant(Set.of());
    }

    private RangeResult read() throws StoreUnavailableException, StoreRejectedException {
        return history.range(KEY, null, 0, false, 0, 1);
    }

    private void at(long revision) throws Exception {
        store.revision = revision;
        assertEquals(revision, read().storeRevision());
    }

    private void isOver() {
        assertThrows(NodeStoppedError.class, this::read);
        assertThrows(NodeStoppedError.class, () -> history.commit(TXN, 1));
        assertThrows(NodeStoppedError.class, () -> history.keepAlive(1, 1));
        assertThrows(NodeStoppedError.class, () -> history.grantLease(1, 1));
        assertThrows(NodeStoppedError.class, () -> history.status(1));
    }

    @Test
    void answersMayOvertakeEachOther() throws Exception {
        at(5);
        store.overtaken = () -> {
            store.revision = 9;
            try {
                assertInstanceOf(Outcome.Committed.class, history.commit(TXN, 1));
            } catch (StoreRejectedException e) {
                throw new IllegalStateException(e);
            }
        };
        assertEquals(5, read().storeRevision());
        assertEquals(9, history.seen());
        at(9);
        at(12);
        assertEquals(List.of(), stops);
    }

    @Test
    void aReadThatIsBehindWhatWasSeenBeforeEndsIt() throws Exception {
        at(5);
        store.revision = 4;
        assertThrows(NodeStoppedError.class, this::read);
        assertEquals(1, stops.size());
        assertTrue(stops.getFirst().startsWith("etcd's history went back: it is at revision 4, and had been at 5 before."), stops.getFirst());
        store.revision = 100;
        isOver();
    }

    @Test
    void soDoesATransaction() throws Exception {
        at(5);
        store.revision = 4;
        assertThrows(NodeStoppedError.class, () -> history.commit(TXN, 1));
        isOver();
    }

    @Test
    void aReadOfAnOlderRevisionCountsByWhereTheStoreIs() throws Exception {
        at(5);
        assertEquals(3, history.range(KEY, null, 0, false, 3, 1).revision());
        store.revision = 4;
        assertThrows(NodeStoppedError.class, () -> history.range(KEY, null, 0, false, 3, 1));
    }

    @Test
    void aRevisionThatWasSeenAndIsNotThereYetEndsIt() throws Exception {
        at(5);
        assertEquals(Reason.FUTURE, assertThrows(StoreRejectedException.class, () -> history.range(KEY, null, 0, false, 6, 1)).reason());
        assertThrows(StoreRejectedException.class, () -> history.compact(6, 1));
        store.revision = 3;
        assertThrows(NodeStoppedError.class, () -> history.compact(4, 1));
        isOver();
    }

    @Test
    void nothingIsConcludedFromAnAnswerThatDidNotCome() throws Exception {
        at(5);
        store.revision = 4;
        store.unknown = true;
        assertInstanceOf(Outcome.Unknown.class, history.commit(TXN, 1));
        store.unknown = false;
        store.overtaken = () -> assertThrows(NodeStoppedError.class, this::read);
        store.unknown = true;
        assertThrows(NodeStoppedError.class, () -> history.commit(TXN, 1));
    }

    @Test
    void aMemberMayBeBehind() throws Exception {
        at(5);
        store.memberRevision = 5;
        history.keepAlive(1, 1);
        assertEquals(1, store.reads);
        store.memberRevision = 3;
        history.keepAlive(1, 1);
        assertEquals(2, store.reads);
        history.status(1);
        assertEquals(3, store.reads);
        store.memberRevision = 0;
        history.keepAlive(1, 1);
        assertEquals(3, store.reads);
        assertEquals(List.of(), stops);
    }

    @Test
    void ifTheOthersAreToThatEndsIt() throws Exception {
        at(5);
        store.revision = 4;
        store.memberRevision = 4;
        assertEquals(10, history.keepAlive(1, 1).ttlSeconds());
        assertEquals(2, stops.size());
        isOver();
    }

    @Test
    void whatAMemberHasAndWhatAWatchTellsIsSeen() throws Exception {
        at(5);
        store.memberRevision = 7;
        history.status(1);
        assertEquals(7, history.seen());
        List<Long> heard = new ArrayList<>();
        history.watch(KEY, null, 0, new WatchListener() {
            @Override
            public void changed(long revision, List<WatchEvent> events) {
                heard.add(revision);
            }

            @Override
            public void resynced(long revision) {
                heard.add(-revision);
            }
        });
        store.listener.changed(6, List.of());
        store.listener.changed(8, List.of());
        assertEquals(8, history.seen());
        store.revision = 7;
        assertThrows(NodeStoppedError.class, this::read);
        store.listener.changed(9, List.of());
        store.listener.resynced(9);
        assertEquals(List.of(6L, 8L), heard);
    }

    @Test
    void anotherClusterEndsIt() throws Exception {
        at(5);
        store.failure = new OtherClusterException("e1 is in another one");
        assertThrows(NodeStoppedError.class, () -> history.keepAlive(1, 1));
        assertTrue(stops.getFirst().startsWith("another etcd cluster answers: e1"), stops.getFirst());
        store.failure = null;
        isOver();
    }

    @Test
    void withoutTheRuleItGoesOn() throws Exception {
        Fault.plant(Set.of(Fault.HISTORY_GOES_BACK));
        at(5);
        at(3);
        assertEquals(List.of(), stops);
    }
}
