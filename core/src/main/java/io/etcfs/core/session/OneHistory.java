package io.etcfs.core.session;

import io.etcfs.core.clock.Tasks;
import io.etcfs.core.fault.Fault;
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
import io.etcfs.core.store.Watch;
import io.etcfs.core.store.WatchEvent;
import io.etcfs.core.store.WatchListener;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/**
 * A node's way to etcd, which holds only as long as etcd's history is the one that the node has seen. An older snapshot that was restored has blocks for free, or for one file's,
 * that are another's since: whoever goes on with it gives files other files' bytes. Once that has shown the node is stopped, and each call, also one that was on its way, ends
 * with {@link NodeStoppedError}: no answer of the other history is acted upon.
 *
 * <p>What shows it: transactions and reads are linearizable. One that was sent after a revision had been seen is answered at that revision or a later one, by whatever member.
 * Answers overtake each other, so each is compared with what had been seen when its request was sent, and not with what has been seen since.
 *
 * <p>What does not: keep-alives, {@link #status} and the events of watches come from one member, which may be behind. A revision that one member has is one of the cluster's, and
 * counts as seen; where it is lower than one that was seen before it was asked for, a read is made, and that one tells.
 */
public final class OneHistory implements MetadataStore {
    private static final long READ_NS = 1_000_000_000L;

    private final MetadataStore store;
    private final Tasks tasks;
    private final Key anyKey;
    private final Consumer<String> stop;
    private final AtomicLong seen = new AtomicLong();
    private final AtomicBoolean reading = new AtomicBoolean();
    /** Why no answer counts any more. */
    private volatile String over;

    /**
     * @param tasks  a task that ends with an Error ends the node
     * @param anyKey to be read where only one member has said something
     * @param stop   told why, before the first call ends with {@link NodeStoppedError}; by any thread, and perhaps more than once
     */
    public OneHistory(MetadataStore store, Tasks tasks, Key anyKey, Consumer<String> stop) {
        this.store = store;
        this.tasks = tasks;
        this.anyKey = anyKey;
        this.stop = stop;
    }

    /** The highest revision that any answer had. */
    public long seen() {
        return seen.get();
    }

    @Override
    public Outcome commit(Txn txn, long timeoutNs) throws StoreRejectedException {
        long before = send();
        try {
            Outcome outcome = store.commit(txn, timeoutNs);
            switch (outcome) {
                case Outcome.Committed(var result) -> answered(before, result.revision());
                case Outcome.Conflict(var result) -> answered(before, result.revision());
                case Outcome.Unknown unknown -> requireNotOver();
            }
            return outcome;
        } catch (OtherClusterException e) {
            throw stopped(e);
        }
    }

    @Override
    public RangeResult range(Key key, Key end, long limit, boolean keysOnly, long atRevision, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        long before = send();
        try {
            RangeResult result = store.range(key, end, limit, keysOnly, atRevision, timeoutNs);
            answered(before, result.storeRevision());
            return result;
        } catch (StoreRejectedException e) {
            rejected(before, atRevision, e);
            throw e;
        } catch (OtherClusterException e) {
            throw stopped(e);
        }
    }

    @Override
    public LeaseGrant grantLease(long ttlSeconds, long timeoutNs) throws StoreUnavailableException {
        send();
        try {
            LeaseGrant granted = store.grantLease(ttlSeconds, timeoutNs);
            requireNotOver();
            return granted;
        } catch (OtherClusterException e) {
            throw stopped(e);
        }
    }

    @Override
    public LeaseBeat keepAlive(long leaseId, long timeoutNs) throws StoreUnavailableException {
        long before = send();
        try {
            LeaseBeat beat = store.keepAlive(leaseId, timeoutNs);
            oneMemberHas(before, beat.memberRevision());
            return beat;
        } catch (OtherClusterException e) {
            throw stopped(e);
        }
    }

