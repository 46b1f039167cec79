package io.etcfs.testkit.cluster;

import io.etcfs.core.store.Key;
import io.etcfs.core.store.LeaseBeat;
import io.etcfs.core.store.LeaseGrant;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.RangeResult;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreStatus;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.Watch;
import io.etcfs.core.store.WatchEvent;
import io.etcfs.core.store.WatchListener;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Predicate;

/** One node's way to the shared store: a test decides what becomes of each transaction. */
final class HookedStore implements MetadataStore {
    interface Hook {
        /** The outcome, or null: as usual. */
        Outcome commit(Txn txn) throws StoreRejectedException;
    }

    private final MetadataStore shared;
    volatile Hook hook = txn -> null;
    /** Nothing gets through: requests take a while and have no answer. */
    volatile boolean cut;
    /** Ranges that are not answered, by their first key. */
    volatile Predicate<Key> lost = key -> false;
    /** What others do is not heard of. */
    volatile boolean deaf;
    /** What becomes of a range between its reading and its answer. */
    volatile Consumer<Key> afterRange = key -> {};
    /** Each range takes that much longer, ms. */
    volatile long rangeDelayMs;
    /** Before each status. */
    volatile Runnable beforeStatus = () -> {};

    HookedStore(MetadataStore shared) {
        this.shared = shared;
    }

    @Override
    public Outcome commit(Txn txn, long timeoutNs) throws StoreRejectedException {
        if (cut) {
            sleep(100);
            return new Outcome.Unknown("cut off");
        }
        Outcome o = hook.commit(txn);
        return o != null ? o : shared.commit(txn, timeoutNs);
    }

    @Override
    public RangeResult range(Key key, Key end, long limit, boolean keysOnly, long atRevision, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        reach();
        sleep(rangeDelayMs);
        if (lost.test(key)) {
            throw new StoreUnavailableException("lost");
        }
        RangeResult result = shared.range(key, end, limit, keysOnly, atRevision, timeoutNs);
        afterRange.accept(key);
        return result;
    }

    @Override
    public LeaseGrant grantLease(long ttlSeconds, long timeoutNs) throws StoreUnavailableException {
        reach();
        return shared.grantLease(ttlSeconds, timeoutNs);
    }

    @Override
    public LeaseBeat keepAlive(long leaseId, long timeoutNs) throws StoreUnavailableException {
        reach();
        return shared.keepAlive(leaseId, timeoutNs);
    }

    @Override
    public void revokeLease(long leaseId, long timeoutNs) throws StoreUnavailableException {
        reach();
        shared.revokeLease(leaseId, timeoutNs);
    }

    @Override
    public Watch watch(Key from, Key end, long startRevision, WatchListener listener) {
        return shared.watch(from, end, startRevision, new WatchListener() {
            @Override
            public void changed(long revision, List<WatchEvent> events) {
                if (!deaf) {
                    listener.changed(revision, events);
                }
            }

            @Override
            public void resynced(long revision) {
                listener.resynced(revision);
            }
        });
    }

    @Override
    public void compact(long revision, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        reach();
        shared.compact(revision, timeoutNs);
    }

    @Override
    public void defragment(String endpoint, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        reach();
        shared.defragment(endpoint, timeoutNs);
    }

    @Override
    public void moveLeader(String leaderEndpoint, long toMemberId, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        reach();
        shared.moveLeader(leaderEndpoint, toMemberId, timeoutNs);
    }

    @Override
    public StoreStatus status(long timeoutNs) throws StoreUnavailableException {
        reach();
        beforeStatus.run();
        return shared.status(timeoutNs);
    }

    private void reach() throws StoreUnavailableException {
        if (cut) {
            sleep(100);
            throw new StoreUnavailableException("cut off");
        }
    }

    private static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void close() {
        // The shared store belongs to the cluster.
    }
}
