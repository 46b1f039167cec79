package io.etcfs.testkit.store;

import io.etcfs.core.clock.Clock;
import io.etcfs.core.clock.Tasks;
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
import io.etcfs.core.store.WatchListener;

/**
 * One node's way to a store that others use too. Every request is subject to its {@link StoreFaults}; a request without an answer takes its whole timeout on
 * the clock. Closing it leaves the shared store, and watches made through this one, open.
 */
public final class FaultyStore implements MetadataStore {
    private final MetadataStore shared;
    private final StoreFaults faults;
    private final Clock clock;
    private final Tasks tasks;

    public FaultyStore(MetadataStore shared, StoreFaults faults, Clock clock, Tasks tasks) {
        this.shared = shared;
        this.faults = faults;
        this.clock = clock;
        this.tasks = tasks;
    }

    @Override
    public Outcome commit(Txn txn, long timeoutNs) throws StoreRejectedException {
        switch (faults.onCommit(txn)) {
            case StoreFaults.Commit.Answered ignored -> {
                return shared.commit(txn, timeoutNs);
            }
            case StoreFaults.Commit.Lost ignored -> {
                // Nothing arrives.
            }
            case StoreFaults.Commit.ReplyLost ignored -> carryOut(txn, timeoutNs);
            case StoreFaults.Commit.Late late -> tasks.start("late-commit", () -> {
                if (sleep(late.delayNs())) {
                    carryOut(txn, timeoutNs);
                }
            });
        }
        sleep(timeoutNs);
        return new Outcome.Unknown("no answer");
    }

    private void carryOut(Txn txn, long timeoutNs) {
        try {
            shared.commit(txn, timeoutNs);
        } catch (StoreRejectedException e) {
            // Nobody hears of it.
        }
    }

    @Override
    public RangeResult range(Key key, Key end, long limit, boolean keysOnly, long atRevision, long timeoutNs)
            throws StoreUnavailableException, StoreRejectedException {
        mayFail(faults.failsOther(), timeoutNs);
        return shared.range(key, end, limit, keysOnly, atRevision, timeoutNs);
    }

    @Override
    public LeaseGrant grantLease(long ttlSeconds, long timeoutNs) throws StoreUnavailableException {
        mayFail(faults.failsOther(), timeoutNs);
        return shared.grantLease(ttlSeconds, timeoutNs);
    }

    @Override
    public LeaseBeat keepAlive(long leaseId, long timeoutNs) throws StoreUnavailableException {
        StoreFaults.Beat fate = faults.onBeat();
        mayFail(fate == StoreFaults.Beat.LOST, timeoutNs);
        LeaseBeat beat = shared.keepAlive(leaseId, timeoutNs);
        mayFail(fate == StoreFaults.Beat.REPLY_LOST, timeoutNs);
        return beat;
    }

    @Override
    public void revokeLease(long leaseId, long timeoutNs) throws StoreUnavailableException {
        mayFail(faults.failsOther(), timeoutNs);
        shared.revokeLease(leaseId, timeoutNs);
    }

    @Override
    public Watch watch(Key from, Key end, long startRevision, WatchListener listener) {
        return shared.watch(from, end, startRevision, listener);
    }

    @Override
    public void compact(long revision, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        shared.compact(revision, timeoutNs);
    }

    @Override
    public void defragment(String endpoint, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        shared.defragment(endpoint, timeoutNs);
    }

    @Override
    public void moveLeader(String leaderEndpoint, long toMemberId, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        shared.moveLeader(leaderEndpoint, toMemberId, timeoutNs);
    }

    @Override
    public StoreStatus status(long timeoutNs) throws StoreUnavailableException {
        mayFail(faults.failsOther(), timeoutNs);
        return shared.status(timeoutNs);
    }

    @Override
    public void close() {
        // The shared store belongs to the test.
    }

    private void mayFail(boolean fails, long timeoutNs) throws StoreUnavailableException {
        if (fails) {
            sleep(timeoutNs);
            throw new StoreUnavailableException("no answer");
        }
    }

    /** Returns false if interrupted. */
    private boolean sleep(long durationNs) {
        try {
            clock.sleep(durationNs);
            return true;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }
}
