package io.etcfs.core.check;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.NodeLocks;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import java.util.ArrayList;
import java.util.List;

/** {@code flock:}: what nodes say of the locks of their processes. Sessions come after them, one inode's records one after the other. */
final class FileLockCheck {
    private record Seen(Key key, String node, NodeLocks locks, long session, long lease) {}

    private final Keys keys;
    private final Findings findings;
    private final NodeCheck nodes;
    private final List<Seen> sessions = new ArrayList<>();
    private final List<Seen> sameInode = new ArrayList<>();
    private long ino;

    FileLockCheck(Keys keys, Findings findings, NodeCheck nodes) {
        this.keys = keys;
        this.findings = findings;
        this.nodes = nodes;
    }

    void record(KeyValue kv) throws InvalidProtocolBufferException {
        Keys.FileLocksKey key = keys.parseFileLocks(kv.key());
        NodeLocks locks = NodeLocks.parseFrom(kv.value());
        if (key.ino() != ino) {
            sameInode.clear();
            ino = key.ino();
        }
        Seen record = new Seen(kv.key(), key.node(), locks, locks.getSession(), kv.leaseId());
        sessions.add(new Seen(kv.key(), key.node(), null, locks.getSession(), kv.leaseId()));
        ranges(record);
        sameInode.forEach(other -> together(record, other));
        sameInode.add(record);
    }

    private void ranges(Seen record) {
        List<NodeLocks.Range> held = record.locks.getHeldList();
        for (int i = 0; i < held.size(); i++) {
            NodeLocks.Range r = held.get(i);
            if (r.getStart() < 0 || r.getEnd() < r.getStart()) {
                findings.add(Kind.FILE_LOCK_RANGE, "a lock from " + Long.toUnsignedString(r.getStart()) + " to " + Long.toUnsignedString(r.getEnd()), record.key);
            } else if (i > 0 && held.get(i - 1).getOwner() == r.getOwner() && held.get(i - 1).getFlock() == r.getFlock() && held.get(i - 1).getEnd() >= r.getStart()) {
                findings.add(Kind.FILE_LOCK_RANGE, "owner " + Long.toHexString(r.getOwner()) + " has byte " + r.getStart() + " in two locks, or not in order", record.key);
            }
        }
    }

    private void together(Seen a, Seen b) {
        if (a.locks.getAlone() && (b.locks.getAlone() || b.locks.getHeldCount() > 0) || b.locks.getAlone() && a.locks.getHeldCount() > 0) {
            findings.add(Kind.FILE_LOCK_CONFLICT, "one of " + a.node + " and " + b.node + " decides alone, and the other has locks", a.key, b.key);
            return;
        }
        for (NodeLocks.Range x : a.locks.getHeldList()) {
            for (NodeLocks.Range y : b.locks.getHeldList()) {
                if ((x.getExclusive() || y.getExclusive()) && x.getFlock() == y.getFlock() && x.getStart() <= y.getEnd() && y.getStart() <= x.getEnd()) {
                    findings.add(Kind.FILE_LOCK_CONFLICT, "byte " + Math.max(x.getStart(), y.getStart()) + " is locked on " + a.node + " and on " + b.node + ", one of them exclusively", a.key, b.key);
                    return;
                }
            }
        }
    }

    void finish() {
        for (Seen s : sessions) {
            if (!nodes.hasSession(s.node, s.session)) {
                findings.add(Kind.FILE_LOCK_WITHOUT_SESSION, "session " + s.session + " of " + s.node + " is gone", s.key);
            } else if (nodes.sessionLease(s.node) != s.lease) {
                findings.add(Kind.FILE_LOCK_WITHOUT_SESSION, "it is on lease " + Long.toHexString(s.lease) + ", the session on " + Long.toHexString(nodes.sessionLease(s.node)), s.key, keys.session(s.node));
            }
        }
    }
}
