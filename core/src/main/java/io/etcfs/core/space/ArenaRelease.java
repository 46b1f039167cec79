package io.etcfs.core.space;

import io.etcfs.core.clock.Monitor;
import io.etcfs.core.clock.Tasks;
import io.etcfs.core.record.Keys;
import io.etcfs.core.session.Session;
import io.etcfs.core.store.Compare;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.TxnResult;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;

/**
 * Gives every arena of a node that leaves to the free pool: each in a transaction of its own, some of them under way at a time. The session has ended, so that
 * none is claimed meanwhile; the membership is kept by {@link Session#end}, however many there are.
 */
final class ArenaRelease {
    private static final int AT_ONCE = 16;
    private static final long REQUEST_NS = 2_000_000_000L;
    private static final long RETRY_NS = 20_000_000L;
    private static final System.Logger LOG = System.getLogger(ArenaRelease.class.getName());

    private final Monitor monitor;
    private final MetadataStore store;
    private final Tasks tasks;
    private final Session session;
    private final Keys keys;
    private final String node;
    /** What of the last read is not asked for yet. Monitor held, as for all that follows. */
    private final Queue<KeyValue> waiting = new ArrayDeque<>();
    private int workers;
    private int released;
    /** The node was fenced, or another process of it has joined: no arena can be given back any more. */
    private boolean refused;

    ArenaRelease(Monitor monitor, MetadataStore store, Tasks tasks, Session session, Keys keys, String node) {
        this.monitor = monitor;
        this.store = store;
        this.tasks = tasks;
        this.session = session;
        this.keys = keys;
        this.node = node;
    }

    /** @return whether none is left */
    boolean run(long untilNs, long patienceNs) {
        long until = untilNs;
        while (true) {
            try {
                List<KeyValue> owned = store.range(keys.arenasOf(node), keys.arenasOf(node).prefixEnd(), 0, false, 0, REQUEST_NS).keyValues();
                if (owned.isEmpty()) {
                    return true;
                }
                if (releaseOnce(owned) > 0) {
                    until = Math.max(until, monitor.nowNs() + patienceNs);
                }
            } catch (StoreUnavailableException | StoreRejectedException e) {
                LOG.log(System.Logger.Level.WARNING, "the arenas are not released yet: {0}", e.getMessage());
            }
            if (monitor.with(() -> refused) || !session.departurePossible() || monitor.nowNs() >= until) {
                return false;
            }
            monitor.pause(RETRY_NS);
        }
    }

    /** Asks once for each of them, until one has no answer. Returns how many were given back. */
    private int releaseOnce(List<KeyValue> owned) {
        monitor.lock();
        try {
            List<Compare> stillLeaving = session.stillLeaving();
            released = 0;
            waiting.addAll(owned);
            workers = Math.min(AT_ONCE, owned.size());
            for (int i = workers; i > 0; i--) {
                tasks.start("release-arenas", () -> work(stillLeaving));
            }
            while (workers > 0) {
                monitor.awaitQuietly(monitor.nowNs() + REQUEST_NS);
            }
            return released;
        } finally {
            waiting.clear();
            monitor.unlock();
        }
    }

    private void work(List<Compare> stillLeaving) {
        try {
            KeyValue arena = monitor.with(waiting::poll);
            while (arena != null) {
                boolean answered = release(arena, stillLeaving);
                monitor.lock();
                try {
                    if (!answered || refused || !session.departurePossible()) {
                        waiting.clear();
                    }
                    arena = waiting.poll();
                } finally {
                    monitor.unlock();
                }
            }
        } finally {
            monitor.lock();
            try {
                workers--;
                monitor.changed();
            } finally {
                monitor.unlock();
            }
        }
    }

    /** False: what became of it is not known. It is asked for again if the next read still shows it. */
    private boolean release(KeyValue arena, List<Compare> stillLeaving) {
        List<Compare> compares = new ArrayList<>(stillLeaving);
        compares.add(Compare.modRevision(arena.key(), arena.modRevision()));
        Outcome outcome;
        try {
            outcome = store.commit(new Txn(compares, List.of(Op.delete(arena.key()), Op.put(keys.freeArena(keys.parseArena(arena.key()).id()), arena.value())), List.of(Op.get(arena.key()))), REQUEST_NS);
        } catch (StoreRejectedException e) {
            LOG.log(System.Logger.Level.WARNING, "an arena is not released yet: {0}", e.getMessage());
            return false;
        }
        monitor.lock();
        try {
            switch (outcome) {
                case Outcome.Committed c -> released++;
                case Outcome.Conflict(TxnResult r) -> {
                    KeyValue present = r.ranged(0).only();
                    refused |= present != null && present.modRevision() == arena.modRevision();
                }
                case Outcome.Unknown u -> {
                    return false;
                }
            }
        } finally {
            monitor.unlock();
        }
        return true;
    }
}
