package io.etcfs.core.token;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.clock.Monitor;
import io.etcfs.core.clock.Tasks;
import io.etcfs.core.domain.Dirent;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.pipeline.Pipeline;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Owner;
import io.etcfs.core.record.proto.Remainder;
import io.etcfs.core.record.proto.SessionRef;
import io.etcfs.core.record.proto.Want;
import io.etcfs.core.session.Guard;
import io.etcfs.core.session.NodeStoppedError;
import io.etcfs.core.session.Session;
import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.OpResult;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.RangeResult;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.TxnResult;
import io.etcfs.core.store.Watch;
import io.etcfs.core.store.WatchEvent;
import io.etcfs.core.store.WatchListener;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * The tokens of this node: getting them, giving them on when others want them, losing and taking them back.
 *
 * <p>Operations ask with {@link #require}. A task for each resource gets what is asked for, as long as somebody still wants it; a task for each recalled
 * resource gives it on with the batch that publishes the last of what was done under it. Both watch {@code lock:} and {@code want:}, and neither relies on
 * it: waiters try again every {@link #RETRY_NS} and renew their wants.
 */
public final class Tokens {
    static final long RETRY_NS = 250_000_000L;
    static final long WANT_RENEW_NS = 1_000_000_000L;
    static final long MIN_HOLD_NS = 10_000_000L;
    static final long MAX_HOLD_NS = 100_000_000L;
    /** A token that no local operation used for this long is not held back from who wants it. */
    static final long IDLE_NS = 2_000_000L;
    /**
     * After an answer was written, the process that asked still has to run before its kernel knows the name: a notification that comes earlier finds nothing
     * to drop. Nothing is granted during a recall; this long after the last grant every answer is taken to be in.
     */
    static final long SETTLE_NS = 60_000_000L;
    /** A demand that no waiting operation renewed is given up after this. */
    static final long DEMAND_NS = 3_000_000_000L;
    static final long GRACE_NS = 4_000_000_000L;
    static final long OWNER_REVISION_UNKNOWN = -1;
    static final int PAGE = 2000;
    static final int MAX_TOKENS = 16_384;
    /** Names and inodes cached under all tokens. */
    static final long MAX_CACHED = 400_000;
    static final int TRIM_AT_ONCE = 2_000;
    private static final long TRIM_IDLE_NS = 1_000_000_000L;
    /** More waiters than this for SHARED are not given it in one batch; the others ask themselves then. */
    static final int MAX_SHARED_AT_ONCE = 20;
    /** The cluster-wide token that moving a directory to another parent takes; no inode has this number. */
    public static final long RENAME_TOKEN = 0;
    private static final long REQUEST_NS = 2_000_000_000L;
    private static final System.Logger LOG = System.getLogger(Tokens.class.getName());

    private final Monitor monitor;
    private final MetadataStore store;
    private final Tasks tasks;
    private final Session session;
    private final Pipeline pipeline;
    private final Keys keys;
    private final String node;
    private Host host;
    private final Map<Long, Domain> domains = new TreeMap<>();
    private Watch lockWatch;
    private Watch wantWatch;
    private boolean leaving;
    private boolean stopping;
    private long acquires;
    private long recalls;

    public Tokens(Monitor monitor, MetadataStore store, Tasks tasks, Session session, Pipeline pipeline, Keys keys, String node) {
        this.monitor = monitor;
        this.store = store;
        this.tasks = tasks;
        this.session = session;
        this.pipeline = pipeline;
        this.keys = keys;
        this.node = node;
    }

    public void host(Host host) {
        this.host = host;
    }

    public void start() {
        lockWatch = store.watch(keys.locks(), keys.locks().prefixEnd(), 0, new WatchListener() {
            @Override
            public void changed(long revision, List<WatchEvent> events) {
                watched(() -> locksChanged(events));
            }

            @Override
            public void resynced(long revision) {
                wakeWaiters();
                tasks.start("own-locks", Tokens.this::listOwnLocks);
            }
        });
        wantWatch = store.watch(keys.wants(), keys.wants().prefixEnd(), 0, new WatchListener() {
            @Override
            public void changed(long revision, List<WatchEvent> events) {
                watched(() -> wantsChanged(events));
            }

            @Override
            public void resynced(long revision) {
                tasks.start("wants", Tokens.this::listWants);
            }
        });
    }

    /** The store's thread may end with what is thrown here, and the node would hear of no want any more: it stops. */
    private void watched(Runnable body) {
        try {
            body.run();
        } catch (RuntimeException | Error e) {
            LOG.log(System.Logger.Level.ERROR, "a watch failed", e);
            tasks.start("watch", () -> {
                throw new NodeStoppedError("a watch failed: " + e);
            });
        }
    }

    public void stop() {
        monitor.lock();
        try {
            stopping = true;
            monitor.changed();
        } finally {
            monitor.unlock();
        }
        if (lockWatch != null) {
            lockWatch.close();
        }
        if (wantWatch != null) {
            wantWatch.close();
        }
    }

    public Domain domain(long resource) {
        return domains.computeIfAbsent(resource, id -> new Domain(id, MIN_HOLD_NS));
    }

    /** The domain if anything is known of it, else null. */
    public Domain known(long resource) {
        return domains.get(resource);
    }

    public Collection<Domain> all() {
        return domains.values();
    }

    public record Counters(int held, long acquires, long recalls) {}

    public Counters counters() {
        int held = 0;
        for (Domain d : domains.values()) {
            held += d.held == Mode.NONE ? 0 : 1;
        }
        return new Counters(held, acquires, recalls);
    }

    // ---- operations ask, monitor held

    /** All of them usable for names and attributes, or {@link Blocked}. */
    public void require(Attempt attempt, Need... needs) {
        if (!session.trusted()) {
            throw Blocked.INSTANCE;
        }
        boolean all = true;
        for (Need n : needs) {
            Domain d = domain(n.resource());
            if (!d.usable(n.mode())) {
                all = false;
                demand(d, n.mode());
            }
        }
        if (all) {
            for (Need n : needs) {
                used(domain(n.resource()));
            }
            return;
        }
        if (needs.length > 1 && attempt.mayWait) {
            attempt.unpin();
            Need[] ordered = needs.clone();
            java.util.Arrays.sort(ordered, Comparator.comparingLong(Need::resource));
            for (Need n : ordered) {
                Domain d = domain(n.resource());
                if (!d.usable(n.mode())) {
                    break;
                }
                attempt.pin(d);
            }
            monitor.changed();
        }
        throw Blocked.INSTANCE;
    }

    /** Usable for an operation on bytes: also while the kernel's cache is being dropped. */
    public Domain requireForData(long resource, Mode mode) {
        Domain d = domain(resource);
        if (!session.trusted()) {
            throw Blocked.INSTANCE;
        }
        if (!d.usableForData(mode)) {
            demand(d, mode);
            throw Blocked.INSTANCE;
        }
        used(d);
        return d;
    }

    private void used(Domain d) {
        d.unserved = false;
        d.lastUsedNs = monitor.nowNs();
    }

    private void demand(Domain d, Mode mode) {
        if (d.held.atLeast(mode) && !d.giving) {
            return;
        }
        long now = monitor.nowNs();
        if (now > d.demandUntilNs) {
            d.demand = Mode.NONE;
        }
        if (!d.demand.atLeast(mode)) {
            d.demand = mode;
            d.events++;
        }
        d.demandUntilNs = now + DEMAND_NS;
        startAcquire(d);
    }

    private void startAcquire(Domain d) {
        if (!d.acquiring && !d.giving && !d.recalling && !leaving && !stopping && d.demand != Mode.NONE) {
            d.acquiring = true;
            tasks.start("acquire-" + d.id, () -> acquire(d));
        }
    }

    /** A directory made under its parent's EXCLUSIVE: held from birth. Monitor held; the directory's inode joins the open batch beside it. */
    public Domain born(long ino) {
        Domain d = domain(ino);
        d.held = Mode.EXCLUSIVE;
        d.loaded = true;
        d.birthUnpublished = true;
        d.epoch = session.revision();
        d.suspects = List.of();
        d.heldSinceNs = monitor.nowNs();
        pipeline.ride(new Birth(session, keys, node, d));
        pipeline.touch(d);
        return d;
    }

    // ---- acquiring

    private void acquire(Domain d) {
        Grant.Seen seen = null;
        long wantPutNs = 0;
        Mode wantPut = Mode.NONE;
        boolean done = false;
        try {
            while (!done) {
                Mode wanted;
                Mode held;
                long sessionRevision;
                long lease;
                long generation;
                Guard guard;
                boolean inGrace;
                long events;
                monitor.lock();
                try {
                    if (stopping || leaving || monitor.nowNs() > d.demandUntilNs || d.held.atLeast(d.demand) && d.loaded || d.recalling || d.giving) {
                        break;
                    }
                    if (!session.trusted() || pipeline.resurrecting()) {
                        monitor.awaitQuietly(monitor.nowNs() + RETRY_NS);
                        seen = null;
                        continue;
                    }
                    wanted = d.demand;
                    held = d.held;
                    sessionRevision = session.revision();
                    lease = session.leaseId();
                    generation = session.generation();
                    guard = session.guard();
                    inGrace = monitor.nowNs() < session.reopenedAtNs() + GRACE_NS;
                    events = d.events;
                } finally {
                    monitor.unlock();
                }
                if (seen == null) {
                    seen = look(d.id);
                    if (seen == null) {
                        pause(50_000_000L);
                        continue;
                    }
                }
                Grant.Decision decision = Grant.decide(seen, wanted, held, node, sessionRevision, lease, generation, inGrace, newestSessions(seen.owner()));
                Grant.Seen before = seen;
                seen = null;
                if ((decision instanceof Grant.Adopt || decision instanceof Grant.Ask) && !mayAsk(d, held)) {
                    break;
                }
                switch (decision) {
                    case Grant.Adopt(Mode mode, long lockRevision) -> {
                        done = adopt(d, mode, guard, sessionRevision, lease, lockRevision);
                        if (!done) {
                            pause(MIN_HOLD_NS);
                        }
                    }
                    case Grant.Grace() -> pause(RETRY_NS);
                    case Grant.Wait(Mode mode) -> {
                        long now = monitor.nowNs();
                        if (wantPut != mode || now - wantPutNs >= WANT_RENEW_NS) {
                            putWant(d.id, mode, guard, sessionRevision, lease, generation);
                            wantPut = mode;
                            wantPutNs = now;
                        }
                        awaitEvents(d, events, RETRY_NS);
                    }
                    case Grant.Ask(Mode mode, Owner owner) -> {
                        if (!polite(before, mode)) {
                            awaitEvents(d, events, MIN_HOLD_NS);
                            // Only once: wants of waiters that stopped waiting must not hold others up.
                        }
                        Asked asked = ask(d, mode, owner, before, guard, sessionRevision, lease, held);
                        done = asked.got;
                        seen = asked.seen;
                    }
                }
                answered(d);
            }
            if (wantPut != Mode.NONE) {
                withdrawWant(d.id);
            }
        } finally {
            monitor.lock();
            try {
                d.acquiring = false;
                d.asking = false;
                if (d.held.atLeast(d.demand) || monitor.nowNs() > d.demandUntilNs) {
                    d.demand = Mode.NONE;
                } else {
                    startAcquire(d);
                }
                considerRecall(d);
                monitor.changed();
            } finally {
                monitor.unlock();
            }
        }
    }

    /** A recall that has begun gives up what is held now: nothing may be added to it meanwhile. */
    private boolean mayAsk(Domain d, Mode held) {
        return monitor.with(() -> {
            // A recall can also have come and gone since: with what it held, it dropped the contents.
            d.asking = !d.recalling && !d.giving && d.held == held;
            return d.asking;
        });
    }

    private void answered(Domain d) {
        monitor.lock();
        try {
            if (d.asking) {
                d.asking = false;
                monitor.changed();
            }
        } finally {
            monitor.unlock();
        }
    }

    /** Whoever only wants to share lets an earlier waiter for EXCLUSIVE go first. */
    private boolean polite(Grant.Seen seen, Mode mode) {
        if (mode == Mode.SHARED) {
            for (Grant.WantSeen w : seen.wants()) {
                if (!w.node().equals(node) && w.mode() == Mode.EXCLUSIVE) {
                    return false;
                }
            }
        }
        return true;
    }

    private void awaitEvents(Domain d, long events, long ns) {
        monitor.lock();
        try {
            long until = monitor.nowNs() + ns;
            while (!stopping && d.events == events && monitor.nowNs() < until) {
                monitor.awaitQuietly(until);
            }
        } finally {
            monitor.unlock();
        }
    }

    private void pause(long ns) {
        try {
            monitor.clock().sleep(ns);
        } catch (InterruptedException e) {
            throw new Monitor.Stopped();
        }
    }

    /** One consistent reading of a resource, or null if etcd does not answer. */
    private Grant.Seen look(long res) {
        try {
            Outcome o = store.commit(new Txn(List.of(), List.of(Op.get(keys.owner(res)), Op.prefix(keys.locksOf(res), 0), Op.prefix(keys.wantsOf(res), 0)), List.of()), REQUEST_NS);
            return o instanceof Outcome.Committed(TxnResult r) ? seen(r, 0) : null;
        } catch (StoreRejectedException e) {
            LOG.log(System.Logger.Level.WARNING, "etcd refuses to read token {0}: {1}", res, e.getMessage());
            return null;
        }
    }

    private Grant.Seen seen(TxnResult r, int at) {
        try {
            KeyValue owner = r.ranged(at).only();
            List<Grant.LockSeen> locks = new ArrayList<>();
            for (KeyValue kv : r.ranged(at + 1).keyValues()) {
                Keys.LockKey k = keys.parseLock(kv.key());
                locks.add(new Grant.LockSeen(k.node(), k.exclusive(), kv.leaseId(), kv.modRevision()));
            }
            List<Grant.WantSeen> wants = new ArrayList<>();
            for (KeyValue kv : r.ranged(at + 2).keyValues()) {
                wants.add(new Grant.WantSeen(keys.parseWant(kv.key()).node(), mode(Want.parseFrom(kv.value())), kv.createRevision()));
            }
            return new Grant.Seen(r.revision(), owner == null ? null : Owner.parseFrom(owner.value()), owner == null ? 0 : owner.modRevision(), locks, wants);
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged token record: " + e.getMessage());
        }
    }

    private static Mode mode(Want want) {
        return want.getKind() == Want.Kind.EXCLUSIVE ? Mode.EXCLUSIVE : Mode.SHARED;
    }

    /** Suspects are cleared by a newer session of their node: which sessions there are now. */
    private Map<String, Long> newestSessions(Owner owner) {
        Map<String, Long> newest = new HashMap<>();
        if (owner != null) {
            for (SessionRef s : owner.getSuspectsList()) {
                try {
                    KeyValue kv = store.range(keys.session(s.getNode()), null, 0, false, 0, REQUEST_NS).only();
                    if (kv != null) {
                        newest.put(s.getNode(), kv.createRevision());
                    }
                } catch (StoreUnavailableException | StoreRejectedException e) {
                    LOG.log(System.Logger.Level.DEBUG, "session of {0} not read: {1}", s.getNode(), e.getMessage());
                }
            }
        }
        return newest;
    }

    private void putWant(long res, Mode mode, Guard guard, long sessionRevision, long lease, long generation) {
        Want want = Want.newBuilder().setKind(mode == Mode.EXCLUSIVE ? Want.Kind.EXCLUSIVE : Want.Kind.SHARED).setSession(sessionRevision).setLease(lease).setGeneration(generation).build();
        try {
            store.commit(new Txn(guard.compares(), List.of(Op.put(keys.want(res, node), want.toByteArray(), lease)), List.of()), REQUEST_NS);
        } catch (StoreRejectedException e) {
            LOG.log(System.Logger.Level.DEBUG, "want of {0} refused: {1}", res, e.getMessage());
        }
    }

    private void withdrawWant(long res) {
        try {
            store.commit(new Txn(List.of(), List.of(Op.delete(keys.want(res, node))), List.of()), REQUEST_NS);
        } catch (StoreRejectedException e) {
            LOG.log(System.Logger.Level.DEBUG, "want of {0} not withdrawn: {1}", res, e.getMessage());
        }
    }

    private record Asked(boolean got, Grant.Seen seen) {}

    private List<Op> contentReads(long res, boolean everything) {
        List<Op> ops = new ArrayList<>();
        ops.add(new Op.Range(keys.opensOf(res), keys.opensOf(res).prefixEnd(), 0, true));
        ops.add(Op.prefix(keys.wantsOf(res), 0));
        if (everything) {
            ops.add(Op.prefix(keys.direntsOf(res), PAGE));
            ops.add(Op.prefix(keys.inodesOf(res), PAGE));
            ops.add(Op.prefix(keys.remaindersOf(res), 0));
        }
        return ops;
    }

    private Asked ask(Domain d, Mode mode, Owner owner, Grant.Seen seen, Guard guard, long sessionRevision, long lease, Mode held) {
        long res = d.id;
        List<Compare> compares = new ArrayList<>(guard.compares());
        compares.add(Compare.modRevision(keys.owner(res), seen.ownerRevision()));
        compares.addAll(mode == Mode.EXCLUSIVE ? Handover.nobodyElse(keys, res, node) : Handover.nobodyElseExclusive(keys, res, node));
        List<Op> success = new ArrayList<>();
        if (mode == Mode.EXCLUSIVE) {
            success.add(Op.put(keys.lockExclusive(res, node), Handover.lock(sessionRevision), lease));
            success.add(Op.put(keys.owner(res), owner.toByteArray()));
            success.add(Op.delete(keys.lockShared(res, node)));
        } else {
            success.add(Op.put(keys.lockShared(res, node), Handover.lock(sessionRevision), lease));
        }
        success.add(Op.delete(keys.want(res, node)));
        int reads = success.size();
        boolean everything = held == Mode.NONE;
        success.addAll(contentReads(res, everything));
        List<Op> failure = new ArrayList<>(guard.reads());
        failure.addAll(List.of(Op.get(keys.owner(res)), Op.prefix(keys.locksOf(res), 0), Op.prefix(keys.wantsOf(res), 0)));
        try {
            switch (store.commit(new Txn(compares, success, failure), REQUEST_NS)) {
                case Outcome.Committed(TxnResult r) -> {
                    Contents contents = everything ? contents(res, r, reads) : null;
                    boolean ok = install(d, mode, sessionRevision, r.revision(), mode == Mode.EXCLUSIVE ? r.revision() : seen.ownerRevision(),
                            mode == Mode.EXCLUSIVE ? owner : seen.owner(), r, reads, contents);
                    return new Asked(ok, null);
                }
                case Outcome.Conflict(TxnResult r) -> {
                    if (!session.guardHeld(r, 0, sessionRevision, monitor.with(session::generationRevision))) {
                        // The session is gone and nobody here knows yet.
                        pause(50_000_000L);
                        return new Asked(false, null);
                    }
                    return new Asked(false, seen(r, 2));
                }
                case Outcome.Unknown(String cause) -> {
                    return new Asked(false, null);
                }
            }
        } catch (StoreRejectedException e) {
            LOG.log(System.Logger.Level.DEBUG, "token {0} refused: {1}", res, e.getMessage());
            pause(100_000_000L);
        }
        return new Asked(false, null);
    }

    /**
     * The key is there; read what it covers. It is put again, so that a delete of it as an unknown one, which may still be on its way, finds another
     * revision: from then on it can't go but with a batch or with the session.
     */
    private boolean adopt(Domain d, Mode mode, Guard guard, long sessionRevision, long lease, long lockRevision) {
        long res = d.id;
        boolean everything = monitor.with(() -> d.held == Mode.NONE);
        List<Op> reads = new ArrayList<>(contentReads(res, everything));
        int at = reads.size();
        reads.add(Op.get(keys.owner(res)));
        reads.add(Op.prefix(keys.locksOf(res), 0));
        reads.add(Op.prefix(keys.wantsOf(res), 0));
        Key key = mode == Mode.EXCLUSIVE ? keys.lockExclusive(res, node) : keys.lockShared(res, node);
        List<Compare> compares = new ArrayList<>(guard.compares());
        compares.add(Compare.modRevision(key, lockRevision));
        reads.add(Op.put(key, Handover.lock(sessionRevision), lease));
        try {
            if (!(store.commit(new Txn(compares, reads, List.of()), REQUEST_NS) instanceof Outcome.Committed(TxnResult r))) {
                return false;
            }
            Grant.Seen now = seen(r, at);
            Grant.LockSeen own = now.own(node, mode == Mode.EXCLUSIVE);
            if (own == null || mode == Mode.EXCLUSIVE && (now.owner() == null || !now.owner().getNode().equals(node) || now.owner().getSession() != sessionRevision)) {
                return false;
            }
            Contents contents = everything ? contents(res, r, 0) : null;
            return install(d, mode, sessionRevision, r.revision(), now.ownerRevision(), now.owner(), r, 0, contents);
        } catch (StoreRejectedException e) {
            LOG.log(System.Logger.Level.WARNING, "etcd refuses to read domain {0}: {1}", res, e.getMessage());
            return false;
        }
    }

    private record Contents(List<Dirent> entries, List<Inode> inodes, Map<Long, Long> remainders) {}

    /** Decodes what the transaction read, and reads on where the answer was cut. The token is ours: nothing changes meanwhile. */
    private Contents contents(long res, TxnResult r, int at) {
        List<Dirent> entries = new ArrayList<>();
        List<Inode> inodes = new ArrayList<>();
        Map<Long, Long> remainders = new HashMap<>();
        try {
            for (KeyValue kv : readOn(r.ranged(at + 2), keys.direntsOf(res), r.revision())) {
                Keys.DirentKey k = keys.parseDirent(kv.key());
                io.etcfs.core.record.proto.Dirent v = io.etcfs.core.record.proto.Dirent.parseFrom(kv.value());
                entries.add(new Dirent(k.name(), k.hash(), v.getInode(), v.getType(), v.getHome(), 0));
            }
            for (KeyValue kv : readOn(r.ranged(at + 3), keys.inodesOf(res), r.revision())) {
                Keys.InodeKey k = keys.parseInode(kv.key());
                inodes.add(Inode.decode(k.ino(), k.home(), kv.value()));
            }
            for (KeyValue kv : r.ranged(at + 4).keyValues()) {
                remainders.put(keys.parseRemainder(kv.key()).ino(), Remainder.parseFrom(kv.value()).getDeadFrom());
            }
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record in domain " + res + ": " + e.getMessage());
        }
        return new Contents(entries, inodes, remainders);
    }

    private List<KeyValue> readOn(OpResult.Ranged first, Key prefix, long revision) {
        if (!first.more()) {
            return first.keyValues();
        }
        List<KeyValue> all = new ArrayList<>(first.keyValues());
        boolean more = true;
        while (more) {
            try {
                RangeResult page = store.range(all.getLast().key().next(), prefix.prefixEnd(), PAGE, false, revision, REQUEST_NS);
                all.addAll(page.keyValues());
                more = page.more();
            } catch (StoreUnavailableException e) {
                pause(50_000_000L);
            } catch (StoreRejectedException e) {
                // The revision was compacted: under the token the newest is the same.
                revision = 0;
            }
        }
        return all;
    }

    private boolean install(Domain d, Mode mode, long sessionRevision, long lockRevision, long ownerRevision, Owner owner, TxnResult r, int reads, Contents contents) {
        monitor.lock();
        try {
            if (!session.live() || session.revision() != sessionRevision || stopping || d.giving || contents == null && d.held == Mode.NONE) {
                return false;
            }
            d.held = mode;
            d.lockRevision = lockRevision;
            d.ownerRevision = ownerRevision;
            d.epoch = owner == null ? 0 : owner.getEpoch();
            d.suspects = owner == null ? List.of() : List.copyOf(owner.getSuspectsList());
            d.heldSinceNs = monitor.nowNs();
            d.lastUsedNs = d.heldSinceNs;
            d.unserved = monitor.nowNs() <= d.demandUntilNs;
            acquires++;
            d.othersOpen.clear();
            for (KeyValue kv : r.ranged(reads).keyValues()) {
                Keys.OpenKey k = keys.parseOpen(kv.key());
                if (!k.node().equals(node)) {
                    d.othersOpen.computeIfAbsent(k.ino(), i -> new HashSet<>()).add(k.node());
                }
            }
            if (contents != null) {
                d.clearContents();
                contents.entries.forEach(e -> d.entries.put(e.hash(), e));
                contents.inodes.forEach(i -> d.inodes.put(i.ino, i));
                d.remainders.putAll(contents.remainders);
                for (KeyValue kv : r.ranged(reads).keyValues()) {
                    Keys.OpenKey k = keys.parseOpen(kv.key());
                    if (!k.node().equals(node)) {
                        d.othersOpen.computeIfAbsent(k.ino(), i -> new HashSet<>()).add(k.node());
                    }
                }
            }
            d.loaded = true;
            for (KeyValue kv : r.ranged(reads + 1).keyValues()) {
                noteWant(d, kv);
            }
            host.loaded(d);
            monitor.changed();
            return true;
        } finally {
            monitor.unlock();
        }
    }

    // ---- watching

    private void locksChanged(List<WatchEvent> events) {
        monitor.lock();
        try {
            for (WatchEvent e : events) {
                Keys.LockKey k = keys.parseLock(e.keyValue().key());
                Domain d = domains.get(k.res());
                if (d == null) {
                    continue;
                }
                if (k.node().equals(node)) {
                    boolean unknown = e.kind() == WatchEvent.Kind.PUT && e.keyValue().leaseId() == session.leaseId() && e.keyValue().modRevision() > d.givenRevision
                            && !d.held.atLeast(k.exclusive() ? Mode.EXCLUSIVE : Mode.SHARED) && !d.recalling && !d.giving;
                    if (unknown) {
                        // Handed to us: taken up also if nobody waits any more, so that it is known and can be given on.
                        d.events++;
                        demand(d, k.exclusive() ? Mode.EXCLUSIVE : Mode.SHARED);
                    }
                } else if (d.acquiring) {
                    d.events++;
                }
            }
            monitor.changed();
        } finally {
            monitor.unlock();
        }
    }

    private void wakeWaiters() {
        monitor.lock();
        try {
            domains.values().forEach(d -> d.events++);
            monitor.changed();
        } finally {
            monitor.unlock();
        }
    }

    /** After the watch may have missed something: keys of ours that we do not know of are taken up, so that they can be given on. */
    private void listOwnLocks() {
        try {
            RangeResult all = store.range(keys.locks(), keys.locks().prefixEnd(), 0, true, 0, REQUEST_NS);
            monitor.lock();
            try {
                for (KeyValue kv : all.keyValues()) {
                    Keys.LockKey k = keys.parseLock(kv.key());
                    if (k.node().equals(node) && kv.leaseId() == session.leaseId()) {
                        Domain d = domain(k.res());
                        if (kv.modRevision() > d.givenRevision && !d.recalling && !d.giving) {
                            demand(d, k.exclusive() ? Mode.EXCLUSIVE : Mode.SHARED);
                        }
                    }
                }
            } finally {
                monitor.unlock();
            }
        } catch (StoreUnavailableException | StoreRejectedException e) {
            LOG.log(System.Logger.Level.DEBUG, "locks not listed: {0}", e.getMessage());
        }
    }

    private void wantsChanged(List<WatchEvent> events) {
        monitor.lock();
        try {
            for (WatchEvent e : events) {
                Keys.WantKey k = keys.parseWant(e.keyValue().key());
                if (k.node().equals(node)) {
                    continue;
                }
                Domain d = domains.get(k.res());
                if (e.kind() == WatchEvent.Kind.DELETE) {
                    if (d != null) {
                        d.wants.remove(k.node());
                    }
                    continue;
                }
                if (d == null || d.held == Mode.NONE && !d.acquiring && !d.giving) {
                    if (e.keyValue().version() >= 3) {
                        // Renewed twice and still waiting: it may be a key of ours that we know nothing of.
                        tasks.start("unknown-" + k.res(), () -> giveUnknownBack(k.res()));
                    }
                    continue;
                }
                noteWant(d, e.keyValue());
                considerRecall(d);
            }
        } finally {
            monitor.unlock();
        }
    }

    private void listWants() {
        try {
            RangeResult all = store.range(keys.wants(), keys.wants().prefixEnd(), 0, false, 0, REQUEST_NS);
            monitor.lock();
            try {
                for (KeyValue kv : all.keyValues()) {
                    Domain d = domains.get(keys.parseWant(kv.key()).res());
                    if (d != null) {
                        noteWant(d, kv);
                        considerRecall(d);
                    }
                }
            } finally {
                monitor.unlock();
            }
        } catch (StoreUnavailableException | StoreRejectedException e) {
            LOG.log(System.Logger.Level.DEBUG, "wants not listed: {0}", e.getMessage());
        }
    }

    private void noteWant(Domain d, KeyValue kv) {
        Keys.WantKey k = keys.parseWant(kv.key());
        if (k.node().equals(node)) {
            return;
        }
        try {
            Want w = Want.parseFrom(kv.value());
            Domain.WantOf known = d.wants.get(k.node());
            if (known == null || known.revision() <= kv.createRevision()) {
                d.wants.put(k.node(), new Domain.WantOf(k.node(), mode(w), w.getSession(), w.getLease(), w.getGeneration(), kv.createRevision()));
            }
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record " + kv.key());
        }
    }

    /** A key of ours that this node does not know of: a request that committed after nobody waited for its answer any more. */
    private void giveUnknownBack(long res) {
        Grant.Seen seen = look(res);
        if (seen == null) {
            return;
        }
        for (boolean exclusive : new boolean[] {true, false}) {
            Grant.LockSeen own = seen.own(node, exclusive);
            if (own == null) {
                continue;
            }
            boolean stillUnknown = monitor.with(() -> {
                Domain d = domains.get(res);
                return own.leaseId() == session.leaseId() && (d == null || d.held == Mode.NONE && !d.acquiring && !d.giving && !d.recalling);
            });
            if (!stillUnknown) {
                return;
            }
            Key key = exclusive ? keys.lockExclusive(res, node) : keys.lockShared(res, node);
            List<Op> ops = new ArrayList<>();
            ops.add(Op.delete(key));
            List<Compare> compares = new ArrayList<>();
            compares.add(Compare.modRevision(key, own.modRevision()));
            if (exclusive && seen.owner() != null) {
                compares.add(Compare.modRevision(keys.owner(res), seen.ownerRevision()));
                ops.add(Op.put(keys.owner(res), seen.owner().toBuilder().setGivenUp(true).build().toByteArray()));
            }
            try {
                store.commit(new Txn(compares, ops, List.of()), REQUEST_NS);
            } catch (StoreRejectedException e) {
                LOG.log(System.Logger.Level.DEBUG, "unknown key of {0} not given back: {1}", res, e.getMessage());
            }
        }
    }

    // ---- giving

    private static boolean conflicts(Mode held, Mode wanted) {
        return held == Mode.EXCLUSIVE || held == Mode.SHARED && wanted == Mode.EXCLUSIVE;
    }

    private List<Domain.WantOf> conflicting(Domain d) {
        List<Domain.WantOf> list = new ArrayList<>();
        for (Domain.WantOf w : d.wants.values()) {
            if (conflicts(d.held, w.mode())) {
                list.add(w);
            }
        }
        list.sort(Comparator.comparingLong(Domain.WantOf::revision));
        return list;
    }

    private void considerRecall(Domain d) {
        if (d.held == Mode.NONE || !d.loaded || d.recalling || d.giving || d.takeBack || stopping || conflicting(d).isEmpty()) {
            return;
        }
        startRecall(d, false);
    }

    private void startRecall(Domain d, boolean release) {
        d.recalling = true;
        d.lastRecalledNs = monitor.nowNs();
        recalls++;
        tasks.start("recall-" + d.id, () -> recall(d, release));
    }

    private void recall(Domain d, boolean release) {
        boolean downgrade = false;
        monitor.lock();
        try {
            // Local operations get their turn first; an upgrade that is on its way is let through or refused before anything is dropped.
            long early = monitor.nowNs() - d.heldSinceNs;
            d.holdNs = early < 2 * d.holdNs ? Math.min(MAX_HOLD_NS, d.holdNs * 2) : Math.max(MIN_HOLD_NS, d.holdNs / 2);
            long held = d.heldSinceNs + d.holdNs;
            long settled = d.validUntilNs > monitor.nowNs() ? d.lastGrantNs + SETTLE_NS : 0;
            long sessionRevision = session.revision();
            while (!stopping) {
                long now = monitor.nowNs();
                long idle = d.unserved ? Long.MAX_VALUE : d.lastUsedNs + IDLE_NS;
                long until = release ? 0 : Math.max(settled, Math.min(held, idle));
                boolean inFlight = d.asking || d.pins > 0 || d.repliesInFlight > 0 && !Fault.REPLY_NOT_AWAITED.on();
                if (now >= until && !inFlight) {
                    break;
                }
                monitor.awaitQuietly(Math.max(until, now + 1_000_000L));
            }
            List<Domain.WantOf> wants = conflicting(d);
            if (stopping || d.held == Mode.NONE || session.revision() != sessionRevision || !release && wants.isEmpty()) {
                endRecall(d);
                return;
            }
            downgrade = !release && d.held == Mode.EXCLUSIVE && wants.getFirst().mode() == Mode.SHARED;
            d.namesClosed = true;
            if (!Fault.HANDOVER_BEFORE_PUBLISH.on()) {
                pipeline.push(pipeline.lastNumber());
            }
        } finally {
            monitor.unlock();
        }
        host.dropCached(d, downgrade);
        if (Fault.HANDOVER_BEFORE_PUBLISH.on()) {
            giveEarly(d, downgrade);
            return;
        }
        Handover handover;
        monitor.lock();
        try {
            d.dataClosed = true;
            while (!stopping && host.busy(d)) {
                monitor.awaitQuietly(monitor.nowNs() + 100_000_000L);
            }
            List<Domain.WantOf> to = new ArrayList<>();
            if (!release) {
                for (Domain.WantOf w : conflicting(d)) {
                    if (downgrade ? w.mode() == Mode.SHARED && to.size() < MAX_SHARED_AT_ONCE : to.isEmpty() && w.mode() == Mode.EXCLUSIVE) {
                        to.add(w);
                    }
                }
            }
            // Nothing is opened any more, so that the keys may go ahead in batches of their own if they are too many for one.
            boolean held = true;
            for (Runnable pin : host.pinsOfOpenFiles(d)) {
                held = held && awaitRoom(d, 8);
                if (held) {
                    pin.run();
                    pipeline.touch(d);
                }
            }
            if (!held || !awaitRoom(d, 10 + 3 * to.size())) {
                endRecall(d);
                return;
            }
            boolean forget = release && d.directory() == null && d.inodes.isEmpty() && d.held == Mode.EXCLUSIVE && d.id != RENAME_TOKEN && d.suspects.isEmpty();
            handover = new Handover(monitor, session, keys, node, d, downgrade, forget, to);
            d.giving = true;
            pipeline.touch(d);
            pipeline.ride(handover);
            pipeline.push(pipeline.openNumber());
            while (!stopping && !handover.settled()) {
                monitor.awaitQuietly(monitor.nowNs() + 1_000_000_000L);
            }
            endRecall(d);
        } finally {
            monitor.unlock();
        }
    }

    /** {@link Fault#HANDOVER_BEFORE_PUBLISH}. */
    private void giveEarly(Domain d, boolean downgrade) {
        Mode mode = downgrade ? Mode.SHARED : Mode.EXCLUSIVE;
        Handover handover = monitor.with(() -> new Handover(monitor, session, keys, node, d, downgrade, false,
                conflicting(d).stream().filter(w -> w.mode() == mode).limit(downgrade ? Long.MAX_VALUE : 1).toList()));
        try {
            Outcome given = store.commit(new Txn(List.of(), monitor.with(handover::build), List.of()), REQUEST_NS);
            pause(20_000_000L);
            monitor.lock();
            try {
                long last = pipeline.lastNumber();
                pipeline.push(last);
                while (!stopping && !pipeline.published(last)) {
                    monitor.awaitQuietly(monitor.nowNs() + 100_000_000L);
                }
                if (given instanceof Outcome.Committed(TxnResult r)) {
                    handover.committed(r.revision(), List.of());
                }
                endRecall(d);
            } finally {
                monitor.unlock();
            }
        } catch (StoreRejectedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Room in the open batch while the token is held. False: it is not any more, or may not be. */
    private boolean awaitRoom(Domain d, int operations) {
        while (!stopping && session.live() && d.held != Mode.NONE && !d.takeBack) {
            if (pipeline.room(operations)) {
                return true;
            }
            monitor.awaitQuietly(monitor.nowNs() + 100_000_000L);
        }
        return false;
    }

    private void endRecall(Domain d) {
        d.recalling = false;
        d.namesClosed = false;
        d.dataClosed = false;
        d.lastRecalledNs = monitor.nowNs();
        if (monitor.nowNs() > d.demandUntilNs) {
            d.demand = Mode.NONE;
        }
        startAcquire(d);
        considerRecall(d);
        if (d.held == Mode.NONE && !d.acquiring && d.id != RENAME_TOKEN && d.wants.isEmpty() && domains.size() > MAX_TOKENS) {
            domains.remove(d.id);
        }
        monitor.changed();
    }

    /** Gives up a token that nobody asked for: an idle one, or that of a removed directory. Monitor held. */
    public void release(Domain d) {
        if (d.held != Mode.NONE && d.loaded && !d.recalling && !d.giving && !d.takeBack && !d.birthUnpublished && d.pins == 0) {
            startRecall(d, true);
        }
    }

    /** Gives idle tokens back, longest unused first, while there are too many or too much is cached under them. Monitor held. */
    public void trim() {
        List<Domain> held = new ArrayList<>();
        long cached = 0;
        for (Domain d : domains.values()) {
            if (d.held != Mode.NONE && d.loaded) {
                held.add(d);
                cached += d.entries.size() + d.inodes.size();
            }
        }
        if (held.size() <= MAX_TOKENS && cached <= MAX_CACHED) {
            return;
        }
        held.sort(Comparator.comparingLong(d -> d.lastUsedNs));
        int left = held.size();
        long now = monitor.nowNs();
        int released = 0;
        for (Domain d : held) {
            if (released == TRIM_AT_ONCE || left <= MAX_TOKENS * 3 / 4 && cached <= MAX_CACHED * 3 / 4 || now - d.lastUsedNs < TRIM_IDLE_NS) {
                break;
            }
            left--;
            cached -= d.entries.size() + d.inodes.size();
            released++;
            release(d);
        }
    }

    /** Gives up all tokens; returns when none is left or the time is over. */
    public boolean releaseAll(long untilNs) {
        monitor.lock();
        try {
            leaving = true;
            while (monitor.nowNs() < untilNs && !stopping) {
                boolean any = false;
                for (Domain d : List.copyOf(domains.values())) {
                    if (d.held != Mode.NONE) {
                        any = true;
                        release(d);
                    }
                }
                if (!any) {
                    return true;
                }
                monitor.awaitQuietly(monitor.nowNs() + 100_000_000L);
            }
            return false;
        } finally {
            monitor.unlock();
        }
    }

    // ---- losing and taking back

    /** The session is gone. What unpublished changes depend on is kept, to be taken back; all else is forgotten. Monitor held. */
    public void sessionLost() {
        Set<Domain> unpublished = pipeline.unpublishedDomains();
        for (Domain d : domains.values()) {
            if (d.held == Mode.NONE) {
                continue;
            }
            if (d.held == Mode.EXCLUSIVE && unpublished.contains(d)) {
                d.takeBack = true;
            } else {
                d.held = Mode.NONE;
                host.lost(d);
                d.clearContents();
            }
        }
        monitor.changed();
    }

    /** Takes the journal's tokens back under the new session, each only if nobody was its holder meanwhile. All or the node stops. Without the monitor. */
    public void takeBack() {
        List<Domain> back = new ArrayList<>();
        Guard guard;
        long sessionRevision;
        long lease;
        monitor.lock();
        try {
            guard = session.guard();
            sessionRevision = session.revision();
            lease = session.leaseId();
            Set<Domain> unpublished = pipeline.unpublishedDomains();
            for (Domain d : domains.values()) {
                if (!d.takeBack) {
                    continue;
                }
                if (d.birthUnpublished) {
                    d.takeBack = false;
                } else if (unpublished.contains(d)) {
                    back.add(d);
                } else {
                    d.takeBack = false;
                    d.held = Mode.NONE;
                    host.lost(d);
                    d.clearContents();
                }
            }
        } finally {
            monitor.unlock();
        }
        for (int i = 0; i < back.size(); i += 20) {
            takeBack(back.subList(i, Math.min(back.size(), i + 20)), guard, sessionRevision, lease);
        }
    }

    private void takeBack(List<Domain> some, Guard guard, long sessionRevision, long lease) {
        List<Domain> missing = new ArrayList<>(some);
        while (!missing.isEmpty()) {
            List<Compare> compares = new ArrayList<>(guard.compares());
            List<Op> success = new ArrayList<>();
            List<Op> failure = new ArrayList<>(guard.reads());
            for (Domain d : missing) {
                if (d.ownerRevision == OWNER_REVISION_UNKNOWN && !readOwnOwner(d)) {
                    continue;
                }
                compares.add(Compare.modRevision(keys.owner(d.id), d.ownerRevision));
                compares.addAll(Handover.nobodyElse(keys, d.id, node));
                Owner owner = Owner.newBuilder().setNode(node).setSession(sessionRevision).setGeneration(session.generation()).setEpoch(d.epoch).addAllSuspects(d.suspects).build();
                success.add(Op.put(keys.lockExclusive(d.id, node), Handover.lock(sessionRevision), lease));
                success.add(Op.put(keys.owner(d.id), owner.toByteArray()));
                failure.add(Op.get(keys.owner(d.id)));
            }
            try {
                switch (store.commit(new Txn(compares, success, failure), REQUEST_NS)) {
                    case Outcome.Committed(TxnResult r) -> {
                        restored(missing, r.revision());
                        return;
                    }
                    case Outcome.Conflict(TxnResult r) -> {
                        if (!monitor.with(() -> session.guardHeld(r, 0, sessionRevision, session.generationRevision()))) {
                            throw new NodeStoppedError("the session was lost again while unpublished changes waited for their tokens");
                        }
                        List<Domain> still = new ArrayList<>();
                        for (int i = 0; i < missing.size(); i++) {
                            KeyValue kv = r.ranged(2 + i).only();
                            if (ours(kv, sessionRevision)) {
                                restored(List.of(missing.get(i)), kv.modRevision());
                            } else if (kv == null || kv.modRevision() != missing.get(i).ownerRevision) {
                                throw new NodeStoppedError("directory " + missing.get(i).id + " was taken by another node while this one was cut off: changes made here since are lost");
                            } else {
                                still.add(missing.get(i));
                            }
                        }
                        missing = still;
                        pause(100_000_000L);
                    }
                    case Outcome.Unknown(String cause) -> pause(100_000_000L);
                }
            } catch (StoreRejectedException e) {
                LOG.log(System.Logger.Level.WARNING, "taking tokens back is refused: {0}", e.getMessage());
                pause(500_000_000L);
            }
        }
    }

    private boolean ours(KeyValue kv, long sessionRevision) {
        try {
            Owner o = kv == null ? null : Owner.parseFrom(kv.value());
            return o != null && o.getNode().equals(node) && o.getSession() == sessionRevision && !o.getGivenUp();
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record " + kv.key());
        }
    }

    private boolean readOwnOwner(Domain d) {
        while (true) {
            try {
                KeyValue kv = store.range(keys.owner(d.id), null, 0, false, 0, REQUEST_NS).only();
                Owner o = kv == null ? null : Owner.parseFrom(kv.value());
                if (o == null || !o.getNode().equals(node) || o.getGivenUp()) {
                    throw new NodeStoppedError("directory " + d.id + " was taken by another node while this one was cut off: changes made here since are lost");
                }
                d.ownerRevision = kv.modRevision();
                return true;
            } catch (StoreUnavailableException | StoreRejectedException e) {
                pause(100_000_000L);
            } catch (InvalidProtocolBufferException e) {
                throw new NodeStoppedError("damaged record " + keys.owner(d.id));
            }
        }
    }

    private void restored(List<Domain> some, long revision) {
        monitor.lock();
        try {
            for (Domain d : some) {
                d.takeBack = false;
                d.lockRevision = revision;
                d.ownerRevision = revision;
                d.heldSinceNs = monitor.nowNs();
                considerRecall(d);
            }
            monitor.changed();
        } finally {
            monitor.unlock();
        }
    }
}
