package io.etcfs.core.token;

import io.etcfs.core.clock.Monitor;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.pipeline.Pipeline;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Owner;
import io.etcfs.core.record.proto.Want;
import io.etcfs.core.session.Guard;
import io.etcfs.core.session.Session;
import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.OpResult;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.TxnResult;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;

/**
 * Getting tokens: a task for each resource asks for what is in demand, as long as somebody still wants it. Where others are in the way it puts a want, and looks
 * again after every event and every {@link #RETRY_NS}.
 */
final class Acquirer {
    static final long RETRY_NS = 250_000_000L;
    static final long WANT_RENEW_NS = 1_000_000_000L;
    static final long GRACE_NS = 4_000_000_000L;
    private static final System.Logger LOG = System.getLogger(Tokens.class.getName());

    private final Tokens tokens;
    private final Monitor monitor;
    private final Convoy looks;
    private final Convoy asks;
    private final Session session;
    private final Pipeline pipeline;
    private final Keys keys;
    private final String node;
    private final TokenRecords records;
    private final Recaller recaller;
    private long acquires;
    /** By node: up to this session, all that vanished holders had written when they vanished is durable; and all that they ever wrote. */
    private final Map<String, Long> flushed = new HashMap<>();
    private final Map<String, Long> flushedInTheEnd = new HashMap<>();

    Acquirer(Tokens tokens, Parts parts, TokenRecords records, Recaller recaller) {
        this.tokens = tokens;
        this.monitor = parts.monitor();
        this.looks = parts.looks();
        this.asks = parts.asks();
        this.session = parts.session();
        this.pipeline = parts.pipeline();
        this.keys = parts.keys();
        this.node = parts.node();
        this.records = records;
        this.recaller = recaller;
    }

    /** How often a token was got. Monitor held. */
    long acquires() {
        return acquires;
    }

