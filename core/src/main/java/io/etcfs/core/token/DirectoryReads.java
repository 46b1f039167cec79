package io.etcfs.core.token;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.clock.Monitor;
import io.etcfs.core.clock.Tasks;
import io.etcfs.core.domain.Dirent;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.domain.Part;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.fault.Rare;
import io.etcfs.core.record.Keys;
import io.etcfs.core.session.NodeStoppedError;
import io.etcfs.core.session.Session;
import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.OpResult;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.TxnResult;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.LongSupplier;

/**
 * What is not cached of a domain that is cached in part: read when it is needed, by a task of its own while whoever needs it is {@link Blocked}.
 *
 * <p>Each read is one transaction that compares this node's session and its token key, and is taken in only if nothing was dropped from the domain's cache since it was
 * sent. What is known here by then is newer than what was read, as only this node can have changed it: so changes that are not published are neither lost nor undone.
 * Monitor held, but in the tasks.
 */
public final class DirectoryReads {
    /** Records of a listing, and of what is read on in the background. */
    private static final int LISTING = 2000;
    private static final int PAGE = 10_000;
    private static final int SMALL_PAGE = 500;
    /** Inodes that one transaction reads, and that are read ahead of a listing. */
    private static final int INODES_AT_ONCE = 100;
    private static final int INODES_AHEAD = 800;
    /** Who asks for so many pieces will ask for more: all of it is read, if there is memory for that. */
    private static final int FILL_AFTER = 16;
    private static final long NO_FILL_NS = 10_000_000_000L;
    private static final long WHOLE_NS = 20_000_000_000L;
    /** A recall waits for reads that begin within so long of its own beginning: who waited for the token has to come to use it. */
    private static final long PIN_NS = Recaller.MAX_HOLD_NS;
    private static final long RETRY_NS = 50_000_000L;
    private static final long LAST_HASH = Long.MAX_VALUE - 1;
    private static final System.Logger LOG = System.getLogger(DirectoryReads.class.getName());

    private final Monitor monitor;
    private final MetadataStore store;
    private final Tasks tasks;
    private final Session session;
    private final Keys keys;
    private final String node;
    private final LongSupplier roomBytes;
    private final Set<Read> underWay = new HashSet<>();
    private final Set<Long> inodesUnderWay = new HashSet<>();
    private long reads;
    private volatile long lastPageNs = Long.MIN_VALUE / 2;

    /** @param roomBytes how much more may be cached. Asked with the monitor held */
    DirectoryReads(Parts parts, LongSupplier roomBytes) {
        this.monitor = parts.monitor();
        this.store = parts.store();
        this.tasks = parts.tasks();
        this.session = parts.session();
        this.keys = parts.keys();
        this.node = parts.node();
        this.roomBytes = roomBytes;
    }

    private enum What { NAME, NAMES, INODES }

    private record Read(long domain, What what, long number) {}

    private interface Work {
        /** False: it came to nothing. Without the monitor. */
        boolean done();
    }

    /** How many transactions were needed for what was not cached. */
    long reads() {
        return reads;
    }

    /** When a page of a domain that an operation waits for as a whole came last. */
    long lastPageNs() {
        return lastPageNs;
    }

    // ---- what operations need, monitor held

    /** It is known from here on what name has the hash, or {@link Blocked}. */
    public void requireName(Domain d, long hash) {
        if (!d.knowsName(hash)) {
            missed(d);
            start(d, new Read(d.id, What.NAME, hash), true, () -> readNames(d, hash, hash >= LAST_HASH ? Long.MAX_VALUE : hash + 1, 0));
            throw Blocked.INSTANCE;
        }
    }

    /** The inode, or null: there is none, or {@link Blocked}. */
    public Inode inode(Domain d, long ino) {
        Inode i = d.inodes.get(ino);
        if (i == null && !d.knowsInode(ino)) {
            missed(d);
            startInodes(d, List.of(ino), true);
            throw Blocked.INSTANCE;
        }
        return i;
    }

