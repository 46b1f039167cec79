package io.etcfs.core.token;

import io.etcfs.core.domain.Mode;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.record.proto.Owner;
import io.etcfs.core.record.proto.SessionRef;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * The rules of acquiring, as decisions on one consistent reading of {@code owner:}, the lock keys and the wants of a resource. Whatever is decided here, only
 * the transaction's comparisons grant anything.
 */
final class Grant {
    private Grant() {}

    record LockSeen(String node, boolean exclusive, long leaseId, long modRevision) {}

    record WantSeen(String node, Mode mode, long revision) {}

    /**
     * @param revision      of the reading: the new epoch if there has to be one
     * @param owner         the record, or null
     * @param ownerRevision its mod revision, 0 if there is none
     */
    record Seen(long revision, Owner owner, long ownerRevision, List<LockSeen> locks, List<WantSeen> wants) {
        LockSeen own(String node, boolean exclusive) {
            for (LockSeen l : locks) {
                if (l.node().equals(node) && l.exclusive() == exclusive) {
                    return l;
                }
            }
            return null;
        }

        boolean wants(String node) {
            return wants.stream().anyMatch(w -> w.node().equals(node));
        }
    }

    sealed interface Decision {}

    /** Our key is there already, put by a holder that handed it to us (or by a request whose answer was lost). */
    record Adopt(Mode mode, long lockRevision) implements Decision {}

    /** Others hold it: say what is wanted and wait. */
    record Wait(Mode mode) implements Decision {}

    /** Nothing may be taken from a holder that vanished in the same outage as we did, until it had time to take back. */
    record Grace() implements Decision {}

    /** A session under which the device may have been written to, and whether a newer one of its node shows that all such writes have ended. */
    record Left(SessionRef session, boolean ended) {}

    /**
     * Ask for it. {@code owner} is what to put with an EXCLUSIVE token; {@code left} the holder that it is taken from without having been given up, and the
     * suspects that are suspects no more.
     */
    record Ask(Mode mode, Owner owner, List<Left> left) implements Decision {}

    /**
     * @param endedBefore for the owner's node and those among the suspects, as far as read, the revision below which their sessions have ended: no write under them is
     *                    on its way any more
     */
    static Decision decide(Seen seen, Mode wanted, Mode held, String node, long session, long lease, long generation, boolean inGrace,
            Map<String, Long> endedBefore) {
        LockSeen ownX = seen.own(node, true);
        LockSeen ownS = seen.own(node, false);
        if (ownX != null && ownX.leaseId() == lease && !held.atLeast(Mode.EXCLUSIVE)) {
            return new Adopt(Mode.EXCLUSIVE, ownX.modRevision());
        }
        Owner owner = seen.owner();
        boolean vanished = owner != null && !owner.getGivenUp() && !(owner.getNode().equals(node) && owner.getSession() == session);
        boolean holderAlive = false;
        for (LockSeen l : seen.locks()) {
            holderAlive |= l.exclusive();
        }
        // Whatever is shown first has to be what stays: only who holds it EXCLUSIVE can see to that.
        Mode mode = wanted == Mode.SHARED && vanished && !holderAlive && !Fault.SHARED_FROM_VANISHED.on() ? Mode.EXCLUSIVE : wanted;
        if (mode == Mode.SHARED && ownS != null && ownS.leaseId() == lease && held == Mode.NONE) {
            return new Adopt(Mode.SHARED, ownS.modRevision());
        }
        for (LockSeen l : seen.locks()) {
            if (!l.node().equals(node) && (mode == Mode.EXCLUSIVE || l.exclusive())) {
                // A key of one's own that one does not know of is in others' way: two who wait with one each would wait for each other. Known, it can be recalled.
                return held == Mode.NONE && ownS != null && ownS.leaseId() == lease ? new Adopt(Mode.SHARED, ownS.modRevision()) : new Wait(mode);
            }
        }
        boolean foreignVanished = vanished && !owner.getNode().equals(node);
        if (foreignVanished && inGrace) {
            return new Grace();
        }
        if (mode == Mode.SHARED) {
            return new Ask(mode, null, List.of());
        }
        List<SessionRef> suspects = new ArrayList<>();
        List<Left> left = new ArrayList<>();
        if (owner != null) {
            for (SessionRef s : owner.getSuspectsList()) {
                if (hasEnded(s, node, session, endedBefore)) {
                    left.add(new Left(s, true));
                } else {
                    suspects.add(s);
                }
            }
            if (vanished) {
                SessionRef last = SessionRef.newBuilder().setNode(owner.getNode()).setSession(owner.getSession()).build();
                boolean ended = hasEnded(last, node, session, endedBefore);
                left.add(new Left(last, ended));
                if (!ended) {
                    suspects.add(last);
                }
            }
        }
        // Epochs are revisions of etcd: a taker's is the one its reading was made at. Raised also where the holder's writes have ended: it may make one of them again, and
        // has to learn that others have been shown the first.
        long epoch = owner == null || foreignVanished ? seen.revision() : owner.getEpoch();
        return new Ask(mode, Owner.newBuilder().setNode(node).setSession(session).setGeneration(generation).setEpoch(epoch).addAllSuspects(suspects).build(), left);
    }

    private static boolean hasEnded(SessionRef s, String node, long session, Map<String, Long> endedBefore) {
        return endedBefore.getOrDefault(s.getNode(), 0L) > s.getSession() || s.getNode().equals(node) && s.getSession() < session;
    }
}
