package io.etcfs.testkit.store;

import io.etcfs.core.clock.Clock;
import io.etcfs.core.clock.Tasks;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.LeaseBeat;
import io.etcfs.core.store.LeaseGrant;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
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
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Stream;

/**
 * An etcd cluster in memory with etcd's rules and no faults: every call is answered at once, at one point in time. Nodes of a test share one, each through
 * a {@link FaultyStore} of its own if something is to go wrong.
 *
 * <p>Deterministic: revisions, lease ids and the order of deliveries follow from the order of the calls and from the clock. Threads come from {@link Tasks}
 * only: one for the end of leases, one for each watch.
 */
public final class MemoryStore implements MetadataStore {
    /**
     * etcd's settings.
     *
     * @param maxTxnOps            operations and comparisons a transaction may have ({@code --max-txn-ops})
     * @param maxRequestBytes      size of a request ({@code --max-request-bytes})
     * @param minLeaseTtlSeconds   shorter leases are granted with this time to live; follows from the election timeout
     * @param leaseExpiryLateNs    how long after its end a lease's keys go; etcd is never early and up to a second late
     * @param quotaBytes           reported by {@link #status}; full is what {@link #database} says
     */
    public record Settings(int maxTxnOps, long maxRequestBytes, long minLeaseTtlSeconds, long leaseExpiryLateNs, long quotaBytes) {
        public static final Settings DEFAULT = new Settings(128, 1536 << 10, 2, 0, 2L << 30);
    }

    private static final long CLUSTER_ID = 0xe7cf5;
    private static final long FIRST_LEASE_ID = 0x1000;
    private static final String ENDPOINT = "memory";
    private static final String NO_SPACE = "etcdserver: mvcc: database space exceeded";

    private static final class Lease {
        final long id;
        final long ttlSeconds;
        final SortedSet<Key> keys = new TreeSet<>();
        long endsAtNs;

        Lease(long id, long ttlSeconds) {
            this.id = id;
            this.ttlSeconds = ttlSeconds;
        }
    }

    private final Clock clock;
    private final Tasks tasks;
    private final Settings settings;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition leasesChanged = lock.newCondition();
    private KeySpace keys = new KeySpace();
    private final SequencedMap<Long, Lease> leases = new LinkedHashMap<>();
    private final Map<Key, Lease> leaseOf = new HashMap<>();
    private final List<MemoryWatch> watches = new ArrayList<>();
    private long leasesGranted;
    private long watchesMade;
    private boolean leaseThreadRuns;
    private boolean watchesHeld;
    private long dbSizeBytes;
    private long dbInUseBytes;
    private boolean noSpaceAlarm;
    private boolean closed;

    public MemoryStore(Clock clock, Tasks tasks) {
        this(clock, tasks, Settings.DEFAULT);
    }

    public MemoryStore(Clock clock, Tasks tasks, Settings settings) {
        this.clock = clock;
        this.tasks = tasks;
        this.settings = settings;
    }

    @Override
    public Outcome commit(Txn txn, long timeoutNs) throws StoreRejectedException {
        lock.lock();
        try {
            TxnChecks.check(txn, settings.maxTxnOps, settings.maxRequestBytes);
            if (noSpaceAlarm && puts(txn)) {
                return new Outcome.Unknown(NO_SPACE, true);
            }
            endLeases();
            KeySpace.Applied applied = keys.apply(txn, leases::containsKey);
            attachLeases(applied.events());
            deliver(applied.events());
            return applied.result().succeeded() ? new Outcome.Committed(applied.result()) : new Outcome.Conflict(applied.result());
        } finally {
            lock.unlock();
        }
    }

    private static boolean puts(Txn txn) {
        return Stream.concat(txn.success().stream(), txn.failure().stream()).anyMatch(op -> op instanceof Op.Put || op instanceof Op.Nested(Txn nested) && puts(nested));
    }