    /**
     * Whether the directory has no name, or {@link Blocked}. If it has none it is cached as a whole from here on: it is about to be removed, and what lives in its domain is
     * counted then by what is cached.
     */
    public boolean isEmpty(Domain d) {
        if (!d.entries.isEmpty()) {
            return false;
        }
        if (d.part != null) {
            d.wholeUntilNs = monitor.nowNs() + WHOLE_NS;
            long from = d.part.knownFrom(0);
            if (from == Long.MAX_VALUE) {
                fill(d);
            } else {
                names(d, from, true);
            }
            throw Blocked.INSTANCE;
        }
        d.wholeUntilNs = monitor.nowNs() + WHOLE_NS;
        return true;
    }

    /**
     * Of a listing that goes on at that hash: the hash before which all names are cached, {@link Long#MAX_VALUE} if that is all to the end. {@link Blocked} if that does
     * not even have one name. What comes next is asked for ahead.
     *
     * @param withInodes the listing shows attributes: the first inode is known, too
     */
    public long listed(Domain d, long from, boolean withInodes) {
        if (d.part == null) {
            return Long.MAX_VALUE;
        }
        long end = d.part.knownFrom(Math.min(from, LAST_HASH));
        int ahead = 0;
        boolean lacksFirst = false;
        List<Long> missing = new ArrayList<>();
        for (Dirent e : d.entries.tailMap(from, true).values()) {
            if (e.hash() >= end && end != Long.MAX_VALUE || ahead == ahead()) {
                break;
            }
            if (withInodes && lacks(d, e)) {
                missing.add(e.ino());
                lacksFirst |= ahead == 0;
            }
            ahead++;
        }
        if (ahead < ahead() && end != Long.MAX_VALUE) {
            missed(d);
            names(d, end, ahead == 0);
        }
        if (!missing.isEmpty()) {
            missed(d);
            missing.removeIf(inodesUnderWay::contains);
            for (int i = 0; i < missing.size(); i += INODES_AT_ONCE) {
                startInodes(d, missing.subList(i, Math.min(missing.size(), i + INODES_AT_ONCE)), lacksFirst);
            }
        }
        if (ahead == 0 && end != Long.MAX_VALUE || lacksFirst) {
            throw Blocked.INSTANCE;
        }
        return end;
    }

    private static int ahead() {
        return Rare.DIRECTORIES_IN_PART.on() ? 2 : INODES_AHEAD;
    }

    /** The name's inode is at home in the domain and not known. */
    public boolean lacks(Domain d, Dirent e) {
        return e.home() == d.id && !d.knowsInode(e.ino());
    }

    private void names(Domain d, long from, boolean awaited) {
        long end = d.part.nextKnown(from);
        start(d, new Read(d.id, What.NAMES, from), awaited, () -> readNames(d, from, end, Rare.DIRECTORIES_IN_PART.on() ? 2 : LISTING));
    }

    private void startInodes(Domain d, List<Long> inos, boolean awaited) {
        List<Long> some = List.copyOf(inos);
        if (some.isEmpty() || underWay.contains(new Read(d.id, What.INODES, some.getFirst()))) {
            return;
        }
        inodesUnderWay.addAll(some);
        start(d, new Read(d.id, What.INODES, some.getFirst()), awaited, () -> {
            try {
                return readInodes(d, some);
            } finally {
                monitor.with(() -> inodesUnderWay.removeAll(some));
            }
        });
    }

    private void start(Domain d, Read read, boolean awaited, Work work) {
        if (!underWay.add(read)) {
            return;
        }
        boolean pinned = awaited && (!d.recalling || monitor.nowNs() - d.lastRecalledNs < PIN_NS);
        if (pinned) {
            d.pins++;
        }
        tasks.start("read-" + read.what + "-" + d.id, () -> {
            boolean done = false;
            try {
                done = work.done();
                if (!done) {
                    monitor.pause(RETRY_NS);
                }
            } finally {
                monitor.lock();
                try {
                    underWay.remove(read);
                    if (pinned) {
                        d.pins--;
                        d.unserved = true;
                        d.notBeforeNs = monitor.nowNs() + Recaller.MIN_HOLD_NS;
                    }
                    monitor.changed();
                } finally {
                    monitor.unlock();
                }
            }
        });
    }

