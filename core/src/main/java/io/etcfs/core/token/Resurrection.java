package io.etcfs.core.token;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.clock.Monitor;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.pipeline.Pipeline;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Owner;
import io.etcfs.core.session.Guard;
import io.etcfs.core.session.NodeStoppedError;
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
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/** Tokens that went with a session: those that unpublished changes depend on are taken back under the next one, or the node stops. */
final class Resurrection {
    private static final System.Logger LOG = System.getLogger(Tokens.class.getName());

    private final Tokens tokens;
    private final Monitor monitor;
    private final MetadataStore store;
    private final Session session;
    private final Pipeline pipeline;
    private final Keys keys;
    private final String node;
    private final Recaller recaller;

    Resurrection(Tokens tokens, Parts parts, Recaller recaller) {
        this.tokens = tokens;
        this.monitor = parts.monitor();
        this.store = parts.store();
        this.session = parts.session();
        this.pipeline = parts.pipeline();
        this.keys = parts.keys();
        this.node = parts.node();
        this.recaller = recaller;
    }

    /** The session is gone. What unpublished changes depend on is kept, to be taken back; all else is forgotten. Monitor held. */
    void sessionLost() {
        Set<Domain> unpublished = pipeline.unpublishedDomains();
        for (Domain d : tokens.all()) {
            if (d.held == Mode.NONE) {
                continue;
            }
            if (d.held == Mode.EXCLUSIVE && unpublished.contains(d)) {
                d.takeBack = true;
            } else {
                forget(d);
            }
        }
        monitor.changed();
    }

    private void forget(Domain d) {
        d.held = Mode.NONE;
        tokens.host().lost(d);
        d.clearContents();
    }

    /**
     * Takes the journal's tokens back under the new session, each only if nobody was its holder meanwhile: all, or the node stops. False: that session is gone,
     * too, and what is left is for the next. Without the monitor.
     */
    boolean takeBack() {
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
            for (Domain d : tokens.all()) {
                if (!d.takeBack) {
                    continue;
                }
                if (d.birthUnpublished) {
                    d.takeBack = false;
                } else if (unpublished.contains(d)) {
                    back.add(d);
                } else {
                    d.takeBack = false;
                    forget(d);
                }
            }
        } finally {
            monitor.unlock();
        }
        for (int i = 0; i < back.size(); i += 20) {
            if (!takeBack(back.subList(i, Math.min(back.size(), i + 20)), guard, sessionRevision, lease)) {
                return false;
            }
        }
        return true;
    }

    private boolean takeBack(List<Domain> some, Guard guard, long sessionRevision, long lease) {
        List<Domain> missing = new ArrayList<>(some);
        while (!missing.isEmpty()) {
            List<Compare> compares = new ArrayList<>(guard.compares());
            List<Op> success = new ArrayList<>();
            List<Op> failure = new ArrayList<>(guard.reads());
            for (Domain d : missing) {
                if (d.ownerRevision == Tokens.OWNER_REVISION_UNKNOWN && !readOwnOwner(d)) {
                    continue;
                }
                if (!Fault.TAKEN_BACK_BLINDLY.on()) {
                    compares.add(Compare.modRevision(keys.owner(d.id), d.ownerRevision));
                }
                compares.addAll(Handover.nobodyElse(keys, d.id, node));
                Owner owner = Owner.newBuilder().setNode(node).setSession(sessionRevision).setGeneration(session.generation()).setEpoch(d.epoch).addAllSuspects(d.suspects).build();
                success.add(Op.put(keys.lockExclusive(d.id, node), Handover.lock(sessionRevision), lease));
                success.add(Op.put(keys.owner(d.id), owner.toByteArray()));
                failure.add(Op.get(keys.owner(d.id)));
            }
            try {
                switch (store.commit(new Txn(compares, success, failure), Tokens.REQUEST_NS)) {
                    case Outcome.Committed(TxnResult r) -> {
                        restored(missing, r.revision());
                        return true;
                    }
                    case Outcome.Conflict(TxnResult r) -> {
                        if (!monitor.with(() -> session.guardHeld(r, 0, sessionRevision, session.generationRevision()))) {
                            return false;
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
                        monitor.pause(100_000_000L);
                    }
                    case Outcome.Unknown(String cause, boolean noSpace) -> monitor.pause(100_000_000L);
                }
            } catch (StoreRejectedException e) {
                if (e.reason() == StoreRejectedException.Reason.LEASE_NOT_FOUND) {
                    return false;
                }
                LOG.log(System.Logger.Level.WARNING, "taking tokens back is refused: {0}", e.getMessage());
                monitor.pause(500_000_000L);
            }
        }
        return true;
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
                KeyValue kv = store.range(keys.owner(d.id), null, 0, false, 0, Tokens.REQUEST_NS).only();
                Owner o = kv == null ? null : Owner.parseFrom(kv.value());
                if (o == null || !o.getNode().equals(node) || o.getGivenUp()) {
                    throw new NodeStoppedError("directory " + d.id + " was taken by another node while this one was cut off: changes made here since are lost");
                }
                d.ownerRevision = kv.modRevision();
                return true;
            } catch (StoreUnavailableException | StoreRejectedException e) {
                monitor.pause(100_000_000L);
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
                recaller.considerRecall(d);
            }
            monitor.changed();
        } finally {
            monitor.unlock();
        }
    }
}
