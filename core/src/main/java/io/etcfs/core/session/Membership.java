package io.etcfs.core.session;

import io.etcfs.core.clock.Monitor;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Departed;
import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.LeaseGrant;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.TxnResult;
import java.util.ArrayList;
import java.util.List;

/**
 * This node's place among the members: {@code membership:} on a lease of its own, longer than the session's, and the mark of a clean departure that takes
 * its place. Used by one thread at a time: first the one that opens the session, then one that renews it, then the one that leaves; only {@link #keep} is asked
 * by another beside that.
 */
final class Membership {
    private static final long BEAT_TIMEOUT_NS = Session.BEAT_TIMEOUT_NS;
    private static final long REQUEST_NS = 2_000_000_000L;

    private final Monitor monitor;
    private final MetadataStore store;
    private final Keys keys;
    private final String node;
    private final io.etcfs.core.record.proto.Membership record;
    private final long ttlSeconds;
    /** Those that were granted for it, the latest last: a registration whose outcome is unknown may have put the key on any of them. */
    private final List<Long> leases = new ArrayList<>();
    /** Of the key; 0: not known, after a registration whose outcome is unknown. */
    private long revision;
    /** Whether a registration may have been made, and whether the first one found that the node had left in order. */
    private boolean registered;
    private boolean hadLeft;

    Membership(Monitor monitor, MetadataStore store, Keys keys, String node, io.etcfs.core.record.proto.Membership record, long ttlSeconds) {
        this.monitor = monitor;
        this.store = store;
        this.keys = keys;
        this.node = node;
        this.record = record;
        this.ttlSeconds = ttlSeconds;
    }

    long ttlSeconds() {
        return ttlSeconds;
    }

    /** How often it is to be renewed. */
    long beatNs() {
        return ttlSeconds * 300_000_000L;
    }

    /**
     * The first registration of this process: membership on a lease, and what the node's last run left is taken back in the same step. It waits for an earlier
     * session of the node to be gone: whoever has that is the node.
     *
     * @return false: there is such a session
     */
    boolean join(List<Compare> standing, long generation) throws StoreUnavailableException, StoreRejectedException {
        return register(standing, generation, Compare.absent(keys.session(node)));
    }

    /** Whether {@link #join} took the mark of a clean departure away, or may have. */
    boolean hadLeft() {
        return hadLeft;
    }

    /** That it is the one that {@link #join} put: of two processes that join at once only one gets the session, and the other takes nothing from it. */
    Compare unchanged() {
        // Where that is not known, it holds for nobody.
        return Compare.modRevision(keys.membership(node), revision == 0 ? Long.MAX_VALUE : revision);
    }

    /** Keeps the membership, or registers again where it was lost. Only who has the session does. */
    void renew(List<Compare> standing, long generation, long session) throws StoreUnavailableException, StoreRejectedException {
        if (revision == 0 || store.keepAlive(leases.getLast(), BEAT_TIMEOUT_NS).ttlSeconds() <= 0) {
            register(standing, generation, Compare.createRevision(keys.session(node), session));
        }
    }

    /** Keeps it while the node leaves and has no session any more: where it was lost it is not registered again. False: it is lost. */
    boolean keep() throws StoreUnavailableException {
        return revision != 0 && store.keepAlive(leases.getLast(), BEAT_TIMEOUT_NS).ttlSeconds() > 0;
    }

    /** One that comes late, after another process of this node has registered, after a departure or a fence, changes nothing. */
    private boolean register(List<Compare> standing, long generation, Compare session) throws StoreUnavailableException, StoreRejectedException {
        long before = modRevision(keys.membership(node));
        long departedBefore = modRevision(keys.departed(node));
        LeaseGrant granted = store.grantLease(ttlSeconds, REQUEST_NS);
        leases.add(granted.leaseId());
        revision = 0;
        hadLeft |= !registered && departedBefore != 0;
        registered = true;
        List<Compare> compares = new ArrayList<>(standing);
        compares.addAll(List.of(session, Compare.modRevision(keys.membership(node), before), Compare.modRevision(keys.departed(node), departedBefore)));
        Outcome outcome = store.commit(new Txn(compares,
                List.of(Op.put(keys.membership(node), record.toBuilder().setGeneration(generation).build().toByteArray(), granted.leaseId()),
                        Op.delete(keys.departed(node)), Op.delete(keys.fencePending(node)), Op.delete(keys.fenceDone(node))),
                List.of(Op.get(keys.session(node)))), REQUEST_NS);
        switch (outcome) {
            case Outcome.Committed(TxnResult r) -> {
                revision = r.revision();
                leases.subList(0, leases.size() - 1).clear();
                return true;
            }
            case Outcome.Conflict(TxnResult r) -> {
                KeyValue found = r.ranged(0).only();
                if ((found == null ? 0 : found.createRevision()) != session.number()) {
                    return false;
                }
                throw new StoreUnavailableException("the membership changed meanwhile");
            }
            case Outcome.Unknown(String cause, boolean noSpace) -> throw new StoreUnavailableException("membership was not registered: " + cause);
        }
    }

    /**
     * Puts the mark of a clean departure in place of the membership, if that is still there and the node owns nothing any more. False: it could not be done, and
     * never will be.
     *
     * @param standing what has to hold as well
     * @param more     to be done in the same transaction
     */
    boolean depart(List<Compare> standing, List<Op> more, long untilNs) {
        List<Op> ops = new ArrayList<>(more);
        ops.add(Op.delete(keys.membership(node)));
        ops.add(Op.put(keys.departed(node), Departed.newBuilder().setAtNs(monitor.clock().realtimeNs()).build().toByteArray()));
        boolean[] expired = new boolean[1];
        boolean marked = Insist.on("record the departure", monitor, untilNs, () -> {
            KeyValue present = store.range(keys.membership(node), null, 0, false, 0, REQUEST_NS).only();
            if (present == null || !leases.contains(present.leaseId())) {
                expired[0] = modRevision(keys.departed(node)) == 0;
                return true;
            }
            // One that comes late, after another process of this node has registered, finds another membership.
            List<Compare> compares = new ArrayList<>(standing);
            compares.addAll(List.of(Compare.modRevision(keys.membership(node), present.modRevision()),
                    Compare.noneIn(keys.arenasOf(node), keys.arenasOf(node).prefixEnd()), Compare.noneIn(keys.openedBy(node), keys.openedBy(node).prefixEnd())));
            return store.commit(new Txn(compares, ops, List.of()), REQUEST_NS) instanceof Outcome.Committed;
        });
        // A copy of the registration that is still on its way finds its lease gone.
        return marked && !expired[0] && Insist.on("end the membership", monitor, untilNs, () -> {
            for (long lease : leases) {
                store.revokeLease(lease, REQUEST_NS);
            }
            return true;
        });
    }

    /** 0: there is no such key. */
    private long modRevision(Key key) throws StoreUnavailableException, StoreRejectedException {
        KeyValue found = store.range(key, null, 0, false, 0, REQUEST_NS).only();
        return found == null ? 0 : found.modRevision();
    }
}
