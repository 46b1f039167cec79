package io.etcfs.core.lock;

import io.etcfs.core.fs.Errno;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * What this node knows and does about the locks of one inode. Does no I/O: {@link #plan} says what has to go to etcd, and what became of that is told back.
 * Under the node's monitor.
 *
 * <pre>
 *   own record in etcd     who decides                                                        how it changes
 *   none                   nobody here                                                        the first request puts it, alone if nobody has one
 *   alone                  this node, in memory, while the session is trusted                 another node puts a record: → shared, with all that is held
 *   shared                 each change is a transaction that compares the records of others   nobody else has a record: the next change makes it alone
 * </pre>
 *
 * {@link #held} is what processes here were told. The record has all of that at any time: a grant goes to the record first, a lock that is given up leaves it
 * last. A request is answered only once a transaction with it is known to have committed; till then it can be withdrawn without a trace.
 */
final class FileLocks {
    /** A request leaves a free lock to a process of another node that has waited longer, for that long. */
    static final long YIELD_NS = 10_000_000L;
    /** How long a close may be ahead of the kernel's RELEASE: till then, a lock of the file that was closed does not make a request fail. */
    static final long RELEASE_LAG_NS = 20_000_000L;
    /** Who waits for others looks again after that time, whatever it has heard, and says again that it waits. */
    static final long LOOK_AGAIN_NS = 1_000_000_000L;
    /** An unused record is deleted after that. A shared one is kept for a moment, so that two nodes that take turns stay in that mode. */
    static final long SHARED_LINGER_NS = 2_000_000_000L;
    static final long ALONE_LINGER_NS = 10_000_000_000L;
    /** That one node has on one inode: a record has to fit into a transaction. */
    private static final int MAX_LOCKS = 20_000;
    /** Of those that a node decides about alone, so many are told to people. */
    private static final int MAX_TOLD = 1_000;

    final long ino;
    final LockTable held = new LockTable();
    /** Through which open files an owner took its locks. */
    private final Map<LockOwner, Set<Long>> handles = new HashMap<>();
    /** When such a file was last closed by somebody who had it open, though it may be open elsewhere (ns of the clock). */
    private final Map<Long, Long> flushedNs = new HashMap<>();
    final List<LockRequest> pending = new ArrayList<>();
    private final Deadlocks deadlocks;

    boolean alone;
    /** Mod revision of the own record, 0: none. */
    long keyRevision;
    private Published published = Published.NOTHING;
    /** A transaction that was sent may still be carried out. */
    private boolean unsettled;
    /** One was, in this session: the record stays, so that it can't find what it compares again. */
    private boolean sticky;
    /** The other nodes' records as of {@link #viewRevision}; 0: not known. */
    final Map<String, Published> others = new TreeMap<>();
    private long viewRevision;
    private boolean stale;
    /** When the read that the view comes from was begun. */
    private long viewAskedNs = Long.MIN_VALUE / 2;
    private long putNs;
    /** Counts what processes gave up; and as of which count that is known to have left etcd. */
    private long version;
    private long publishedVersion;
    /** A task sees to it. */
    boolean working;
    long usedNs;
    private boolean retiring;
    private boolean telling;
    private Published told = Published.NOTHING;

    FileLocks(long ino, Deadlocks deadlocks) {
        this.ino = ino;
        this.deadlocks = deadlocks;
    }

    /** What goes to etcd next. */
    sealed interface Plan {
        record Nothing() implements Plan {}

        /** Nothing before that time, unless something changes. */
        record Later(long untilNs) implements Plan {}

        /** Read all records of the inode. */
        record Read() implements Plan {}

        /** Put the own record if it is as it was, and if the other nodes' ones are. Then these requests are granted. */
        record Put(Published value, Others others, List<LockRequest> grants, long version) implements Plan {}

        /** Delete the own record if it is as it was. */
        record Delete(long version) implements Plan {}
    }

    /** What a put compares of the other nodes' records. */
    enum Others { ANY, AS_SEEN, NONE }

    /** Who waits for whom, over all inodes. */
    interface Deadlocks {
        boolean closedBy(LockRequest waiting);
    }

    // ---- what processes ask for

    /** Takes up what can be decided without etcd. True: something was decided. */
    boolean decideAlone(long nowNs) {
        if (!alone || unsettled || pending.isEmpty()) {
            return false;
        }
        boolean any = false;
        boolean again;
        do {
            again = false;
            for (Iterator<LockRequest> i = pending.iterator(); i.hasNext(); ) {
                LockRequest r = i.next();
                HeldLock inTheWay = held.conflict(r.wanted);
                if (r.kind == LockRequest.Kind.TEST) {
                    r.tested(inTheWay, true);
                } else if (inTheWay == null) {
                    if (held.size() >= MAX_LOCKS) {
                        r.refuse(Errno.ENOLCK);
                    } else {
                        granted(r);
                    }
                } else {
                    again |= giveUpToConvert(r);
                    refuseLocally(r, inTheWay, nowNs);
                }
                if (r.answered()) {
                    i.remove();
                    any = true;
                }
            }
        } while (again);
        publishedVersion = version;
        return any;
    }

    private void refuseLocally(LockRequest r, HeldLock inTheWay, long nowNs) {
        if (r.kind == LockRequest.Kind.TRY) {
            if (releaseExpectedUntil(inTheWay.owner()) <= nowNs) {
                r.refuse(inTheWay, true);
            }
        } else if (!r.waits) {
            // A cycle of waits within the node is closed by the last wait, and never later.
            r.waits = true;
            if (deadlocks.closedBy(r)) {
                r.refuse(Errno.EDEADLK);
            }
        }
    }

    private void granted(LockRequest r) {
        held.set(r.wanted);
        handles.computeIfAbsent(r.wanted.owner(), o -> new HashSet<>()).add(r.handle);
        r.grant();
    }

    /** flock(2) gives up what it has before it takes the other kind, as Linux does. */
    private boolean giveUpToConvert(LockRequest r) {
        if (r.wanted.owner().flock() && held.has(r.wanted.owner())) {
            held.clear(r.wanted.owner());
            version++;
            return true;
        }
        return false;
    }

    /** Until when a RELEASE may be on its way that frees the owner's locks; long ago: none is. */
    private long releaseExpectedUntil(LockOwner owner) {
        long until = Long.MIN_VALUE;
        for (long handle : handles.getOrDefault(owner, Set.of())) {
            Long flushed = flushedNs.get(handle);
            if (flushed != null) {
                until = Math.max(until, flushed + RELEASE_LAG_NS);
            }
        }
        return until;
    }

    /** The owner gives up these bytes. Returns what {@link #gone} takes. */
    long unlock(LockOwner owner, long start, long end) {
        if (held.has(owner)) {
            held.clear(owner, start, end);
            version++;
            forgetHandles(owner);
        }
        return version;
    }

    private void forgetHandles(LockOwner owner) {
        if (!held.has(owner)) {
            handles.remove(owner);
        }
    }

    /** Somebody closed the file; others may have it open. */
    void flushed(long handle, long nowNs) {
        if (handles.values().stream().anyMatch(through -> through.contains(handle))) {
            flushedNs.put(handle, nowNs);
        }
    }

    /** Nobody has it open any more: what is left of locks that were taken through it only goes. */
    void released(long handle) {
        flushedNs.remove(handle);
        handles.entrySet().removeIf(e -> {
            if (!e.getValue().remove(handle) || !e.getValue().isEmpty()) {
                return false;
            }
            held.clear(e.getKey());
            version++;
            return true;
        });
    }

    /** What was given up until then is not in etcd any more. A count that is not reached yet is of what was forgotten since, as all of it was gone. */
    boolean gone(long version) {
        if (alone && !unsettled) {
            publishedVersion = this.version;
        }
        return publishedVersion >= version || version > this.version;
    }

    /** All that was given up has left etcd. */
    boolean settled() {
        return gone(version);
    }

    /** The record went with the session. Returns through which files locks were held. */
    Set<Long> lost() {
        Set<Long> through = new HashSet<>();
        handles.values().forEach(through::addAll);
        handles.clear();
        flushedNs.clear();
        held.clear();
        alone = false;
        keyRevision = 0;
        published = Published.NOTHING;
        unsettled = false;
        sticky = false;
        retiring = false;
        telling = false;
        told = Published.NOTHING;
        others.clear();
        viewRevision = 0;
        stale = false;
        publishedVersion = version;
        return through;
    }

    // ---- what others do

    void seen(Map<String, Published> all, long revision, long askedNs) {
        if (revision >= viewRevision) {
            boolean missed = stale && viewRevision > revision;
            others.clear();
            others.putAll(all);
            viewRevision = revision;
            stale = missed;
        }
        viewAskedNs = Math.max(viewAskedNs, askedNs);
    }

    /** {@code record} null: it is gone. */
    void changed(String node, Published record, long revision) {
        if (viewRevision == 0) {
            stale = true;
        } else if (revision > viewRevision) {
            if (record == null) {
                others.remove(node);
            } else {
                others.put(node, record);
            }
            viewRevision = revision;
        }
    }

    /** Something may have been missed. */
    void distrustView() {
        stale = true;
    }

    // ---- what to do

    boolean idle() {
        return held.isEmpty() && pending.isEmpty();
    }

    /** Nothing is known and nothing in etcd. */
    boolean forgettable() {
        return idle() && keyRevision == 0 && !unsettled && !working && publishedVersion == version;
    }

    /** Its record is to be deleted if nothing happens meanwhile. */
    boolean retire(long nowNs) {
        boolean old = nowNs - usedNs > (alone ? ALONE_LINGER_NS : SHARED_LINGER_NS);
        retiring = old && idle() && keyRevision != 0 && !sticky && !unsettled;
        return retiring;
    }

    /** Whether what it decides alone is to be put into its record: not for other nodes, which ask, but for people. */
    boolean tell() {
        telling = alone && !unsettled && others.isEmpty() && !report().equals(told);
        return telling;
    }

    private Published report() {
        List<HeldLock> some = held.all();
        List<Published.Waiting> waits = waiting();
        return new Published(true, some.subList(0, Math.min(some.size(), MAX_TOLD)), waits.subList(0, Math.min(waits.size(), MAX_TOLD)));
    }

    Plan plan(long nowNs) {
        if (unsettled) {
            return new Plan.Put(new Published(false, held.all(), waiting()), Others.ANY, List.of(), version);
        }
        if (retiring) {
            retiring = false;
            if (idle() && (others.isEmpty() || !alone)) {
                alone = false;
                return new Plan.Delete(version);
            }
        }
        if (alone) {
            if (stale) {
                return new Plan.Read();
            }
            if (!others.isEmpty()) {
                alone = false;
                return new Plan.Put(new Published(false, held.all(), waiting()), Others.ANY, List.of(), version);
            }
            decideAlone(nowNs);
            if (telling) {
                telling = false;
                return new Plan.Put(report(), Others.ANY, List.of(), version);
            }
            return laterOrNothing(releaseExpected(nowNs));
        }
        if (keyRevision == 0 && viewRevision == 0) {
            return pending.isEmpty() ? new Plan.Nothing() : new Plan.Put(Published.ALONE, Others.NONE, List.of(), version);
        }
        return shared(nowNs);
    }

    private static Plan laterOrNothing(long untilNs) {
        return untilNs == Long.MAX_VALUE ? new Plan.Nothing() : new Plan.Later(untilNs);
    }

    private long releaseExpected(long nowNs) {
        long until = Long.MAX_VALUE;
        for (LockRequest r : pending) {
            HeldLock inTheWay = r.kind == LockRequest.Kind.TRY ? held.conflict(r.wanted) : null;
            if (inTheWay != null) {
                until = Math.min(until, Math.max(nowNs, releaseExpectedUntil(inTheWay.owner())));
            }
        }
        return until;
    }

    private Plan shared(long nowNs) {
        if (!pending.isEmpty() && (viewRevision == 0 || stale)) {
            return new Plan.Read();
        }
        if (others.isEmpty() && viewRevision != 0 && !stale && (!pending.isEmpty() || version > publishedVersion)) {
            return new Plan.Put(Published.ALONE, Others.NONE, List.of(), version);
        }
        boolean mustAsk = others.values().stream().anyMatch(Published::alone);
        LockTable next = held.copy();
        List<LockRequest> grants = new ArrayList<>();
        long later = Long.MAX_VALUE;
        boolean read = false;
        if (!mustAsk) {
            for (LockRequest r : List.copyOf(pending)) {
                HeldLock here = next.conflict(r.wanted);
                HeldLock there = conflictElsewhere(r.wanted);
                boolean fresh = viewAskedNs >= r.askedNs;
                if (r.kind == LockRequest.Kind.TEST) {
                    HeldLock answered = held.conflict(r.wanted);
                    if (answered != null || fresh) {
                        r.tested(answered != null ? answered : there, answered != null);
                        pending.remove(r);
                    } else {
                        read = true;
                    }
                } else if (here == null && there == null) {
                    long until = yieldsUntil(r, nowNs);
                    if (until <= nowNs) {
                        grants.add(r);
                        next.set(r.wanted);
                    } else {
                        later = Math.min(later, until);
                    }
                } else {
                    later = Math.min(later, blocked(r, there, fresh, next, nowNs));
                    read |= !fresh && there != null && r.kind == LockRequest.Kind.TRY;
                    if (r.answered()) {
                        pending.remove(r);
                    }
                }
            }
            if (read) {
                return new Plan.Read();
            }
        }
        if (next.size() > MAX_LOCKS && !grants.isEmpty()) {
            grants.forEach(r -> refused(r, Errno.ENOLCK));
            return new Plan.Later(nowNs);
        }
        Published desired = new Published(false, next.all(), waiting(grants));
        boolean ask = mustAsk && !pending.isEmpty() && (keyRevision == 0 || nowNs - putNs >= LOOK_AGAIN_NS);
        if (desired.equals(published) && !ask) {
            grants.forEach(this::grantedLater);
            publishedVersion = version;
            if (pending.isEmpty()) {
                return new Plan.Nothing();
            }
            long look = (mustAsk ? putNs : viewAskedNs) + LOOK_AGAIN_NS;
            if (!mustAsk && look <= nowNs) {
                return new Plan.Read();
            }
            return new Plan.Later(Math.min(later, look));
        }
        return new Plan.Put(desired, grants.isEmpty() ? Others.ANY : Others.AS_SEEN, grants, version);
    }

    /** A lock in the way, here or elsewhere. Returns when to look again. */
    private long blocked(LockRequest r, HeldLock there, boolean fresh, LockTable next, long nowNs) {
        HeldLock here = held.conflict(r.wanted);
        if (r.kind == LockRequest.Kind.WAIT) {
            if (giveUpToConvert(r)) {
                next.clear(r.wanted.owner());
            }
            r.waits = true;
            if (deadlocks.closedBy(r)) {
                r.refuse(Errno.EDEADLK);
            }
            return Long.MAX_VALUE;
        }
        if (here != null) {
            long until = releaseExpectedUntil(here.owner());
            if (until > nowNs) {
                return until;
            }
        } else if (there == null || !fresh) {
            // Only one that is being granted is in the way, or what is known of others is older than the request.
            return Long.MAX_VALUE;
        }
        if (giveUpToConvert(r)) {
            next.clear(r.wanted.owner());
        }
        r.refuse(here != null ? here : there, here != null);
        return Long.MAX_VALUE;
    }

    private HeldLock conflictElsewhere(HeldLock wanted) {
        HeldLock first = null;
        for (Published p : others.values()) {
            HeldLock c = p.conflict(wanted);
            if (c != null && (first == null || c.start() < first.start())) {
                first = c;
            }
        }
        return first;
    }

    /** Until when it is left to others who wait longer; now or earlier: it is not. */
    private long yieldsUntil(LockRequest r, long nowNs) {
        if (r.kind != LockRequest.Kind.WAIT || r.yieldedNs != 0 && nowNs - r.yieldedNs >= YIELD_NS) {
            return nowNs;
        }
        for (Published p : others.values()) {
            for (Published.Waiting w : p.waiting()) {
                boolean conflicts = (w.lock().exclusive() || r.wanted.exclusive()) && w.lock().owner().flock() == r.wanted.owner().flock()
                        && w.lock().overlaps(r.wanted.start(), r.wanted.end());
                if (conflicts && w.since() < r.since) {
                    if (r.yieldedNs == 0) {
                        r.yieldedNs = nowNs;
                    }
                    return r.yieldedNs + YIELD_NS;
                }
            }
        }
        return nowNs;
    }

    private List<Published.Waiting> waiting() {
        return waiting(List.of());
    }

    private List<Published.Waiting> waiting(List<LockRequest> but) {
        List<Published.Waiting> waiting = new ArrayList<>();
        for (LockRequest r : pending) {
            if (r.kind == LockRequest.Kind.WAIT && !but.contains(r)) {
                waiting.add(new Published.Waiting(r.wanted, r.since, r.number));
            }
        }
        return waiting;
    }

    private void grantedLater(LockRequest r) {
        if (pending.remove(r)) {
            granted(r);
        }
    }

    private void refused(LockRequest r, Errno errno) {
        if (pending.remove(r)) {
            r.refuse(errno);
        }
    }

    // ---- what became of it

    /** @param all the other nodes' records after it */
    void committed(Plan.Put put, Map<String, Published> all, long revision, long begunNs, long nowNs) {
        keyRevision = revision;
        published = put.value;
        told = put.value;
        putNs = nowNs;
        unsettled = false;
        alone = put.value.alone();
        publishedVersion = Math.max(publishedVersion, put.version);
        seen(all, revision, begunNs);
        put.grants.forEach(this::grantedLater);
        decideAlone(nowNs);
    }

    void deleted(Plan.Delete delete) {
        keyRevision = 0;
        published = Published.NOTHING;
        unsettled = false;
        alone = false;
        others.clear();
        viewRevision = 0;
        stale = false;
        publishedVersion = Math.max(publishedVersion, delete.version);
    }

    /** The own record is not as it was: an earlier transaction, whose outcome was not known, has committed. */
    void found(Published own, long revision, long nowNs) {
        keyRevision = revision;
        published = own == null ? Published.NOTHING : own;
        alone = own != null && own.alone();
        unsettled = false;
        decideAlone(nowNs);
    }

    /** The own record is as it was, and the transaction has not committed and will not. */
    void notCommitted() {
        unsettled = false;
        alone = published.alone() && keyRevision != 0;
    }

    void unknown() {
        unsettled = true;
        sticky = true;
        alone = false;
    }

    /** Gives up the whole record, if nothing is held; else null. */
    Plan.Delete deletion() {
        return held.isEmpty() && keyRevision != 0 && !sticky ? new Plan.Delete(version) : null;
    }

    /** etcd takes no more. */
    void refuseAll() {
        for (LockRequest r : List.copyOf(pending)) {
            refused(r, Errno.ENOLCK);
        }
    }

    /** Whether {@link #plan} may have something for etcd. */
    boolean needsWork() {
        return !alone || !others.isEmpty() || stale || retiring || telling || unsettled || pending.stream().anyMatch(r -> r.kind == LockRequest.Kind.TRY);
    }

    long viewRevision() {
        return viewRevision;
    }

    Published published() {
        return published;
    }
}
