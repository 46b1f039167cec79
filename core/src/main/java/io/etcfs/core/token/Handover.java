package io.etcfs.core.token;

import io.etcfs.core.clock.Monitor;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.pipeline.Rider;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Lock;
import io.etcfs.core.record.proto.Owner;
import io.etcfs.core.record.proto.SessionRef;
import io.etcfs.core.session.Session;
import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.OpResult;
import io.etcfs.core.store.Txn;
import java.util.ArrayList;
import java.util.List;

/**
 * A token going away with the batch that publishes the last of what was done under it.
 *
 * <pre>
 *   held X, first waiter wants X:  nested: nobody else's key, waiter's session there → own key and want go, waiter's key and owner record come;
 *                                  else own key goes, owner: given up
 *   held X, first waiter wants S:  own key becomes S, owner: given up; each waiting S whose session is there gets its key
 *   held S, somebody wants X:      nested as above (and owner: unchanged); else own key goes
 *   no waiter (release):           own key goes, owner: given up if it was X
 *   nothing lives in the domain:   own key goes, or X becomes S, and no owner: is put; it went with the last that lived there
 * </pre>
 */
final class Handover implements Rider {
    private final Monitor monitor;
    private final Session session;
    private final Keys keys;
    private final String node;
    private final Domain domain;
    private final Mode from;
    private final boolean keepShared;
    private final boolean unowned;
    private final List<Domain.WantOf> to;
    private boolean done;
    private boolean dropped;

    /**
     * @param keepShared EXCLUSIVE becomes SHARED and {@code to} are waiters for SHARED; else {@code to} is empty or the one who gets EXCLUSIVE
     */
    Handover(Monitor monitor, Session session, Keys keys, String node, Domain domain, boolean keepShared, List<Domain.WantOf> to) {
        this.monitor = monitor;
        this.session = session;
        this.keys = keys;
        this.node = node;
        this.domain = domain;
        this.from = domain.held;
        this.keepShared = keepShared;
        // With the suspects: there is no block left here that they could write to.
        this.unowned = domain.nothingLivesHere() && domain.id != Tokens.RENAME_TOKEN && !Fault.OWNERS_LEFT.on();
        this.to = List.copyOf(to);
    }

    @Override
    public int operations() {
        return keepShared ? 3 + 3 * to.size() : to.isEmpty() ? 2 : 8;
    }

    @Override
    public List<Op> build() {
        long res = domain.id;
        Key ownX = keys.lockExclusive(res, node);
        Key ownS = keys.lockShared(res, node);
        Owner givenUp = Owner.newBuilder().setNode(node).setSession(session.revision()).setGeneration(session.generation()).setEpoch(domain.epoch)
                .addAllSuspects(suspects()).setGivenUp(true).build();
        List<Op> ops = new ArrayList<>();
        if (keepShared) {
            ops.add(Op.delete(ownX));
            ops.add(Op.put(ownS, lock(session.revision()), session.leaseId()));
            if (!unowned) {
                ops.add(Op.put(keys.owner(res), givenUp.toByteArray()));
            }
            for (Domain.WantOf w : to) {
                ops.add(new Op.Nested(new Txn(
                        List.of(Compare.createRevision(keys.session(w.node()), w.session())),
                        List.of(Op.delete(keys.want(res, w.node())), Op.put(keys.lockShared(res, w.node()), lock(w.session()), w.lease())),
                        List.of())));
            }
            return ops;
        }
        Key own = from == Mode.EXCLUSIVE ? ownX : ownS;
        List<Op> alone = new ArrayList<>();
        alone.add(Op.delete(own));
        if (from == Mode.EXCLUSIVE && !unowned) {
            alone.add(Op.put(keys.owner(res), givenUp.toByteArray()));
        }
        if (to.isEmpty() || unowned) {
            return alone;
        }
        Domain.WantOf w = to.getFirst();
        // Whoever wants EXCLUSIVE may share already.
        Key theirS = keys.lockShared(res, w.node());
        List<Compare> compares = new ArrayList<>(noneBut(keys, res, own, theirS));
        compares.add(Compare.createRevision(keys.session(w.node()), w.session()));
        if (from == Mode.SHARED) {
            compares.add(Compare.modRevision(keys.owner(res), domain.ownerRevision));
        }
        Owner next = Owner.newBuilder().setNode(w.node()).setSession(w.session()).setGeneration(w.generation()).setEpoch(domain.epoch).addAllSuspects(suspects()).build();
        if (domain.epoch == 0) {
            // A domain that nobody ever held EXCLUSIVE has no epoch yet: the waiter takes it itself.
            return alone;
        }
        ops.add(new Op.Nested(new Txn(compares,
                List.of(Op.delete(own), Op.delete(theirS), Op.delete(keys.want(res, w.node())), Op.put(keys.lockExclusive(res, w.node()), lock(w.session()), w.lease()),
                        Op.put(keys.owner(res), next.toByteArray())),
                alone)));
        return ops;
    }

