package io.etcfs.core.token;

import io.etcfs.core.domain.Domain;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.pipeline.Rider;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Owner;
import io.etcfs.core.session.Session;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.OpResult;
import java.util.List;

/** A new directory's domain, held EXCLUSIVE by its maker from birth: key and owner record come with the directory itself. */
final class Birth implements Rider {
    private final Session session;
    private final Keys keys;
    private final String node;
    private final Domain domain;

    Birth(Session session, Keys keys, String node, Domain domain) {
        this.session = session;
        this.keys = keys;
        this.node = node;
        this.domain = domain;
    }

    @Override
    public int operations() {
        return 2;
    }

    @Override
    public List<Op> build() {
        if (Fault.BIRTH_NOT_PUBLISHED.on()) {
            return List.of();
        }
        Op lock = Op.put(keys.lockExclusive(domain.id, node), Handover.lock(session.revision()), session.leaseId());
        if (domain.goneAtBirth) {
            return List.of(lock);
        }
        Owner owner = Owner.newBuilder().setNode(node).setSession(session.revision()).setGeneration(session.generation()).setEpoch(domain.epoch).build();
        return List.of(lock, Op.put(keys.owner(domain.id), owner.toByteArray()));
    }

    @Override
    public List<Op> reads() {
        return List.of(Op.get(keys.owner(domain.id)), Op.get(keys.lockExclusive(domain.id, node)));
    }

    @Override
    public void committed(long revision, List<OpResult> results) {
        domain.birthUnpublished = false;
        domain.lockRevision = revision;
        domain.ownerRevision = revision;
    }

    @Override
    public void committedEarlier(long revision, List<OpResult> reads) {
        KeyValue owner = ((OpResult.Ranged) reads.get(0)).only();
        KeyValue lock = ((OpResult.Ranged) reads.get(1)).only();
        domain.birthUnpublished = false;
        domain.lockRevision = lock == null ? 0 : lock.modRevision();
        if (lock == null && !domain.goneAtBirth) {
            // The session has ended since, and what was read may be somebody else's.
            domain.ownerRevision = Tokens.OWNER_REVISION_UNKNOWN;
        } else {
            domain.ownerRevision = owner == null ? 0 : owner.modRevision();
        }
    }

    @Override
    public void committedAndLost() {
        // Its owner record was put by a transaction whose revision is not known: reading it back is left to taking the token back.
        domain.birthUnpublished = false;
        domain.ownerRevision = Tokens.OWNER_REVISION_UNKNOWN;
    }

    @Override
    public boolean sessionLost() {
        return true;
    }
}