    @Override
    public void revokeLease(long leaseId, long timeoutNs) throws StoreUnavailableException {
        send();
        try {
            store.revokeLease(leaseId, timeoutNs);
        } catch (OtherClusterException e) {
            throw stopped(e);
        }
    }

    /** What a watch says may be late, so nothing is concluded from its revisions. It says nothing more once the history is another one. */
    @Override
    public Watch watch(Key from, Key end, long startRevision, WatchListener listener) {
        requireNotOver();
        return store.watch(from, end, startRevision, new WatchListener() {
            @Override
            public void changed(long revision, List<WatchEvent> events) {
                if (over == null) {
                    see(revision);
                    listener.changed(revision, events);
                }
            }

            @Override
            public void resynced(long revision) {
                if (over == null) {
                    listener.resynced(revision);
                }
            }
        });
    }

    @Override
    public void compact(long revision, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        long before = send();
        try {
            store.compact(revision, timeoutNs);
        } catch (StoreRejectedException e) {
            rejected(before, revision, e);
            throw e;
        } catch (OtherClusterException e) {
            throw stopped(e);
        }
    }

    @Override
    public StoreStatus status(long timeoutNs) throws StoreUnavailableException {
        long before = send();
        try {
            StoreStatus status = store.status(timeoutNs);
            oneMemberHas(before, status.revision());
            return status;
        } catch (OtherClusterException e) {
            throw stopped(e);
        }
    }

    @Override
    public void defragment(String endpoint, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        send();
        try {
            store.defragment(endpoint, timeoutNs);
        } catch (OtherClusterException e) {
            throw stopped(e);
        }
    }

    @Override
    public void moveLeader(String leaderEndpoint, long toMemberId, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        send();
        try {
            store.moveLeader(leaderEndpoint, toMemberId, timeoutNs);
        } catch (OtherClusterException e) {
            throw stopped(e);
        }
    }

    @Override
    public void close() {
        store.close();
    }

    /** The revision that the answer to what is sent now must have at least. */
    private long send() {
        requireNotOver();
        return seen.get();
    }

    private void answered(long before, long revision) {
        requireNotOver();
        if (revision < before && !Fault.HISTORY_GOES_BACK.on()) {
            throw stopped("it is at revision " + revision, before);
        }
        see(revision);
    }

    /** etcd has not come that far, though it had when the request was sent. */
    private void rejected(long before, long atRevision, StoreRejectedException e) {
        requireNotOver();
        if (e.reason() == Reason.FUTURE && atRevision <= before && !Fault.HISTORY_GOES_BACK.on()) {
            throw stopped("it has no revision " + atRevision, before);
        }
    }

    /** @param revision 0: it did not say */
    private void oneMemberHas(long before, long revision) {
        requireNotOver();
        if (revision != 0 && revision < before && reading.compareAndSet(false, true)) {
            tasks.start("history-read", this::read);
        }
        see(revision);
    }

    private void read() {
        try {
            range(anyKey, null, 1, true, 0, READ_NS);
        } catch (StoreUnavailableException | StoreRejectedException e) {
            // The next answer of one member asks again.
        } finally {
            reading.set(false);
        }
    }

    private void see(long revision) {
        seen.accumulateAndGet(revision, Math::max);
    }

    private void requireNotOver() {
        if (over != null) {
            throw new NodeStoppedError(over);
        }
    }

    private NodeStoppedError stopped(String found, long before) {
        return stopped("etcd's history went back: " + found + ", and had been at " + before + " before. An older snapshot of it was restored, or it has lost data. With it files would have other"
                + " files' bytes: do not mount the filesystem before etcd has its newer data back, or both a snapshot of etcd and a copy of the device of the same time have been restored");
    }

    private NodeStoppedError stopped(OtherClusterException e) {
        return stopped("another etcd cluster answers: " + e.getMessage() + ". Have the cluster that the filesystem was made in answer at the addresses of --etcd, then mount again");
    }

    private NodeStoppedError stopped(String reason) {
        over = reason;
        stop.accept(reason);
        return new NodeStoppedError(reason);
    }
}