    // ---- reading, without the monitor

    private interface Taker {
        /** Monitor held; the token is the one under which it was read. */
        void take();
    }

    private interface Decoder {
        Taker decode(TxnResult r) throws InvalidProtocolBufferException;
    }

    /** One transaction under the token. False: it has no answer, the token is not what it was, or something was dropped since it was sent. */
    private boolean read(Domain d, List<Op> ops, Decoder decoder) {
        List<Compare> compares = new ArrayList<>();
        long dropped;
        monitor.lock();
        try {
            if (d.part == null || !held(d) || !session.trusted()) {
                return false;
            }
            reads++;
            dropped = d.dropped;
            if (!Fault.READ_WITHOUT_TOKEN.on()) {
                compares.addAll(session.guard().compares());
                // Whatever its revision: a request for it that comes late puts it once more.
                compares.add(Compare.value(d.held == Mode.EXCLUSIVE ? keys.lockExclusive(d.id, node) : keys.lockShared(d.id, node), Handover.lock(session.revision())));
            }
        } finally {
            monitor.unlock();
        }
        try {
            if (!(store.commit(new Txn(compares, ops, List.of()), Tokens.REQUEST_NS) instanceof Outcome.Committed(TxnResult r))) {
                return false;
            }
            Taker taker = decoder.decode(r);
            monitor.lock();
            try {
                if (d.part == null || !held(d) || d.dropped != dropped && !Fault.READ_WITHOUT_TOKEN.on()) {
                    return false;
                }
                taker.take();
                monitor.changed();
                return true;
            } finally {
                monitor.unlock();
            }
        } catch (StoreRejectedException e) {
            LOG.log(System.Logger.Level.WARNING, "etcd refuses to read domain {0}: {1}", d.id, e.getMessage());
            return false;
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record in domain " + d.id + ": " + e.getMessage());
        }
    }

    private static boolean held(Domain d) {
        return d.held != Mode.NONE && d.loaded && !d.takeBack;
    }

    /** Names from a hash on to before another, up to so many; 0: all. */
    private boolean readNames(Domain d, long from, long end, int limit) {
        Key to = end == Long.MAX_VALUE ? keys.direntsOf(d.id).prefixEnd() : keys.direntFrom(d.id, end);
        return read(d, List.of(new Op.Range(keys.direntFrom(d.id, from), to, limit, false)), r -> {
            OpResult.Ranged page = r.ranged(0);
            List<Dirent> names = new ArrayList<>();
            for (KeyValue kv : page.keyValues()) {
                names.add(dirent(keys, kv));
            }
            long known = end(names, page.more(), end);
            return () -> d.take(names, from, known);
        });
    }

    private boolean readInodes(Domain d, List<Long> inos) {
        return read(d, inos.stream().map(i -> Op.get(keys.inode(d.id, i))).toList(), r -> {
            List<Inode> found = new ArrayList<>();
            List<Long> gone = new ArrayList<>();
            for (int i = 0; i < inos.size(); i++) {
                KeyValue kv = r.ranged(i).only();
                if (kv == null) {
                    gone.add(inos.get(i));
                } else {
                    found.add(Inode.decode(inos.get(i), d.id, kv.value()));
                }
            }
            return () -> {
                found.forEach(d::take);
                // One that was made here and is not published is cached.
                gone.stream().filter(i -> !d.inodes.containsKey(i)).forEach(d.part::gone);
            };
        });
    }

    static Dirent dirent(Keys keys, KeyValue kv) {
        try {
            Keys.DirentKey k = keys.parseDirent(kv.key());
            io.etcfs.core.record.proto.Dirent v = io.etcfs.core.record.proto.Dirent.parseFrom(kv.value());
            return new Dirent(k.name(), k.hash(), v.getInode(), v.getType(), v.getHome(), 0);
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record of a name: " + e.getMessage());
        }
    }

