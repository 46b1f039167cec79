package io.etcfs.testkit.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.store.Key;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.Watch;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class MemoryStoreTest extends MetadataStoreContract {
    private static final long TIMEOUT_NS = 50_000_000L;
    private static final Key A = Key.of("a");

    private final MonotonicClock clock = new MonotonicClock();
    private final MemoryStore store = new MemoryStore(clock, (name, body) -> Thread.ofVirtual().name(name).start(body));

    @Override
    protected MetadataStore store() {
        return store;
    }

    @Override
    protected void compact(long revision) throws Exception {
        store.compact(revision);
    }

    @AfterEach
    void close() {
        store.close();
    }

    @Test
    void heldWatchesComeBackWithoutAGap() throws Exception {
        RecordingListener heard = new RecordingListener();
        try (Watch watch = store.watch(A, null, 0, heard)) {
            assertTrue(heard.next(1_000).resync());
            store.holdWatches();
            put();
            assertNull(heard.next(100));
            store.resumeWatches();
            assertEquals("PUT a", heard.next(1_000).summary());
            put();
            assertEquals("PUT a", heard.next(1_000).summary());
            assertNull(heard.next(100));
        }
    }

    @Test
    void heldWatchesResyncAfterCompaction() throws Exception {
        RecordingListener heard = new RecordingListener();
        try (Watch watch = store.watch(A, null, 0, heard)) {
            assertTrue(heard.next(1_000).resync());
            store.holdWatches();
            put();
            put();
            store.compact(store.revision());
            put();
            store.resumeWatches();
            RecordingListener.Heard gap = heard.next(1_000);
            assertTrue(gap.resync());
            assertEquals(store.revision() - 1, gap.revision());
            assertEquals(store.revision(), heard.next(1_000).revision());
        }
    }

    @Test
    void faultsHaveTheEffectTheySay() throws Exception {
        for (StoreFaults.Commit fault : List.of(new StoreFaults.Commit.Lost(), new StoreFaults.Commit.ReplyLost(), new StoreFaults.Commit.Late(TIMEOUT_NS * 3))) {
            store.commit(new Txn(List.of(), List.of(Op.delete(A)), List.of()), TIMEOUT_NS);
            StoreFaults faults = new StoreFaults() {
                @Override
                public Commit onCommit(Txn txn) {
                    return fault;
                }

                @Override
                public boolean failsOther() {
                    return false;
                }

                @Override
                public Beat onBeat() {
                    return Beat.ANSWERED;
                }
            };
            FaultyStore faulty = new FaultyStore(store, faults, clock, (name, body) -> Thread.ofVirtual().name(name).start(body));
            assertInstanceOf(Outcome.Unknown.class, faulty.commit(new Txn(List.of(), List.of(Op.put(A, new byte[0])), List.of()), TIMEOUT_NS));
            boolean applied = store.range(A, null, 0, false, 0, 0).only() != null;
            assertEquals(fault instanceof StoreFaults.Commit.ReplyLost, applied);
            if (fault instanceof StoreFaults.Commit.Late) {
                clock.sleep(TIMEOUT_NS * 4);
                assertNotNull(store.range(A, null, 0, false, 0, 0).only());
            }
        }
    }

    private void put() throws Exception {
        store.commit(new Txn(List.of(), List.of(Op.put(A, new byte[0])), List.of()), TIMEOUT_NS);
    }
}
