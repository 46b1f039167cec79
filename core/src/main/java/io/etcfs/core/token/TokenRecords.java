package io.etcfs.core.token;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.clock.Monitor;
import io.etcfs.core.domain.Dirent;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Owner;
import io.etcfs.core.record.proto.Remainder;
import io.etcfs.core.record.proto.Want;
import io.etcfs.core.session.EndedSessions;
import io.etcfs.core.session.NodeStoppedError;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.OpResult;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.RangeResult;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.TxnResult;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;

/** What etcd has of a token, and of the domain that it covers: read, and decoded. Without the monitor. */
final class TokenRecords {
    /** Names, and inodes, that the transaction itself reads: what most directories have. */
    static final int PAGE = 2000;
    private static final int LARGE_PAGE = 10_000;
    private static final int SMALL_PAGE = 500;
    private static final System.Logger LOG = System.getLogger(Tokens.class.getName());

    private final Monitor monitor;
    private final MetadataStore store;
    private final Convoy looks;
    private final Keys keys;
    private final EndedSessions endedSessions;
    /** When a page of what a token covers came last. */
    private volatile long lastPageNs = Long.MIN_VALUE / 2;

    TokenRecords(Parts parts) {
        this.monitor = parts.monitor();
        this.store = parts.store();
        this.looks = parts.looks();
        this.keys = parts.keys();
        this.endedSessions = new EndedSessions(store, keys);
    }

    /** One consistent reading of a resource, or null if etcd does not answer. */
    Grant.Seen look(long res) {
        try {
            Outcome o = looks.commit(new Txn(List.of(), lookReads(res), List.of()), Tokens.REQUEST_NS);
            return o instanceof Outcome.Committed(TxnResult r) ? seen(r, 0) : null;
        } catch (StoreRejectedException e) {
            LOG.log(System.Logger.Level.WARNING, "etcd refuses to read token {0}: {1}", res, e.getMessage());
            return null;
        }
    }

    /** What {@link #seen} decodes. */
    List<Op> lookReads(long res) {
        return List.of(Op.get(keys.owner(res)), Op.prefix(keys.locksOf(res), 0), Op.prefix(keys.wantsOf(res), 0));
    }

    Grant.Seen seen(TxnResult r, int at) {
        try {
            KeyValue owner = r.ranged(at).only();
            List<Grant.LockSeen> locks = new ArrayList<>();
            for (KeyValue kv : r.ranged(at + 1).keyValues()) {
                Keys.LockKey k = keys.parseLock(kv.key());
                locks.add(new Grant.LockSeen(k.node(), k.exclusive(), kv.leaseId(), kv.modRevision()));
            }
            List<Grant.WantSeen> wants = new ArrayList<>();
            for (KeyValue kv : r.ranged(at + 2).keyValues()) {
                wants.add(new Grant.WantSeen(keys.parseWant(kv.key()).node(), mode(Want.parseFrom(kv.value())), kv.createRevision()));
            }
            return new Grant.Seen(r.revision(), owner == null ? null : Owner.parseFrom(owner.value()), owner == null ? 0 : owner.modRevision(), locks, wants);
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged token record: " + e.getMessage());
        }
    }

    static Mode mode(Want want) {
        return want.getKind() == Want.Kind.EXCLUSIVE ? Mode.EXCLUSIVE : Mode.SHARED;
    }

    /** Suspects, and a holder that vanished, are cleared where their sessions have ended: see {@link EndedSessions}. */
    Map<String, Long> endedBefore(Grant.Seen seen) {
        if (seen.owner() == null) {
            return Map.of();
        }
        Set<String> nodes = new TreeSet<>();
        seen.owner().getSuspectsList().forEach(s -> nodes.add(s.getNode()));
        if (!seen.owner().getGivenUp() && seen.locks().stream().noneMatch(Grant.LockSeen::exclusive)) {
            nodes.add(seen.owner().getNode());
        }
        return endedBefore(nodes);
    }

