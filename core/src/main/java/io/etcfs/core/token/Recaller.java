package io.etcfs.core.token;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.clock.Monitor;
import io.etcfs.core.clock.Tasks;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.pipeline.Pipeline;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Want;
import io.etcfs.core.session.NodeStoppedError;
import io.etcfs.core.session.Session;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.TxnResult;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Giving tokens on: who wants them, and a task for each resource that is recalled. It lets local operations have their turn and has the kernel forget meanwhile, then
 * keeps operations waiting and hands the token over with the batch that publishes the last of what was done under it.
 */
final class Recaller {
    static final long MIN_HOLD_NS = 10_000_000L;
    static final long MAX_HOLD_NS = 100_000_000L;
    /** A token that no local operation used for this long is not held back from who wants it. */
    static final long IDLE_NS = 2_000_000L;
    /** Nor is one, that no local operation used for this long, kept from who comes that way. */
    static final long OFFERED_IDLE_NS = 20_000_000L;
    /**
     * After an answer was written, the process that asked still has to run before its kernel knows the name: a notification that comes earlier finds nothing
     * to drop. Nothing is granted during a recall; this long after the last grant every answer is taken to be in.
     */
    static final long SETTLE_NS = 60_000_000L;
    /** More waiters than this for SHARED are not given it in one batch; the others ask themselves then. */
    static final int MAX_SHARED_AT_ONCE = 20;

    private final Tokens tokens;
    private final Monitor monitor;
    private final MetadataStore store;
    private final Tasks tasks;
    private final Session session;
    private final Pipeline pipeline;
    private final Keys keys;
    private final String node;
    private long recalls;

    Recaller(Tokens tokens, Parts parts) {
        this.tokens = tokens;
        this.monitor = parts.monitor();
        this.store = parts.store();
        this.tasks = parts.tasks();
        this.session = parts.session();
        this.pipeline = parts.pipeline();
        this.keys = parts.keys();
        this.node = parts.node();
    }

    /** How many recalls have begun. Monitor held. */
    long recalls() {
        return recalls;
    }

    void noteWant(Domain d, KeyValue kv) {
        Keys.WantKey k = keys.parseWant(kv.key());
        if (k.node().equals(node)) {
            return;
        }
        try {
            Want w = Want.parseFrom(kv.value());
            Domain.WantOf known = d.wants.get(k.node());
            if (known == null || known.revision() <= kv.createRevision()) {
                d.wants.put(k.node(), new Domain.WantOf(k.node(), TokenRecords.mode(w), w.getSession(), w.getLease(), w.getGeneration(), kv.createRevision()));
            }
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record " + kv.key());
        }
    }

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

    void considerRecall(Domain d) {
        if (d.held == Mode.NONE || !d.loaded || d.recalling || d.giving || d.takeBack || tokens.stopping() || conflicting(d).isEmpty()) {
            return;
        }
        offerBelow(d);
        startRecall(d, false);
    }

    /**
     * Who wants to share a directory that was changed here is likely to go on to where more was changed: he gets that with it, as if he had asked for it. Otherwise he would
     * come with a want for each directory on the way, one after the other.
     */
    private void offerBelow(Domain d) {
        Domain.WantOf first = conflicting(d).getFirst();
        if (d.held != Mode.EXCLUSIVE || first.mode() != Mode.SHARED) {
            return;
        }
        Domain below = tokens.towardsLastChange(d);
        if (below == null || below.held != Mode.EXCLUSIVE || !below.usable(Mode.EXCLUSIVE) || below.recalling || below.birthUnpublished || below.acquiring || below.pins > 0
                || !below.wants.isEmpty() || monitor.nowNs() - below.lastUsedNs < OFFERED_IDLE_NS) {
            return;
        }
        below.wants.put(first.node(), new Domain.WantOf(first.node(), Mode.SHARED, first.session(), first.lease(), first.generation(), first.revision()));
        considerRecall(below);
    }

    void startRecall(Domain d, boolean release) {
        d.recalling = true;
        d.lastRecalledNs = monitor.nowNs();
        recalls++;
        tasks.start("recall-" + d.id, () -> recall(d, release));
    }

    /** The first who wants it only wants to share. */
    private boolean becomesShared(Domain d, boolean release) {
        if (release || d.held != Mode.EXCLUSIVE) {
            return false;
        }
        List<Domain.WantOf> wants = conflicting(d);
        return !wants.isEmpty() && wants.getFirst().mode() == Mode.SHARED;
    }

