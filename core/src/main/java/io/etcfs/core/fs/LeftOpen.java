package io.etcfs.core.fs;

import io.etcfs.core.domain.Vnode;
import io.etcfs.core.record.Keys;
import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.TxnResult;
import java.util.ArrayList;
import java.util.List;

/**
 * What a fenced node had open. Its keys go, as if it had closed everything; an inode without a name that only it kept gets this node's key in the place of its
 * own, in one transaction, and is then freed here like any other that is closed last.
 *
 * <p>The keys are read after the node's generation was raised, so that it adds none, and each step compares the mark of the fence: a node that is back sees
 * to its own.
 */
final class LeftOpen {
    private static final long REQUEST_NS = 2_000_000_000L;
    private static final long RETRY_NS = 100_000_000L;

    private final Node node;
    private final OpenFiles openFiles;
    /** How many calls are under way, each about another node, and that no more is to be begun. Monitor held. */
    private int takingOver;
    private boolean ended;

    LeftOpen(Node node, OpenFiles openFiles) {
        this.node = node;
        this.openFiles = openFiles;
    }

    /** What can't be done now is done when it is asked for again, here or by whoever is first then. Without the monitor. */
    void takeOver(String gone, long doneRevision) throws StoreUnavailableException, StoreRejectedException {
        node.monitor().with(() -> takingOver++);
        try {
            takeOverAll(gone, doneRevision);
        } finally {
            node.monitor().lock();
            try {
                takingOver--;
                node.monitor().changed();
            } finally {
                node.monitor().unlock();
            }
        }
    }

    /**
     * No file is taken over any more: the rest is left to another node. Returns when it is known of each that was begun whether it is this node's, and those are being closed; or
     * when the time is over.
     */
    void end(long untilNs) {
        node.monitor().lock();
        try {
            ended = true;
            while (takingOver > 0 && node.monitor().nowNs() < untilNs && !node.waiting().stopped()) {
                node.monitor().awaitQuietly(untilNs);
            }
        } finally {
            node.monitor().unlock();
        }
    }

    private boolean ended() {
        return node.waiting().stopped() || node.monitor().with(() -> ended);
    }

    private void takeOverAll(String gone, long doneRevision) throws StoreUnavailableException, StoreRejectedException {
        Keys keys = node.keys();
        for (KeyValue kv : node.store().range(keys.openedBy(gone), keys.openedBy(gone).prefixEnd(), 0, true, 0, REQUEST_NS).keyValues()) {
            List<Compare> guard = guard();
            Keys.OpenKey k = keys.parseOpened(kv.key());
            KeyValue theirs = node.store().range(keys.open(k.home(), k.ino(), gone), null, 0, true, 0, REQUEST_NS).only();
            if (guard == null || ended()) {
                return;
            }
            if (theirs != null) {
                guard.add(Compare.modRevision(keys.fenceDone(gone), doneRevision));
                guard.add(Compare.modRevision(theirs.key(), theirs.modRevision()));
                takeOver(k, guard, List.of(Op.delete(theirs.key()), Op.delete(kv.key())));
            }
        }
    }

    /** Null: nothing may be committed now. */
    private List<Compare> guard() {
        return node.monitor().with(() -> node.session().trusted() ? new ArrayList<>(node.session().guard().compares()) : null);
    }

    private void takeOver(Keys.OpenKey k, List<Compare> guard, List<Op> theirKeysGo) throws StoreUnavailableException, StoreRejectedException {
        Keys keys = node.keys();
        if (committed(with(guard, Compare.absent(keys.orphan(k.ino()))), theirKeysGo)) {
            return;
        }
        Key all = keys.opensOf(k.home(), k.ino());
        for (KeyValue other : node.store().range(all, all.prefixEnd(), 0, true, 0, REQUEST_NS).keyValues()) {
            if (!keys.parseOpen(other.key()).node().equals(k.node())) {
                // Whose that is frees it.
                committed(with(guard, Compare.exists(other.key())), theirKeysGo);
                return;
            }
        }
        adopt(k, guard, theirKeysGo);
    }

    private static List<Compare> with(List<Compare> guard, Compare more) {
        List<Compare> compares = new ArrayList<>(guard);
        compares.add(more);
        return compares;
    }

    private boolean committed(List<Compare> compares, List<Op> ops) throws StoreRejectedException {
        return node.store().commit(new Txn(compares, ops, List.of()), REQUEST_NS) instanceof Outcome.Committed;
    }

    /** This node's key for the other's, and then it is closed here. */
    private void adopt(Keys.OpenKey k, List<Compare> guard, List<Op> theirKeysGo) throws StoreRejectedException {
        Key own = node.keys().open(k.home(), k.ino(), node.name());
        List<Op> ops = new ArrayList<>(theirKeysGo);
        ops.add(Op.put(own, new byte[0]));
        ops.add(Op.put(node.keys().opened(node.name(), k.home(), k.ino()), new byte[0]));
        Txn txn = new Txn(with(guard, Compare.absent(own)), ops, List.of(Op.get(own)));
        Vnode v;
        node.monitor().lock();
        try {
            v = node.vnodes().get(k.ino(), k.home(), false);
            if (v.openKeyRevision != 0 || v.handles > 0 || v.closerRunning) {
                return;
            }
            // Nobody closes it before it is known what became of the key.
            v.closerRunning = true;
        } finally {
            node.monitor().unlock();
        }
        long revision = 0;
        try {
            Outcome outcome = node.store().commit(txn, REQUEST_NS);
            // Once one copy is refused, none that is on its way can commit.
            while (outcome instanceof Outcome.Unknown && !node.waiting().stopped()) {
                node.monitor().pause(RETRY_NS);
                outcome = node.store().commit(txn, REQUEST_NS);
            }
            revision = switch (outcome) {
                case Outcome.Committed(TxnResult r) -> r.revision();
                case Outcome.Conflict(TxnResult r) -> r.ranged(0).only() == null ? 0 : r.ranged(0).only().modRevision();
                case Outcome.Unknown u -> 0;
            };
        } finally {
            node.monitor().lock();
            try {
                v.closerRunning = false;
                if (v.openKeyRevision == 0) {
                    v.openKeyRevision = revision;
                }
                openFiles.considerClosing(v);
                node.vnodes().dropIfUnused(v);
                node.monitor().changed();
            } finally {
                node.monitor().unlock();
            }
        }
    }
}
