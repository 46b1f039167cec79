package io.etcfs.core.token;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.clock.Monitor;
import io.etcfs.core.domain.Dirent;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.domain.Part;
import io.etcfs.core.fault.Rare;
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
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;

/** What etcd has of a token, and of the domain that it covers: read, and decoded. Without the monitor. */
final class TokenRecords {
    /** Names, and inodes, that the transaction itself reads: what most directories have. Where there are more, the domain is cached in part. */
    private static final int PAGE = 2000;
    /** Of inodes that are asked for one by one: so many in a transaction. */
    private static final int INODES_AT_ONCE = 100;
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
            ops.add(Op.prefix(keys.direntsOf(res), page()));
            ops.add(Op.prefix(keys.inodesOf(res), page()));
            ops.add(Op.prefix(keys.remaindersOf(res), 0));
        }
        return ops;
    }

    static int page() {
        return Rare.DIRECTORIES_IN_PART.on() ? 1 : PAGE;
    }

    /**
     * @param entries by hash: in the order in which they are kept, so that a million can be taken over at once
     * @param part    null: that is all
     */
    record Contents(SortedMap<Long, Dirent> entries, List<Inode> inodes, Map<Long, Long> remainders, Part part) {}

    long lastPageNs() {
        return lastPageNs;
    }

    /**
     * Decodes what the transaction read. Where the answer was cut it is a part of the domain, the directory's own inode and the {@code needed} ones included, if they are
     * there. Of a directory that was removed all is read: what lives in its domain is counted by what is cached. The token is ours: nothing changes meanwhile.
     */
    Contents contents(long res, TxnResult r, int at, List<Long> needed) {
        OpResult.Ranged names = r.ranged(at + 2);
        OpResult.Ranged inodes = r.ranged(at + 3);
        if (names.more() || inodes.more()) {
            List<Long> wanted = new ArrayList<>(List.of(res));
            wanted.addAll(needed);
            Map<Long, Inode> found = new LinkedHashMap<>();
            inodes.keyValues().forEach(kv -> {
                Keys.InodeKey k = keys.parseInode(kv.key());
                found.put(k.ino(), Inode.decode(k.ino(), k.home(), kv.value()));
            });
            Part part = new Part(names.count(), inodes.count());
            part.allInodes = !inodes.more();
            if (inodes.more()) {
                wanted.removeIf(found::containsKey);
                for (int i = 0; i < wanted.size(); i += INODES_AT_ONCE) {
                    List<Long> some = wanted.subList(i, Math.min(wanted.size(), i + INODES_AT_ONCE));
                    List<KeyValue> read = inodes(res, some);
                    for (int k = 0; k < some.size(); k++) {
                        if (read.get(k) == null) {
                            part.gone(some.get(k));
                        } else {
                            found.put(some.get(k), Inode.decode(some.get(k), res, read.get(k).value()));
                        }
                    }
                }
            }
            if (found.containsKey(res)) {
                List<Dirent> page = new ArrayList<>();
                names.keyValues().forEach(kv -> page.add(DirectoryReads.dirent(keys, kv)));
                part.know(0, DirectoryReads.end(page, names.more(), Long.MAX_VALUE));
                SortedMap<Long, Dirent> entries = new TreeMap<>();
                page.forEach(e -> entries.put(e.hash(), e));
                return new Contents(entries, new ArrayList<>(found.values()), remainders(r, at), part);
            }
        }
        return whole(res, r, at);
    }

    /** Inodes at home there, null where there is none. */
    private List<KeyValue> inodes(long res, List<Long> inos) {
        while (true) {
            try {
                if (looks.commit(new Txn(List.of(), inos.stream().map(i -> Op.get(keys.inode(res, i))).toList(), List.of()), Tokens.REQUEST_NS) instanceof Outcome.Committed(TxnResult r)) {
                    lastPageNs = monitor.nowNs();
                    List<KeyValue> found = new ArrayList<>();
                    for (int i = 0; i < inos.size(); i++) {
                        found.add(r.ranged(i).only());
                    }
                    return found;
                }
            } catch (StoreRejectedException e) {
                LOG.log(System.Logger.Level.WARNING, "etcd refuses to read domain {0}: {1}", res, e.getMessage());
            }
            monitor.pause(50_000_000L);
        }
    }

    private Map<Long, Long> remainders(TxnResult r, int at) {
        Map<Long, Long> remainders = new HashMap<>();
        try {
            for (KeyValue kv : r.ranged(at + 4).keyValues()) {
                remainders.put(keys.parseRemainder(kv.key()).ino(), Remainder.parseFrom(kv.value()).getDeadFrom());
            }
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record of a remainder: " + e.getMessage());
        }
        return remainders;
    }

    /** Decodes what the transaction read, and reads on where the answer was cut. */
    private Contents whole(long res, TxnResult r, int at) {
        SortedMap<Long, Dirent> entries = new TreeMap<>();
        List<Inode> inodes = new ArrayList<>();
        try {
            readOn(r.ranged(at + 2), keys.direntsOf(res), r.revision(), kv -> {
                Dirent e = DirectoryReads.dirent(keys, kv);
                entries.put(e.hash(), e);
            });
            readOn(r.ranged(at + 3), keys.inodesOf(res), r.revision(), kv -> {
                Keys.InodeKey k = keys.parseInode(kv.key());
                inodes.add(Inode.decode(k.ino(), k.home(), kv.value()));
            });
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record in domain " + res + ": " + e.getMessage());
        }
        return new Contents(entries, inodes, remainders(r, at), null);
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