    private void recall(Domain d, boolean release) {
        boolean downgrade = false;
        monitor.lock();
        try {
            // Local operations get their turn first; an upgrade that is on its way is let through or refused before anything is dropped.
            long early = monitor.nowNs() - d.heldSinceNs;
            d.holdNs = early < 2 * d.holdNs ? Math.min(MAX_HOLD_NS, d.holdNs * 2) : Math.max(MIN_HOLD_NS, d.holdNs / 2);
            long sessionRevision = session.revision();
            Mode notified = Mode.NONE;
            while (!tokens.stopping() && d.held != Mode.NONE && session.revision() == sessionRevision) {
                long now = monitor.nowNs();
                long idle = d.unserved ? Long.MAX_VALUE : d.lastUsedNs + IDLE_NS;
                long until = release ? 0 : Math.max(Math.min(d.heldSinceNs + d.holdNs, idle), d.unserved ? d.notBeforeNs : Long.MIN_VALUE);
                boolean replies = d.repliesInFlight > 0 && !Fault.REPLY_NOT_AWAITED.on();
                // Names and attributes stay good where the token becomes SHARED.
                if (!becomesShared(d, release) && d.believedUntilNs() > now) {
                    // Dropped before operations are kept waiting: those would hold the directory's lock.
                    long settled = d.lastGrantNs + SETTLE_NS;
                    if (notified != d.held && !replies && now >= settled && d.namesCanBeDropped()) {
                        notified = d.held;
                        monitor.unlock();
                        try {
                            tokens.host().forgetNames(d);
                        } finally {
                            monitor.lock();
                        }
                        continue;
                    }
                    until = Math.max(until, now < settled ? settled : d.believedUntilNs());
                }
                if (now >= until && !d.asking && d.pins == 0 && !replies) {
                    break;
                }
                monitor.awaitQuietly(Math.max(until, now + 1_000_000L));
            }
            List<Domain.WantOf> wants = conflicting(d);
            if (tokens.stopping() || d.held == Mode.NONE || session.revision() != sessionRevision || !release && wants.isEmpty()) {
                endRecall(d);
                return;
            }
            downgrade = becomesShared(d, release);
            d.namesClosed = true;
        } finally {
            monitor.unlock();
        }
        tokens.host().dropCached(d, downgrade);
        if (Fault.HANDOVER_BEFORE_PUBLISH.on()) {
            giveEarly(d, downgrade);
            return;
        }
        Handover handover;
        monitor.lock();
        try {
            d.dataClosed = true;
            while (!tokens.stopping() && tokens.host().busy(d)) {
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
            List<Runnable> pins = tokens.host().pinsOfOpenFiles(d);
            for (Runnable pin : Fault.OPEN_PINNED_LATE.on() ? List.<Runnable>of() : pins) {
                held = held && awaitRoom(d, 8);
                if (held) {
                    // No change of the domain, as little as the handover: both are dropped with the session.
                    pin.run();
                }
            }
            if (!held || !awaitRoom(d, 10 + 3 * to.size())) {
                endRecall(d);
                return;
            }
            handover = new Handover(monitor, session, keys, node, d, downgrade, to);
            d.giving = true;
            pipeline.ride(handover);
            pipeline.push(pipeline.openNumber());
            while (!tokens.stopping() && !handover.settled()) {
                monitor.awaitQuietly(monitor.nowNs() + 1_000_000_000L);
            }
            if (Fault.OPEN_PINNED_LATE.on()) {
                pins.forEach(Runnable::run);
            }
            endRecall(d);
        } finally {
            monitor.unlock();
        }
    }

    /** {@link Fault#HANDOVER_BEFORE_PUBLISH}. */
    private void giveEarly(Domain d, boolean downgrade) {
        Mode mode = downgrade ? Mode.SHARED : Mode.EXCLUSIVE;
        Handover handover = monitor.with(() -> new Handover(monitor, session, keys, node, d, downgrade,
                conflicting(d).stream().filter(w -> w.mode() == mode).limit(downgrade ? Long.MAX_VALUE : 1).toList()));
        try {
            Outcome given = store.commit(new Txn(List.of(), monitor.with(handover::build), List.of()), Tokens.REQUEST_NS);
            monitor.pause(20_000_000L);
            monitor.lock();
            try {
                long last = pipeline.lastNumber();
                pipeline.push(last);
                while (!tokens.stopping() && !pipeline.published(last)) {
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
        while (!tokens.stopping() && session.live() && d.held != Mode.NONE && !d.takeBack) {
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
        tokens.startAcquire(d);
        considerRecall(d);
        tokens.dropIfUnused(d);
        monitor.changed();
    }
}
