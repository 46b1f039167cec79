package io.etcfs.core.check;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Lock;
import io.etcfs.core.record.proto.Owner;
import io.etcfs.core.record.proto.SessionRef;
import io.etcfs.core.record.proto.Want;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Who holds, wants and last held which domain: {@code lock:}, {@code owner:}, {@code want:}. Sessions come after all but the wants. */
final class TokenCheck {
    private static final long RENAME_TOKEN = 0;

    private record Held(Keys.LockKey lock, Key key, long session, long lease) {}

    private record Holder(long res, String node, long session) {}

    private final Keys keys;
    private final Findings findings;
    private final NodeCheck nodes;
    private final InodeCheck inodes;
    private final long revision;
    private final Map<Long, List<Held>> held = new LinkedHashMap<>();
    /** X holders that no owner record was seen for. */
    private final Map<Long, Held> unowned = new LinkedHashMap<>();
    /** Owners that have not given X up and have no key of it. */
    private final List<Holder> vanished = new ArrayList<>();
    private final BitSet owned = new BitSet();

    TokenCheck(Keys keys, Findings findings, NodeCheck nodes, InodeCheck inodes, long revision) {
        this.keys = keys;
        this.findings = findings;
        this.nodes = nodes;
        this.inodes = inodes;
        this.revision = revision;
    }

    void lock(KeyValue kv) throws InvalidProtocolBufferException {
        Keys.LockKey key = keys.parseLock(kv.key());
        Held lock = new Held(key, kv.key(), Lock.parseFrom(kv.value()).getSession(), kv.leaseId());
        List<Held> others = held.computeIfAbsent(key.res(), res -> new ArrayList<>(1));
        for (Held other : others) {
            if (key.exclusive() || other.lock.exclusive()) {
                findings.add(Kind.EXCLUSIVE_NOT_ALONE, "token " + key.res() + " is held by " + key.node() + " and by " + other.lock.node() + ", one of them exclusively", kv.key(), other.key);
            }
        }
        others.add(lock);
        if (key.exclusive()) {
            unowned.put(key.res(), lock);
        }
    }

    void owner(KeyValue kv) throws InvalidProtocolBufferException {
        long res = keys.parseOwner(kv.key());
        Owner owner = Owner.parseFrom(kv.value());
        checkFields(kv.key(), owner);
        int home = inodes.homes().place(res);
        if (home >= 0) {
            owned.set(home);
            if (Long.compareUnsigned(inodes.homes().epoch(home), owner.getEpoch()) > 0) {
                long ino = inodes.homes().epochIno(home);
                findings.add(Kind.EXTENT_EPOCH, "an extent of it has epoch " + inodes.homes().epoch(home) + ", its domain " + owner.getEpoch(), keys.inode(res, ino), kv.key());
            }
        } else if (res != RENAME_TOKEN && res != InodeCheck.ROOT) {
            // Without its root the filesystem has another finding.
            findings.add(Kind.OWNER_LEFT, "nothing lives in domain " + Long.toUnsignedString(res), kv.key());
        }
        Held exclusive = unowned.remove(res);
        if (exclusive != null) {
            if (owner.getGivenUp() || !owner.getNode().equals(exclusive.lock.node()) || owner.getSession() != exclusive.session) {
                findings.add(Kind.TOKEN_WITHOUT_OWNER, "the owner on record is " + owner.getNode() + " in session " + owner.getSession() + (owner.getGivenUp() ? ", which gave it up" : "")
                        + "; session " + exclusive.session + " of " + exclusive.lock.node() + " holds X", exclusive.key, kv.key());
            }
        } else if (!owner.getGivenUp()) {
            if (held.containsKey(res)) {
                findings.add(Kind.SHARED_WITH_OWNER, "S is held by " + held.get(res).getFirst().lock.node() + ", and " + owner.getNode() + " has not given X up", held.get(res).getFirst().key, kv.key());
            }
            vanished.add(new Holder(res, owner.getNode(), owner.getSession()));
        }
    }

    private void checkFields(Key key, Owner owner) {
        boolean sessions = wasRevision(owner.getSession());
        for (SessionRef suspect : owner.getSuspectsList()) {
            sessions &= wasRevision(suspect.getSession()) && isNode(suspect.getNode());
        }
        if (!wasRevision(owner.getEpoch()) || !sessions || !isNode(owner.getNode())) {
            findings.add(Kind.OWNER_FIELDS, "epoch " + Long.toUnsignedString(owner.getEpoch()) + ", session " + Long.toUnsignedString(owner.getSession()) + " of '" + owner.getNode() + "', " + owner.getSuspectsCount()
                    + " suspects: not all of it can be at revision " + revision, key);
        } else if (Long.compareUnsigned(owner.getGeneration(), nodes.generation(owner.getNode())) > 0) {
            findings.add(Kind.OWNER_FIELDS, "generation " + owner.getGeneration() + " of " + owner.getNode() + " is above the node's, " + nodes.generation(owner.getNode()), key);
        }
    }

    private boolean wasRevision(long number) {
        return number > 0 && number <= revision;
    }

    private static boolean isNode(String name) {
        try {
            Keys.requireNodeName(name);
            return true;
        } catch (IllegalArgumentException e) {
            return false;
        }
    }

    void want(KeyValue kv) throws InvalidProtocolBufferException {
        Keys.WantKey key = keys.parseWant(kv.key());
        Want want = Want.parseFrom(kv.value());
        if (want.getLease() != kv.leaseId()) {
            findings.add(Kind.TOKEN_WITHOUT_SESSION, "it names lease " + Long.toHexString(want.getLease()) + " and is on " + Long.toHexString(kv.leaseId()), kv.key());
        } else {
            requireSession(kv.key(), key.node(), want.getSession(), kv.leaseId());
        }
    }

    private void requireSession(Key key, String node, long session, long lease) {
        if (!nodes.hasSession(node, session)) {
            findings.add(Kind.TOKEN_WITHOUT_SESSION, "session " + session + " of " + node + " is gone", key);
        } else if (nodes.sessionLease(node) != lease) {
            findings.add(Kind.TOKEN_WITHOUT_SESSION, "it is on lease " + Long.toHexString(lease) + ", session " + session + " of " + node + " on " + Long.toHexString(nodes.sessionLease(node)), key, keys.session(node));
        }
    }

    void finish() {
        held.values().forEach(locks -> locks.forEach(l -> requireSession(l.key, l.lock.node(), l.session, l.lease)));
        // Where nothing lives there is none.
        unowned.values().removeIf(l -> l.lock.res() != RENAME_TOKEN && inodes.homes().place(l.lock.res()) < 0);
        unowned.values().forEach(l -> findings.add(Kind.TOKEN_WITHOUT_OWNER, "X is held by " + l.lock.node() + ", and there is no owner record", l.key, keys.owner(l.lock.res())));
        for (Holder h : vanished) {
            if (nodes.hasSession(h.node, h.session)) {
                findings.add(Kind.OWNER_WITHOUT_TOKEN, "session " + h.session + " of " + h.node + " is alive, has not given X up, and holds no key of it", keys.owner(h.res));
            }
        }
        Homes homes = inodes.homes();
        for (int i = 0; i < homes.size(); i++) {
            // The root is made without one, by mkfs.
            if (!owned.get(i) && (homes.home(i) != InodeCheck.ROOT || homes.inodes(i) > 1)) {
                findings.add(Kind.OWNER_MISSING, "domain " + homes.home(i) + " has " + homes.inodes(i) + " inodes and no owner record", keys.owner(homes.home(i)));
            }
        }
    }
}
