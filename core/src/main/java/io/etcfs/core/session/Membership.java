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
import java.util.List;

/**
 * This node's place among the members: {@code membership:} on a lease of its own, longer than the session's, and the mark of a clean departure that takes
 * its place. Used by one thread at a time: first the one that opens the session, then the one that beats, then the one that leaves.
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
    private long lease;
    private long revision;
    /** Whether what is known of the membership is what etcd has: not after a registration whose outcome is unknown. */
    private boolean registered;

    Membership(Monitor monitor, MetadataStore store, Keys keys, String node, io.etcfs.core.record.proto.Membership record, long ttlSeconds) {
        this.monitor = monitor;
        this.store = store;
        this.keys = keys;
        this.node = node;
        this.record = record;
        this.ttlSeconds = ttlSeconds;
    }

    /** How often it is to be renewed. */
    long beatNs() {
        return ttlSeconds * 300_000_000L;
    }

    /**
     * Puts the membership on a new lease and takes back the marks of an earlier departure. One that comes late, after another process of this node has
     * registered or departed, changes nothing.
     */
    void register(Compare sameGeneration, long generation) throws StoreUnavailableException, StoreRejectedException {
        long before = modRevision(keys.membership(node));
        long departedBefore = modRevision(keys.departed(node));
        LeaseGrant granted = store.grantLease(ttlSeconds, REQUEST_NS);
        registered = false;
        Outcome outcome = store.commit(new Txn(List.of(sameGeneration, Compare.modRevision(keys.membership(node), before), Compare.modRevision(keys.departed(node), departedBefore)),
                List.of(Op.put(keys.membership(node), record.toBuilder().setGeneration(generation).build().toByteArray(), granted.leaseId()), Op.delete(keys.departed(node))), List.of()), REQUEST_NS);
        if (!(outcome instanceof Outcome.Committed(TxnResult r))) {
            throw new StoreUnavailableException("membership was not registered");
        }
        lease = granted.leaseId();
        revision = r.revision();
        registered = true;
    }

    /** Keeps the membership, or registers again where it was lost. */
    void renew(Compare sameGeneration, long generation) throws StoreUnavailableException, StoreRejectedException {
        if (!registered || store.keepAlive(lease, BEAT_TIMEOUT_NS).ttlSeconds() <= 0) {
            register(sameGeneration, generation);
        }
    }

    /** Puts the mark of a clean departure in place of the membership. False: it could not be done in time. */
    boolean depart(Compare sameGeneration, long generation, long untilNs) {
        byte[] departed = Departed.newBuilder().setAtNs(monitor.clock().realtimeNs()).build().toByteArray();
        boolean marked = Insist.on("record the departure", monitor, untilNs, () -> {
            if (!registered) {
                register(sameGeneration, generation);
            }
            // One that comes late, after another process of this node has registered, finds another membership.
            Txn txn = new Txn(List.of(Compare.modRevision(keys.membership(node), revision), sameGeneration, Compare.noneIn(keys.arenasOf(node), keys.arenasOf(node).prefixEnd())),
                    List.of(Op.delete(keys.membership(node)), Op.put(keys.departed(node), departed)), List.of());
            return store.commit(txn, REQUEST_NS) instanceof Outcome.Committed || modRevision(keys.departed(node)) != 0;
        });
        // A copy of the registration that is still on its way finds its lease gone.
        return marked && Insist.on("end the membership", monitor, untilNs, () -> {
            store.revokeLease(lease, REQUEST_NS);
            return true;
        });
    }

    /** 0: there is no such key. */
    private long modRevision(Key key) throws StoreUnavailableException, StoreRejectedException {
        KeyValue found = store.range(key, null, 0, false, 0, REQUEST_NS).only();
        return found == null ? 0 : found.modRevision();
    }
}
