package io.etcfs.core.token;

import io.etcfs.core.clock.Monitor;
import io.etcfs.core.clock.Tasks;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.record.Keys;
import io.etcfs.core.session.NodeStoppedError;
import io.etcfs.core.session.Session;
import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.RangeResult;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.Watch;
import io.etcfs.core.store.WatchEvent;
import io.etcfs.core.store.WatchListener;
import java.util.ArrayList;
import java.util.List;

/** What the node hears of {@code lock:} and {@code want:}. Nothing relies on it: waiters try again by themselves, and renew their wants. */
final class TokenWatch {
    private static final System.Logger LOG = System.getLogger(Tokens.class.getName());

    private final Tokens tokens;
    private final Monitor monitor;
    private final MetadataStore store;
    private final Tasks tasks;
    private final Session session;
    private final Keys keys;
    private final String node;
    private final TokenRecords records;
    private final Recaller recaller;
    private Watch lockWatch;
    private Watch wantWatch;

    TokenWatch(Tokens tokens, Parts parts, TokenRecords records, Recaller recaller) {
        this.tokens = tokens;
        this.monitor = parts.monitor();
        this.store = parts.store();
        this.tasks = parts.tasks();
        this.session = parts.session();
        this.keys = parts.keys();
        this.node = parts.node();
        this.records = records;
        this.recaller = recaller;
    }

    void start() {
        lockWatch = store.watch(keys.locks(), keys.locks().prefixEnd(), 0, new WatchListener() {
            @Override
            public void changed(long revision, List<WatchEvent> events) {
                watched(() -> locksChanged(events));
            }

            @Override
            public void resynced(long revision) {
                wakeWaiters();
                tasks.start("own-locks", TokenWatch.this::listOwnLocks);
            }
        });
        wantWatch = store.watch(keys.wants(), keys.wants().prefixEnd(), 0, new WatchListener() {
            @Override
            public void changed(long revision, List<WatchEvent> events) {
                watched(() -> wantsChanged(events));
            }

            @Override
            public void resynced(long revision) {
                tasks.start("wants", TokenWatch.this::listWants);
            }
        });
    }

    void stop() {
        if (lockWatch != null) {
            lockWatch.close();
        }
        if (wantWatch != null) {
            wantWatch.close();
        }
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

    private void locksChanged(List<WatchEvent> events) {
        monitor.lock();
        try {
            for (WatchEvent e : events) {
                Keys.LockKey k = keys.parseLock(e.keyValue().key());
                boolean ours = k.node().equals(node) && e.kind() == WatchEvent.Kind.PUT && e.keyValue().leaseId() == session.leaseId();
                // What nobody here ever asked for is offered, and only to share.
                Domain d = ours && !k.exclusive() ? tokens.domain(k.res()) : tokens.known(k.res());
                if (d == null) {
                    continue;
                }
                if (k.node().equals(node)) {
                    boolean unknown = ours && e.keyValue().modRevision() > d.givenRevision
                            && !d.held.atLeast(k.exclusive() ? Mode.EXCLUSIVE : Mode.SHARED) && !d.namesClosed && !d.giving;
                    if (unknown) {
                        // Handed to us: taken up also if nobody waits any more, so that it is known and can be given on.
                        d.handed = k.exclusive() ? Mode.EXCLUSIVE : Mode.SHARED;
                        d.handedRevision = e.keyValue().modRevision();
                        d.events++;
                        tokens.demand(d, k.exclusive() ? Mode.EXCLUSIVE : Mode.SHARED);
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
            tokens.all().forEach(d -> d.events++);
            monitor.changed();
        } finally {
            monitor.unlock();
        }
    }

    /** After the watch may have missed something: keys of ours that we do not know of are taken up, so that they can be given on. */
    private void listOwnLocks() {
        try {
            RangeResult all = store.range(keys.locks(), keys.locks().prefixEnd(), 0, true, 0, Tokens.REQUEST_NS);
            monitor.lock();
            try {
                for (KeyValue kv : all.keyValues()) {
                    Keys.LockKey k = keys.parseLock(kv.key());
                    if (k.node().equals(node) && kv.leaseId() == session.leaseId()) {
                        Domain d = tokens.domain(k.res());
                        if (kv.modRevision() > d.givenRevision && !d.recalling && !d.giving) {
                            tokens.demand(d, k.exclusive() ? Mode.EXCLUSIVE : Mode.SHARED);
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
                Domain d = tokens.known(k.res());
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
                recaller.noteWant(d, e.keyValue());
                recaller.considerRecall(d);
                if (d.held == Mode.SHARED && e.keyValue().version() >= 3 && !d.acquiring && !d.recalling && !d.giving) {
                    // Nothing that this node knows of is in the way, and still it waits.
                    tasks.start("unknown-" + k.res(), () -> giveUnknownBack(k.res()));
                }
            }
        } finally {
            monitor.unlock();
        }
    }

    private void listWants() {
        try {
            RangeResult all = store.range(keys.wants(), keys.wants().prefixEnd(), 0, false, 0, Tokens.REQUEST_NS);
            monitor.lock();
            try {
                for (KeyValue kv : all.keyValues()) {
                    Domain d = tokens.known(keys.parseWant(kv.key()).res());
                    if (d != null) {
                        recaller.noteWant(d, kv);
                        recaller.considerRecall(d);
                    }
                }
            } finally {
                monitor.unlock();
            }
        } catch (StoreUnavailableException | StoreRejectedException e) {
            LOG.log(System.Logger.Level.DEBUG, "wants not listed: {0}", e.getMessage());
        }
    }

    /**
     * A key of ours that this node does not know of: a request that committed after nobody waited for its answer any more. An EXCLUSIVE one where it knows of SHARED
     * is taken up, to be given on.
     */
    private void giveUnknownBack(long res) {
        Grant.Seen seen = records.look(res);
        if (seen == null) {
            return;
        }
        for (boolean exclusive : new boolean[] {true, false}) {
            Grant.LockSeen own = seen.own(node, exclusive);
            if (own == null) {
                continue;
            }
            boolean more = exclusive && monitor.with(() -> {
                Domain d = tokens.known(res);
                if (d != null && d.held == Mode.SHARED && own.leaseId() == session.leaseId()) {
                    tokens.demand(d, Mode.EXCLUSIVE);
                    return true;
                }
                return false;
            });
            if (more) {
                return;
            }
            boolean stillUnknown = monitor.with(() -> {
                Domain d = tokens.known(res);
                boolean unknown = own.leaseId() == session.leaseId() && (d == null || d.held == Mode.NONE && !d.acquiring && !d.giving && !d.recalling);
                if (unknown) {
                    tokens.givingBack(res, own.modRevision());
                }
                return unknown;
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
                if (store.commit(new Txn(Fault.UNKNOWN_KEY_BLINDLY.on() ? List.of() : compares, ops, List.of()), Tokens.REQUEST_NS) instanceof Outcome.Committed) {
                    monitor.with(() -> {
                        tokens.gaveBack(res, own.modRevision());
                        return null;
                    });
                }
            } catch (StoreRejectedException e) {
                LOG.log(System.Logger.Level.DEBUG, "unknown key of {0} not given back: {1}", res, e.getMessage());
            }
        }
    }
}