    /** For each node the revision below which its sessions have ended, as far as there is any and etcd answers. */
    Map<String, Long> endedBefore(Set<String> nodes) {
        Map<String, Long> before = new HashMap<>();
        for (String name : nodes) {
            try {
                long ended = endedSessions.before(name);
                if (ended > 0) {
                    before.put(name, ended);
                }
            } catch (StoreUnavailableException | StoreRejectedException e) {
                LOG.log(System.Logger.Level.DEBUG, "sessions of {0} not read: {1}", name, e.getMessage());
            }
        }
        return before;
    }

    List<Op> contentReads(long res, boolean everything) {
        List<Op> ops = new ArrayList<>();
        ops.add(new Op.Range(keys.opensOf(res), keys.opensOf(res).prefixEnd(), 0, true));
        ops.add(Op.prefix(keys.wantsOf(res), 0));
        if (everything) {
            ops.add(Op.prefix(keys.direntsOf(res), PAGE));
            ops.add(Op.prefix(keys.inodesOf(res), PAGE));
            ops.add(Op.prefix(keys.remaindersOf(res), 0));
        }
        return ops;
    }

    /** @param entries by hash: in the order in which they are kept, so that a million can be taken over at once */
    record Contents(SortedMap<Long, Dirent> entries, List<Inode> inodes, Map<Long, Long> remainders) {}

    long lastPageNs() {
        return lastPageNs;
    }

    /** Decodes what the transaction read, and reads on where the answer was cut. The token is ours: nothing changes meanwhile. */
    Contents contents(long res, TxnResult r, int at) {
        SortedMap<Long, Dirent> entries = new TreeMap<>();
        List<Inode> inodes = new ArrayList<>();
        Map<Long, Long> remainders = new HashMap<>();
        try {
            readOn(r.ranged(at + 2), keys.direntsOf(res), r.revision(), kv -> {
                Keys.DirentKey k = keys.parseDirent(kv.key());
                io.etcfs.core.record.proto.Dirent v = io.etcfs.core.record.proto.Dirent.parseFrom(kv.value());
                entries.put(k.hash(), new Dirent(k.name(), k.hash(), v.getInode(), v.getType(), v.getHome(), 0));
            });
            readOn(r.ranged(at + 3), keys.inodesOf(res), r.revision(), kv -> {
                Keys.InodeKey k = keys.parseInode(kv.key());
                inodes.add(Inode.decode(k.ino(), k.home(), kv.value()));
            });
            for (KeyValue kv : r.ranged(at + 4).keyValues()) {
                remainders.put(keys.parseRemainder(kv.key()).ino(), Remainder.parseFrom(kv.value()).getDeadFrom());
            }
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record in domain " + res + ": " + e.getMessage());
        }
        return new Contents(entries, inodes, remainders);
    }

    private interface Decoder {
        void take(KeyValue kv) throws InvalidProtocolBufferException;
    }

    /** Decodes page by page, so that no more than one is there undecoded. etcd counts all that is left of the range for each page: few and large ones. */
    private void readOn(OpResult.Ranged first, Key prefix, long revision, Decoder decoder) throws InvalidProtocolBufferException {
        List<KeyValue> page = first.keyValues();
        boolean more = first.more();
        int size = LARGE_PAGE;
        while (true) {
            for (KeyValue kv : page) {
                decoder.take(kv);
            }
            if (!more) {
                return;
            }
            Key from = page.getLast().key().next();
            page = null;
            while (page == null) {
                try {
                    RangeResult read = store.range(from, prefix.prefixEnd(), size, false, revision, Tokens.REQUEST_NS);
                    page = read.keyValues();
                    more = read.more();
                    lastPageNs = monitor.nowNs();
                } catch (StoreUnavailableException e) {
                    // Too much for the time there is, perhaps.
                    size = Math.max(SMALL_PAGE, size / 2);
                    monitor.pause(50_000_000L);
                } catch (StoreRejectedException e) {
                    // The revision was compacted: under the token the newest is the same.
                    revision = 0;
                }
            }
        }
    }
}