    void acquire(Domain d) {
        Grant.Seen seen = null;
        long wantPutNs = 0;
        Mode wantPut = Mode.NONE;
        boolean wantUnsettled = false;
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
                Grant.Adopt handed;
                boolean wantFirst;
                monitor.lock();
                try {
                    if (tokens.stopping() || tokens.leaving() || monitor.nowNs() > d.demandUntilNs || d.held.atLeast(d.demand) && d.loaded) {
                        break;
                    }
                    if (d.namesClosed || d.giving) {
                        // What is held is on its way out. Others see the want meanwhile.
                        monitor.awaitQuietly(monitor.nowNs() + RETRY_NS);
                        seen = null;
                        continue;
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
                    handed = handed(d);
                    wantFirst = d.likelyElsewhere && wantPut == Mode.NONE && handed == null && seen == null;
                    d.likelyElsewhere &= !wantFirst;
                } finally {
                    monitor.unlock();
                }
                if (wantFirst) {
                    Wanted w = wantWhereHeld(d.id, wanted, guard, sessionRevision, lease, generation);
                    wantUnsettled |= w.unsettled;
                    seen = w.seen;
                    if (seen != null && seen.wants(node)) {
                        wantPut = wanted;
                        wantPutNs = monitor.nowNs();
                    }
                } else if (seen == null && handed == null) {
                    seen = records.look(d.id);
                }
                if (seen == null && handed == null) {
                    monitor.pause(50_000_000L);
                    continue;
                }
                Grant.Decision decision = handed != null ? handed : Grant.decide(seen, wanted, held, node, sessionRevision, lease, generation, inGrace, records.endedBefore(seen));
                if (takesFromVanished(decision, wanted) && noLongerIfAhead(d)) {
                    break;
                }
                Grant.Seen before = seen;
                seen = null;
                if (decision instanceof Grant.Ask ask && !ask.left().isEmpty() && !durable(ask.left())) {
                    monitor.pause(RETRY_NS);
                    continue;
                }
                if ((decision instanceof Grant.Adopt || decision instanceof Grant.Ask) && !mayAsk(d, held)) {
                    continue;
                }
                switch (decision) {
                    case Grant.Adopt(Mode mode, long lockRevision) -> {
                        Asked asked = adopt(d, mode, guard, sessionRevision, lease, lockRevision);
                        done = asked.got;
                        if (done && !asked.seen.wants(node)) {
                            // It went with the handover.
                            wantPut = Mode.NONE;
                        } else if (!done && handed == null) {
                            monitor.pause(Recaller.MIN_HOLD_NS);
                        }
                    }
                    case Grant.Grace() -> monitor.pause(RETRY_NS);
                    case Grant.Wait(Mode mode) -> {
                        long now = monitor.nowNs();
                        if (wantPut != mode || now - wantPutNs >= WANT_RENEW_NS) {
                            wantUnsettled |= !putWant(d.id, mode, guard, sessionRevision, lease, generation);
                            wantPut = mode;
                            wantPutNs = now;
                        }
                        awaitEvents(d, events, RETRY_NS);
                    }
                    case Grant.Ask(Mode mode, Owner owner, List<Grant.Left> left) -> {
                        if (!polite(before, mode)) {
                            awaitEvents(d, events, Recaller.MIN_HOLD_NS);
                            // Only once: wants of waiters that stopped waiting must not hold others up.
                        }
                        Asked asked = ask(d, mode, owner, before, guard, sessionRevision, lease, held);
                        done = asked.got;
                        seen = asked.seen;
                        wantPut = done ? Mode.NONE : wantPut;
                    }
                }
                answered(d);
            }
            if (wantPut != Mode.NONE || wantUnsettled) {
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
                    tokens.startAcquire(d);
                }
                recaller.considerRecall(d);
                monitor.changed();
            } finally {
                monitor.unlock();
            }
        }
    }

    private static boolean takesFromVanished(Grant.Decision decision, Mode wanted) {
        return decision instanceof Grant.Grace || decision instanceof Grant.Ask(Mode mode, Owner owner, List<Grant.Left> left) && mode != wanted;
    }

    /**
     * Sees to it that whatever those wrote is durable: it may be in the device's cache only, and whoever takes the token has written nothing that would make its own
     * fsync flush that. Before anybody else can be shown it. What one that may still be writing writes after this is copied before it is shown; what it wrote until
     * it is known to have ended is flushed again then. False: the device failed.
     */
    private boolean durable(List<Grant.Left> left) {
        if (Fault.TAKEN_BEFORE_FLUSH.on() || monitor.with(() -> left.stream().allMatch(this::isDurable))) {
            return true;
        }
        try {
            pipeline.flushWhatOthersWrote();
        } catch (DeviceException e) {
            LOG.log(System.Logger.Level.ERROR, "device flush failed, nothing is taken from holders that vanished: {0}", e.getMessage());
            return false;
        }
        monitor.with(() -> {
            left.forEach(l -> (l.ended() ? flushedInTheEnd : flushed).merge(l.session().getNode(), l.session().getSession(), Math::max));
            return null;
        });
        return true;
    }

    private boolean isDurable(Grant.Left l) {
        Map<String, Long> upTo = l.ended() ? flushedInTheEnd : flushed;
        return upTo.getOrDefault(l.session().getNode(), 0L) >= l.session().getSession();
    }

    /** True: nobody waits for it, and it is not wanted any more. */
    private boolean noLongerIfAhead(Domain d) {
        return monitor.with(() -> {
            if (d.demandAhead) {
                d.demand = Mode.NONE;
            }
            return d.demandAhead;
        });
    }

    /** What the watch saw handed to us, if it is what is wanted: tried once, without looking first. Monitor held. */
    private static Grant.Adopt handed(Domain d) {
        long revision = d.handedRevision;
        d.handedRevision = 0;
        boolean missing = d.handed == Mode.EXCLUSIVE ? d.held != Mode.EXCLUSIVE : d.held == Mode.NONE && d.demand == Mode.SHARED;
        return revision > d.givenRevision && missing ? new Grant.Adopt(d.handed, revision) : null;
    }

    /** A recall that keeps operations waiting gives up what is held now: nothing may be added to it meanwhile. */
    private boolean mayAsk(Domain d, Mode held) {
        return monitor.with(() -> {
            // A recall can also have come and gone since: with what it held, it dropped the contents.
            d.asking = !d.namesClosed && !d.giving && d.held == held;
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
            while (!tokens.stopping() && d.events == events && monitor.nowNs() < until) {
                monitor.awaitQuietly(until);
            }
        } finally {
            monitor.unlock();
        }
    }

    /** @param unsettled the want may come later */
    private record Wanted(Grant.Seen seen, boolean unsettled) {}

    /** Looks and, if others are in the way, puts a want, in one transaction. */
    private Wanted wantWhereHeld(long res, Mode mode, Guard guard, long sessionRevision, long lease, long generation) {
        List<Compare> free = mode == Mode.EXCLUSIVE ? Handover.nobodyElse(keys, res, node) : Handover.nobodyElseExclusive(keys, res, node);
        List<Op> ops = new ArrayList<>();
        ops.add(new Op.Nested(new Txn(free, List.of(), List.of(Op.put(keys.want(res, node), want(mode, sessionRevision, lease, generation), lease)))));
        ops.addAll(records.lookReads(res));
        try {
            return switch (asks.commit(new Txn(guard.compares(), ops, List.of()), Tokens.REQUEST_NS)) {
                case Outcome.Committed(TxnResult r) -> new Wanted(records.seen(r, 1), false);
                case Outcome.Conflict(TxnResult r) -> new Wanted(null, false);
                case Outcome.Unknown(String cause, boolean noSpace) -> new Wanted(null, true);
            };
        } catch (StoreRejectedException e) {
            LOG.log(System.Logger.Level.DEBUG, "want of {0} refused: {1}", res, e.getMessage());
            return new Wanted(null, false);
        }
    }

    private static byte[] want(Mode mode, long sessionRevision, long lease, long generation) {
        return Want.newBuilder().setKind(mode == Mode.EXCLUSIVE ? Want.Kind.EXCLUSIVE : Want.Kind.SHARED).setSession(sessionRevision).setLease(lease).setGeneration(generation).build().toByteArray();
    }

    /** False: it may come later. */
    private boolean putWant(long res, Mode mode, Guard guard, long sessionRevision, long lease, long generation) {
        try {
            return !(asks.commit(new Txn(guard.compares(), List.of(Op.put(keys.want(res, node), want(mode, sessionRevision, lease, generation), lease)), List.of()), Tokens.REQUEST_NS) instanceof Outcome.Unknown);
        } catch (StoreRejectedException e) {
            LOG.log(System.Logger.Level.DEBUG, "want of {0} refused: {1}", res, e.getMessage());
            return true;
        }
    }

    private void withdrawWant(long res) {
        try {
            asks.commit(new Txn(List.of(), List.of(Op.delete(keys.want(res, node))), List.of()), Tokens.REQUEST_NS);
        } catch (StoreRejectedException e) {
            LOG.log(System.Logger.Level.DEBUG, "want of {0} not withdrawn: {1}", res, e.getMessage());
        }
    }

    /** @param seen a reading that came with the answer, or null */
    private record Asked(boolean got, Grant.Seen seen) {}

    private Asked ask(Domain d, Mode mode, Owner owner, Grant.Seen seen, Guard guard, long sessionRevision, long lease, Mode held) {
        long res = d.id;
        List<Compare> compares = new ArrayList<>(guard.compares());
        if (!Fault.ACQUIRE_WITHOUT_OWNER.on()) {
            compares.add(Compare.modRevision(keys.owner(res), seen.ownerRevision()));
        }
        // Whoever asks to share has no key of X himself. One that comes late must see that he has got one since: where nothing lives no owner record says so.
        Key exclusive = keys.exclusiveLocksOf(res);
        compares.addAll(mode == Mode.EXCLUSIVE ? Handover.nobodyElse(keys, res, node) : List.of(Compare.noneIn(exclusive, exclusive.prefixEnd())));
        List<Op> success = new ArrayList<>();
        if (mode == Mode.EXCLUSIVE) {
            success.add(Op.put(keys.lockExclusive(res, node), Handover.lock(sessionRevision), lease));
            success.add(owned(res, owner, seen.ownerRevision()));
            success.add(Op.delete(keys.lockShared(res, node)));
        } else {
            success.add(Op.put(keys.lockShared(res, node), Handover.lock(sessionRevision), lease));
        }
        success.add(Op.delete(keys.want(res, node)));
        int reads = success.size();
        boolean everything = held == Mode.NONE;
        success.addAll(records.contentReads(res, everything));
        List<Op> failure = new ArrayList<>(guard.reads());
        failure.addAll(records.lookReads(res));
        try {
            switch (asks.commit(new Txn(compares, success, failure), Tokens.REQUEST_NS)) {
                case Outcome.Committed(TxnResult r) -> {
                    TokenRecords.Contents contents = everything ? records.contents(res, r, reads, needed(d)) : null;
                    Owner now = mode == Mode.SHARED ? seen.owner() : r.results().get(1) instanceof OpResult.Nested(TxnResult n) && n.succeeded() ? null : owner;
                    long ownerRevision = mode == Mode.SHARED ? seen.ownerRevision() : now == null ? 0 : r.revision();
                    boolean ok = install(d, mode, false, sessionRevision, r.revision(), ownerRevision, now, r, reads, contents);
                    return new Asked(ok, null);
                }
                case Outcome.Conflict(TxnResult r) -> {
                    if (!session.guardHeld(r, 0, sessionRevision, monitor.with(session::generationRevision))) {
                        // The session is gone and nobody here knows yet.
                        monitor.pause(50_000_000L);
                        return new Asked(false, null);
                    }
                    return new Asked(false, records.seen(r, 2));
                }
                case Outcome.Unknown(String cause, boolean noSpace) -> {
                    return new Asked(false, null);
                }
            }
        } catch (StoreRejectedException e) {
            LOG.log(System.Logger.Level.DEBUG, "token {0} refused: {1}", res, e.getMessage());
            monitor.pause(100_000_000L);
        }
        return new Asked(false, null);
    }

    /** Puts the owner record, but not of a domain without one in which nothing lives: its directory was removed, and nobody would delete the record. */
    private Op owned(long res, Owner owner, long ownerRevision) {
        Op put = Op.put(keys.owner(res), owner.toByteArray());
        Key inodes = keys.inodesOf(res);
        return ownerRevision != 0 || res == Tokens.RENAME_TOKEN || Fault.OWNERS_LEFT.on() ? put
                : new Op.Nested(new Txn(List.of(Compare.noneIn(inodes, inodes.prefixEnd())), List.of(), List.of(put)));
    }

    /**
     * The key is there; read what it covers, which writes nothing. Where a delete of the key as an unknown one may still be on its way, it is put again and the
     * delete finds another revision: either way it can't go from then on but with a batch or with the session.
     */
    private Asked adopt(Domain d, Mode mode, Guard guard, long sessionRevision, long lease, long lockRevision) {
        long res = d.id;
        boolean everything;
        boolean renew;
        monitor.lock();
        try {
            everything = d.held == Mode.NONE;
            // While this task runs none is sent.
            renew = tokens.mayBeGivenBack(res, lockRevision) && !Fault.ADOPTED_AS_IT_IS.on();
        } finally {
            monitor.unlock();
        }
        List<Op> reads = new ArrayList<>(records.contentReads(res, everything));
        int at = reads.size();
        reads.addAll(records.lookReads(res));
        Key key = mode == Mode.EXCLUSIVE ? keys.lockExclusive(res, node) : keys.lockShared(res, node);
        List<Compare> compares = new ArrayList<>(guard.compares());
        compares.add(Compare.modRevision(key, lockRevision));
        if (renew) {
            reads.add(Op.put(key, Handover.lock(sessionRevision), lease));
        }
        try {
            if (!((renew ? asks : looks).commit(new Txn(compares, reads, List.of()), Tokens.REQUEST_NS) instanceof Outcome.Committed(TxnResult r))) {
                return new Asked(false, null);
            }
            Grant.Seen now = records.seen(r, at);
            Grant.LockSeen own = now.own(node, mode == Mode.EXCLUSIVE);
            if (own == null) {
                return new Asked(false, null);
            }
            TokenRecords.Contents contents = everything ? records.contents(res, r, 0, needed(d)) : null;
            boolean empty = res != Tokens.RENAME_TOKEN && (everything ? contents.inodes().isEmpty() : monitor.with(d::nothingLivesHere));
            boolean owns = now.owner() == null ? empty : now.owner().getNode().equals(node) && now.owner().getSession() == sessionRevision;
            if (mode == Mode.EXCLUSIVE && !owns) {
                return new Asked(false, null);
            }
            return new Asked(install(d, mode, true, sessionRevision, renew ? r.revision() : lockRevision, now.ownerRevision(), now.owner(), r, 0, contents), now);
        } catch (StoreRejectedException e) {
            LOG.log(System.Logger.Level.WARNING, "etcd refuses to read domain {0}: {1}", res, e.getMessage());
            return new Asked(false, null);
        }
    }

    private boolean install(Domain d, Mode mode, boolean fromHolder, long sessionRevision, long lockRevision, long ownerRevision, Owner owner, TxnResult r, int reads, TokenRecords.Contents contents) {
        monitor.lock();
        try {
            if (!session.live() || session.revision() != sessionRevision || tokens.stopping() || d.giving || contents == null && d.held == Mode.NONE
                    || Fault.REMOVED_NOT_TAKEN.on() && contents != null && d.id != Tokens.RENAME_TOKEN && contents.inodes().stream().noneMatch(i -> i.ino == d.id)) {
                return false;
            }
            d.held = mode;
            d.fromHolder = fromHolder;
            d.lockRevision = lockRevision;
            d.ownerRevision = ownerRevision;
            d.epoch = owner == null ? 0 : owner.getEpoch();
            d.suspects = owner == null ? List.of() : List.copyOf(owner.getSuspectsList());
            d.heldSinceNs = monitor.nowNs();
            d.lastUsedNs = d.heldSinceNs;
            d.unserved = monitor.nowNs() <= d.demandUntilNs;
            acquires++;
            if (contents != null) {
                d.clearContents();
                d.entries.putAll(contents.entries());
                contents.inodes().forEach(i -> {
                    d.inodes.put(i.ino, i);
                    d.countExtents(i);
                });
                d.remainders.putAll(contents.remainders());
                d.part = contents.part();
            }
            if (contents != null || !Fault.OPEN_AS_READ_BEFORE.on()) {
                noteOthersOpen(d, r, reads);
            }
            d.loaded = true;
            for (KeyValue kv : r.ranged(reads + 1).keyValues()) {
                recaller.noteWant(d, kv);
            }
            tokens.host().loaded(d);
            monitor.changed();
            return true;
        } finally {
            monitor.unlock();
        }
    }

    private List<Long> needed(Domain d) {
        return monitor.with(() -> tokens.host().inUse(d));
    }

    private void noteOthersOpen(Domain d, TxnResult r, int reads) {
        d.othersOpen.clear();
        for (KeyValue kv : r.ranged(reads).keyValues()) {
            Keys.OpenKey k = keys.parseOpen(kv.key());
            if (!k.node().equals(node)) {
                d.othersOpen.computeIfAbsent(k.ino(), i -> new HashSet<>()).add(k.node());
            }
        }
    }
}