    /** What {@link #status} tells of the database. With the alarm, transactions that put something and new leases are refused, until it is disarmed. */
    public void database(long sizeBytes, long inUseBytes, boolean noSpace) {
        lock.lock();
        try {
            dbSizeBytes = sizeBytes;
            dbInUseBytes = inUseBytes;
            noSpaceAlarm = noSpace;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public RangeResult range(Key key, Key end, long limit, boolean keysOnly, long atRevision, long timeoutNs) throws StoreRejectedException {
        lock.lock();
        try {
            TxnChecks.checkKey(key);
            endLeases();
            return keys.range(new Interval(key, end), limit, keysOnly, atRevision);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public LeaseGrant grantLease(long ttlSeconds, long timeoutNs) throws StoreUnavailableException {
        lock.lock();
        try {
            if (noSpaceAlarm) {
                throw new StoreUnavailableException(NO_SPACE);
            }
            Lease lease = new Lease(FIRST_LEASE_ID + leasesGranted++, Math.max(ttlSeconds, settings.minLeaseTtlSeconds));
            long nowNs = clock.nowNs();
            lease.endsAtNs = nowNs + lease.ttlSeconds * 1_000_000_000L;
            leases.put(lease.id, lease);
            if (!leaseThreadRuns) {
                leaseThreadRuns = true;
                tasks.start("memory-store-leases", this::runLeaseThread);
            }
            leasesChanged.signalAll();
            return new LeaseGrant(lease.id, lease.ttlSeconds, nowNs);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public LeaseBeat keepAlive(long leaseId, long timeoutNs) {
        lock.lock();
        try {
            endLeases();
            long nowNs = clock.nowNs();
            Lease lease = leases.get(leaseId);
            if (lease == null) {
                return new LeaseBeat(0, nowNs, keys.revision());
            }
            lease.endsAtNs = nowNs + lease.ttlSeconds * 1_000_000_000L;
            return new LeaseBeat(lease.ttlSeconds, nowNs, keys.revision());
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void revokeLease(long leaseId, long timeoutNs) {
        lock.lock();
        try {
            endLeases();
            Lease lease = leases.get(leaseId);
            if (lease != null) {
                end(lease);
            }
        } finally {
            lock.unlock();
        }
    }

    @Override
    public Watch watch(Key from, Key end, long startRevision, WatchListener listener) {
        lock.lock();
        try {
            endLeases();
            MemoryWatch watch = new MemoryWatch(new Interval(from, end), startRevision, listener, this::forget);
            watches.add(watch);
            tasks.start("memory-store-watch-" + ++watchesMade, watch::run);
            if (!watchesHeld) {
                watch.connect(keys);
            }
            return watch;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public StoreStatus status(long timeoutNs) throws StoreUnavailableException {
        lock.lock();
        try {
            return new StoreStatus(CLUSTER_ID, keys.revision(), dbSizeBytes, dbInUseBytes, settings.quotaBytes, noSpaceAlarm,
                List.of(new StoreStatus.Member(ENDPOINT, "3.6.16", 1, true, dbSizeBytes, dbInUseBytes, null)));
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void defragment(String endpoint, long timeoutNs) {
        lock.lock();
        try {
            requireMember(endpoint);
            dbSizeBytes = dbInUseBytes;
        } finally {
            lock.unlock();
        }
    }

    /** There is no other one. */
    @Override
    public void moveLeader(String leaderEndpoint, long toMemberId, long timeoutNs) throws StoreUnavailableException {
        requireMember(leaderEndpoint);
        throw new StoreUnavailableException("etcdserver: bad leader transferee");
    }

    private static void requireMember(String endpoint) {
        if (!endpoint.equals(ENDPOINT)) {
            throw new IllegalArgumentException("no endpoint " + endpoint);
        }
    }

    @Override
    public void compact(long revision, long timeoutNs) throws StoreRejectedException {
        compact(revision);
    }

    /** Forgets what was before a revision, as etcd's compaction does. */
    public void compact(long revision) throws StoreRejectedException {
        lock.lock();
        try {
            keys.compact(revision);
        } finally {
            lock.unlock();
        }
    }

    public long revision() {
        lock.lock();
        try {
            return keys.revision();
        } finally {
            lock.unlock();
        }
    }

    /** From now on no watch hears anything, as if all their connections were broken, until {@link #resumeWatches}. */
    public void holdWatches() {
        lock.lock();
        try {
            watchesHeld = true;
        } finally {
            lock.unlock();
        }
    }

    /** The watches come back where they were, or with a resync where that has been compacted. */
    public void resumeWatches() {
        lock.lock();
        try {
            watchesHeld = false;
            for (MemoryWatch watch : watches) {
                watch.connect(keys);
            }
        } finally {
            lock.unlock();
        }
    }

    /** What a snapshot has: keys, history and leases. */
    public static final class Snapshot {
        private final KeySpace keys;
        /** Id and time to live. */
        private final SequencedMap<Long, Long> leases = new LinkedHashMap<>();

        private Snapshot(KeySpace keys) {
            this.keys = keys;
        }

        public long revision() {
            return keys.revision();
        }
    }

    public Snapshot save() {
        lock.lock();
        try {
            endLeases();
            Snapshot snapshot = new Snapshot(keys.copy());
            leases.values().forEach(lease -> snapshot.leases.put(lease.id, lease.ttlSeconds));
            return snapshot;
        } finally {
            lock.unlock();
        }
    }

    /** Everything is as it was then, as after the restore of a snapshot: leases have all their time again, and watches that are further wait for revisions that have not been yet. */
    public void restore(Snapshot snapshot) {
        lock.lock();
        try {
            keys = snapshot.keys.copy();
            leases.clear();
            leaseOf.clear();
            long nowNs = clock.nowNs();
            snapshot.leases.forEach((id, ttlSeconds) -> {
                Lease lease = new Lease(id, ttlSeconds);
                lease.endsAtNs = nowNs + ttlSeconds * 1_000_000_000L;
                leases.put(id, lease);
            });
            for (KeyValue kv : keys.all()) {
                Lease lease = leases.get(kv.leaseId());
                if (lease != null) {
                    lease.keys.add(kv.key());
                    leaseOf.put(kv.key(), lease);
                }
            }
            leasesChanged.signalAll();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void close() {
        List<MemoryWatch> open;
        lock.lock();
        try {
            closed = true;
            leasesChanged.signalAll();
            open = List.copyOf(watches);
        } finally {
            lock.unlock();
        }
        // Outside the lock: closing waits for a listener, and that may be calling the store.
        open.forEach(MemoryWatch::close);
    }

    private void forget(MemoryWatch watch) {
        lock.lock();
        try {
            watches.remove(watch);
        } finally {
            lock.unlock();
        }
    }

    private void deliver(List<WatchEvent> events) {
        if (!watchesHeld && !events.isEmpty()) {
            for (MemoryWatch watch : watches) {
                watch.offer(keys.revision(), events);
            }
        }
    }

    /** A put moves its key to its lease, or to none; a delete detaches it. */
    private void attachLeases(List<WatchEvent> events) {
        for (WatchEvent event : events) {
            Key key = event.keyValue().key();
            Lease old = leaseOf.remove(key);
            if (old != null) {
                old.keys.remove(key);
            }
            Lease lease = leases.get(event.keyValue().leaseId());
            if (lease != null) {
                lease.keys.add(key);
                leaseOf.put(key, lease);
            }
        }
    }

    /** Ends what is due, the longest overdue first. Called before each look at the keys, so that no answer depends on when a thread ran. */
    private void endLeases() {
        long dueNs = clock.nowNs() - settings.leaseExpiryLateNs;
        leases.values().stream()
            .filter(lease -> lease.endsAtNs <= dueNs)
            .sorted(Comparator.comparingLong((Lease lease) -> lease.endsAtNs).thenComparingLong(lease -> lease.id))
            .toList()
            .forEach(this::end);
    }

    private void end(Lease lease) {
        leases.remove(lease.id);
        leaseOf.keySet().removeAll(lease.keys);
        deliver(keys.delete(lease.keys));
    }

    private void runLeaseThread() {
        lock.lock();
        try {
            while (!closed) {
                endLeases();
                long nextNs = leases.values().stream().mapToLong(lease -> lease.endsAtNs).min().orElse(Long.MAX_VALUE);
                if (nextNs == Long.MAX_VALUE) {
                    leasesChanged.await();
                } else {
                    clock.await(lock, leasesChanged, nextNs + settings.leaseExpiryLateNs);
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            lock.unlock();
        }
    }
}