    /** Before which hash a page has all names: where it was cut the one after its last. The last two hashes of all count as one. */
    static long end(List<Dirent> page, boolean more, long end) {
        return more ? Math.min(page.getLast().hash(), LAST_HASH - 1) + 1 : end;
    }

    // ---- all of it

    private void missed(Domain d) {
        int after = Rare.DIRECTORIES_IN_PART.on() ? 2 : FILL_AFTER;
        if (++d.part.misses > after && !d.part.filling && monitor.nowNs() >= d.part.noFillBeforeNs) {
            if (Domain.bytes(d.part.names0, d.part.inodes0) <= roomBytes.getAsLong()) {
                fill(d);
            } else {
                d.part.noFillBeforeNs = monitor.nowNs() + noFillNs();
            }
        }
    }

    /** In tests it is read on again and again: while names change. */
    private static long noFillNs() {
        return Rare.DIRECTORIES_IN_PART.on() ? NO_FILL_NS / 200 : NO_FILL_NS;
    }

    /** Reads the rest in the background, for as long as it is in part and nothing is dropped. */
    private void fill(Domain d) {
        Part part = d.part;
        if (part.filling) {
            return;
        }
        part.filling = true;
        long dropped = d.dropped;
        // Smaller where that was too much for the time there is, perhaps.
        int[] page = {Rare.DIRECTORIES_IN_PART.on() ? 2 : PAGE};
        tasks.start("fill-" + d.id, () -> {
            try {
                while (monitor.with(() -> more(d, dropped)) && !fillNames(d, page)) {
                    // Page by page.
                }
                Key[] from = {keys.inodesOf(d.id)};
                while (from[0] != null && monitor.with(() -> more(d, dropped))) {
                    if (!fillInodes(d, from, page[0], dropped)) {
                        page[0] = Math.max(SMALL_PAGE, page[0] / 2);
                        monitor.pause(RETRY_NS);
                    }
                }
            } finally {
                monitor.lock();
                try {
                    part.filling = false;
                    part.noFillBeforeNs = monitor.nowNs() + noFillNs();
                    monitor.changed();
                } finally {
                    monitor.unlock();
                }
            }
        });
    }

    private boolean more(Domain d, long dropped) {
        return d.part != null && d.dropped == dropped && held(d) && session.live() && (d.wholeUntilNs > monitor.nowNs() || roomBytes.getAsLong() > 0);
    }

    /** True: all names are known. */
    private boolean fillNames(Domain d, int[] page) {
        long from;
        long end;
        monitor.lock();
        try {
            if (d.part == null || d.part.allNames()) {
                return true;
            }
            from = d.part.knownFrom(0);
            end = d.part.nextKnown(from);
        } finally {
            monitor.unlock();
        }
        if (!readNames(d, from, end, page[0])) {
            page[0] = Math.max(SMALL_PAGE, page[0] / 2);
            monitor.pause(RETRY_NS);
        }
        return false;
    }

    /** @param dropped as it was before the first page */
    private boolean fillInodes(Domain d, Key[] from, int limit, long dropped) {
        return read(d, List.of(new Op.Range(from[0], keys.inodesOf(d.id).prefixEnd(), limit, false)), r -> {
            OpResult.Ranged page = r.ranged(0);
            List<Inode> inodes = new ArrayList<>();
            for (KeyValue kv : page.keyValues()) {
                Keys.InodeKey k = keys.parseInode(kv.key());
                inodes.add(Inode.decode(k.ino(), k.home(), kv.value()));
            }
            Key next = page.more() ? page.keyValues().getLast().key().next() : null;
            return () -> {
                inodes.forEach(d::take);
                from[0] = next;
                if (d.wholeUntilNs > monitor.nowNs()) {
                    lastPageNs = monitor.nowNs();
                }
                if (next == null) {
                    d.allInodesTaken(dropped);
                }
            };
        });
    }
}
