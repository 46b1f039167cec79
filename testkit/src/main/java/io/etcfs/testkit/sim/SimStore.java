package io.etcfs.testkit.sim;

import io.etcfs.core.store.Key;
import io.etcfs.core.store.LeaseBeat;
import io.etcfs.core.store.LeaseGrant;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.RangeResult;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreStatus;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.Watch;
import io.etcfs.core.store.WatchEvent;
import io.etcfs.core.store.WatchListener;
import java.util.ArrayDeque;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/** One process's client of the shared store, over its network. Requests are carried out when they arrive, whatever has become of the process by then. */
final class SimStore implements MetadataStore {
    private final MetadataStore shared;
    private final SimProcess process;
    private final Scheduler scheduler;
    private final SimNetwork network;

    SimStore(MetadataStore shared, SimProcess process, SimNetwork network) {
        this.shared = shared;
        this.process = process;
        this.scheduler = process.scheduler();
        this.network = network;
    }

    private interface Request<T> {
        T carryOut() throws StoreRejectedException, StoreUnavailableException;
    }

    private record Reply<T>(T value, Exception refused) {}

    /** Null: no answer in time. */
    private <T> T ask(Request<T> request, SimNetwork.Cargo cargo, SimNetwork.Cargo back, long timeoutNs) throws StoreRejectedException {
        Answer<Reply<T>> answer = new Answer<>();
        long until = scheduler.nowNs() + timeoutNs;
        network.send(cargo, () -> {
            Reply<T> reply;
            try {
                reply = new Reply<>(request.carryOut(), null);
            } catch (StoreRejectedException | StoreUnavailableException e) {
                reply = new Reply<>(null, e);
            }
            Reply<T> sent = reply;
            network.send(back, () -> answer.give(sent));
        });
        if (!answer.await(scheduler, until)) {
            return null;
        }
        if (answer.value().refused() instanceof StoreRejectedException e) {
            throw e;
        }
        return answer.value().value();
    }

    private <T> T need(Request<T> request, long timeoutNs) throws StoreRejectedException, StoreUnavailableException {
        T answer = ask(request, SimNetwork.Cargo.OTHER, SimNetwork.Cargo.OTHER, timeoutNs);
        if (answer == null) {
            throw new StoreUnavailableException("no answer");
        }
        return answer;
    }

    @Override
    public Outcome commit(Txn txn, long timeoutNs) throws StoreRejectedException {
        boolean deletes = txn.success().stream().allMatch(op -> op instanceof Op.Delete || op instanceof Op.Put p && p.leaseId() == 0 && !isBatch(p));
        boolean acquires = txn.success().stream().anyMatch(op -> op instanceof Op.Put p && p.leaseId() != 0) && txn.success().stream().noneMatch(op -> op instanceof Op.Put p && isBatch(p));
        Outcome outcome = ask(() -> shared.commit(txn, timeoutNs), deletes ? SimNetwork.Cargo.DELETE : SimNetwork.Cargo.TRANSACTION,
                acquires ? SimNetwork.Cargo.TOKEN_ANSWER : SimNetwork.Cargo.OTHER, timeoutNs);
        return outcome == null ? new Outcome.Unknown("no answer") : outcome;
    }

    private static boolean isBatch(Op.Put put) {
        return put.key().toString().contains("/batch:");
    }

    @Override
    public RangeResult range(Key key, Key end, long limit, boolean keysOnly, long atRevision, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        return need(() -> shared.range(key, end, limit, keysOnly, atRevision, timeoutNs), timeoutNs);
    }

    @Override
    public LeaseGrant grantLease(long ttlSeconds, long timeoutNs) throws StoreUnavailableException {
        long sentAtNs = process.nowNs();
        try {
            LeaseGrant grant = need(() -> shared.grantLease(ttlSeconds, timeoutNs), timeoutNs);
            return new LeaseGrant(grant.leaseId(), grant.ttlSeconds(), sentAtNs);
        } catch (StoreRejectedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public LeaseBeat keepAlive(long leaseId, long timeoutNs) throws StoreUnavailableException {
        long sentAtNs = process.nowNs();
        try {
            LeaseBeat beat = need(() -> shared.keepAlive(leaseId, timeoutNs), timeoutNs);
            return new LeaseBeat(beat.ttlSeconds(), sentAtNs, beat.memberRevision());
        } catch (StoreRejectedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void revokeLease(long leaseId, long timeoutNs) throws StoreUnavailableException {
        try {
            need(() -> {
                shared.revokeLease(leaseId, timeoutNs);
                return true;
            }, timeoutNs);
        } catch (StoreRejectedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void compact(long revision, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        need(() -> {
            shared.compact(revision, timeoutNs);
            return true;
        }, timeoutNs);
    }

    @Override
    public void defragment(String endpoint, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        need(() -> {
            shared.defragment(endpoint, timeoutNs);
            return true;
        }, timeoutNs);
    }

    @Override
    public void moveLeader(String leaderEndpoint, long toMemberId, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        need(() -> {
            shared.moveLeader(leaderEndpoint, toMemberId, timeoutNs);
            return true;
        }, timeoutNs);
    }

    @Override
    public StoreStatus status(long timeoutNs) throws StoreUnavailableException {
        try {
            return need(() -> shared.status(timeoutNs), timeoutNs);
        } catch (StoreRejectedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Events in their order, each after a while of its own; a cut holds them up, a break loses what is on its way and says so. */
    private final class Stream implements WatchListener, Watch {
        private record Event(long revision, List<WatchEvent> events, long arrivesNs) {}

        private final WatchListener listener;
        private final ArrayDeque<Event> queue = new ArrayDeque<>();
        private Thread thread;
        private long lastArrivalNs;
        private boolean closed;
        private Watch source;

        Stream(WatchListener listener) {
            this.listener = listener;
        }

        @Override
        public void changed(long revision, List<WatchEvent> events) {
            add(revision, events);
        }

        @Override
        public void resynced(long revision) {
            add(revision, null);
        }

        private void add(long revision, List<WatchEvent> events) {
            lastArrivalNs = Math.max(lastArrivalNs, Math.max(scheduler.nowNs(), network.cutUntilNs()) + network.watchNs());
            if (events != null && network.watchBreaks()) {
                queue.clear();
                queue.add(new Event(revision, null, lastArrivalNs));
            } else {
                queue.add(new Event(revision, events, lastArrivalNs));
            }
            LockSupport.unpark(thread);
        }

        void run() {
            thread = Thread.currentThread();
            while (!closed) {
                Event e = queue.peek();
                if (e == null) {
                    LockSupport.park();
                } else if (scheduler.nowNs() < e.arrivesNs) {
                    scheduler.parkUntil(e.arrivesNs);
                } else {
                    queue.poll();
                    if (e.events == null) {
                        listener.resynced(e.revision);
                    } else {
                        listener.changed(e.revision, e.events);
                    }
                }
            }
        }

        @Override
        public void close() {
            closed = true;
            source.close();
            LockSupport.unpark(thread);
        }
    }

    @Override
    public Watch watch(Key from, Key end, long startRevision, WatchListener listener) {
        Stream stream = new Stream(listener);
        stream.source = shared.watch(from, end, startRevision, stream);
        process.start("watch", stream::run);
        return stream;
    }

    @Override
    public void close() {}
}