    private List<SessionRef> suspects() {
        return Fault.SUSPECTS_FORGOTTEN.on() ? List.of() : domain.suspects;
    }

    static byte[] lock(long session) {
        return Lock.newBuilder().setSession(session).build().toByteArray();
    }

    /** No lock key of the resource but those two. */
    private static List<Compare> noneBut(Keys keys, long res, Key one, Key other) {
        Key all = keys.locksOf(res);
        Key first = one.compareTo(other) < 0 ? one : other;
        Key second = first == one ? other : one;
        return List.of(Compare.noneIn(all, first), Compare.noneIn(first.next(), second), Compare.noneIn(second.next(), all.prefixEnd()));
    }

    /** No lock key of the resource but this node's own. */
    static List<Compare> nobodyElse(Keys keys, long res, String node) {
        Key all = keys.locksOf(res);
        Key ownS = keys.lockShared(res, node);
        Key ownX = keys.lockExclusive(res, node);
        return List.of(Compare.noneIn(all, ownS), Compare.noneIn(ownS.next(), ownX), Compare.noneIn(ownX.next(), all.prefixEnd()));
    }

    static List<Compare> nobodyElseExclusive(Keys keys, long res, String node) {
        Key all = keys.exclusiveLocksOf(res);
        Key ownX = keys.lockExclusive(res, node);
        return List.of(Compare.noneIn(all, ownX), Compare.noneIn(ownX.next(), all.prefixEnd()));
    }

    @Override
    public List<Op> reads() {
        return List.of(Op.get(keys.owner(domain.id)), Op.get(keys.lockShared(domain.id, node)));
    }

    @Override
    public void committed(long revision, List<OpResult> results) {
        if (keepShared) {
            keptShared(revision, unowned ? 0 : revision);
        } else {
            gone(revision);
        }
    }

    @Override
    public void committedEarlier(long revision, List<OpResult> reads) {
        if (!keepShared) {
            gone(revision);
            return;
        }
        // While our S is there nobody can have changed owner:, so what was read is what we put.
        KeyValue owner = ((OpResult.Ranged) reads.get(0)).only();
        KeyValue shared = ((OpResult.Ranged) reads.get(1)).only();
        keptShared(shared == null ? revision : shared.modRevision(), owner == null ? 0 : owner.modRevision());
    }

    private void keptShared(long lockRevision, long ownerRevision) {
        if (domain.held != from) {
            // The answer came after the session had ended, and the token with it.
            finish(lockRevision);
            return;
        }
        domain.held = Mode.SHARED;
        domain.lockRevision = lockRevision;
        domain.ownerRevision = ownerRevision;
        domain.othersOpen.clear();
        finish(lockRevision);
    }

    private void gone(long revision) {
        domain.held = Mode.NONE;
        domain.clearContents();
        finish(revision);
    }

    private void finish(long revision) {
        for (Domain.WantOf w : to) {
            domain.wants.remove(w.node(), w);
        }
        domain.likelyElsewhere = !to.isEmpty();
        domain.givenRevision = revision;
        domain.giving = false;
        done = true;
        monitor.changed();
    }

    @Override
    public void committedAndLost() {
        domain.giving = false;
        done = true;
        monitor.changed();
    }

    @Override
    public boolean sessionLost() {
        domain.giving = false;
        dropped = true;
        monitor.changed();
        return false;
    }

    /** Settled one way or the other. Monitor held. */
    boolean settled() {
        return done || dropped;
    }
}
