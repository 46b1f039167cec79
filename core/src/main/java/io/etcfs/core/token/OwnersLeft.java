package io.etcfs.core.token;

import io.etcfs.core.clock.Monitor;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.record.Keys;
import io.etcfs.core.session.Session;
import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.TxnResult;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/**
 * Owner records of removed directories in which nothing lives any more. They go with the token when that is given back; where the session ended before, nobody
 * would ever come by them again. A process that ends takes its list with it: then the record stays.
 */
final class OwnersLeft {
    private static final System.Logger LOG = System.getLogger(Tokens.class.getName());

    private final Monitor monitor;
    private final MetadataStore store;
    private final Session session;
    private final Keys keys;
    private final String node;
    private final Set<Long> resources = new TreeSet<>();
    private boolean removing;

    OwnersLeft(Parts parts) {
        this.monitor = parts.monitor();
        this.store = parts.store();
        this.session = parts.session();
        this.keys = parts.keys();
        this.node = parts.node();
    }

    /** The token of the domain went with the session. Its contents are still what was known. Monitor held. */
    void lost(Domain d) {
        if (d.loaded && d.nothingLivesHere() && d.id != Tokens.RENAME_TOKEN && !Fault.OWNERS_LEFT.on()) {
            resources.add(d.id);
        }
    }

    /** Monitor held. */
    boolean isEmpty() {
        return resources.isEmpty();
    }

    /** Under a new session, on a task. What is left when that has gone, too, is for the next. */
    void remove() {
        long sessionRevision = monitor.with(() -> removing || resources.isEmpty() ? 0L : session.revision());
        if (sessionRevision == 0) {
            return;
        }
        monitor.with(() -> removing = true);
        try {
            for (long resource : monitor.with(() -> List.copyOf(resources))) {
                while (!remove(resource)) {
                    if (monitor.with(() -> !session.live() || session.revision() != sessionRevision)) {
                        return;
                    }
                    monitor.pause(100_000_000L);
                }
                monitor.lock();
                try {
                    resources.remove(resource);
                    monitor.changed();
                } finally {
                    monitor.unlock();
                }
            }
        } finally {
            monitor.with(() -> removing = false);
        }
    }

    /** False: it is not known whether the record has gone; to be tried again. */
    private boolean remove(long resource) {
        Key owner = keys.owner(resource);
        try {
            KeyValue found = store.range(owner, null, 0, false, 0, Tokens.REQUEST_NS).only();
            if (found == null) {
                return true;
            }
            // Whoever has the token, or gets it, sees to the record: it compares its revision.
            List<Compare> compares = new ArrayList<>(monitor.with(session::guard).compares());
            compares.add(Compare.modRevision(owner, found.modRevision()));
            compares.add(Compare.noneIn(keys.locksOf(resource), keys.locksOf(resource).prefixEnd()));
            compares.add(Compare.noneIn(keys.inodesOf(resource), keys.inodesOf(resource).prefixEnd()));
            Outcome outcome = store.commit(new Txn(compares, List.of(Op.delete(owner)), List.of(Op.get(keys.session(node)))), Tokens.REQUEST_NS);
            return switch (outcome) {
                case Outcome.Committed c -> true;
                case Outcome.Conflict(TxnResult r) -> r.ranged(0).only() != null && r.ranged(0).only().createRevision() == monitor.with(session::revision);
                case Outcome.Unknown u -> false;
            };
        } catch (StoreUnavailableException | StoreRejectedException e) {
            LOG.log(System.Logger.Level.DEBUG, "owner record of removed directory {0} not deleted yet: {1}", resource, e.getMessage());
            return false;
        }
    }
}
