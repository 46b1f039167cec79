package io.etcfs.core.lock;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.clock.Monitor;
import io.etcfs.core.clock.Tasks;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.record.Keys;
import io.etcfs.core.session.Guard;
import io.etcfs.core.session.NodeStoppedError;
import io.etcfs.core.session.Session;
import io.etcfs.core.store.Compare;
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
import io.etcfs.core.store.Watch;
import io.etcfs.core.store.WatchEvent;
import io.etcfs.core.store.WatchListener;
import io.etcfs.core.token.Blocked;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * The file locks of this node's processes. What is decided here and what in etcd is said in {@link FileLocks}; a task for each inode carries it out, one
 * transaction at a time. Methods are called with the monitor held, if nothing else is said.
 */
public final class Locks {
    private static final long REQUEST_NS = 2_000_000_000L;
    private static final long SETTLE_NS = 20_000_000L;
    private static final long SWEEP_NS = 1_000_000_000L;
    private static final System.Logger LOG = System.getLogger(Locks.class.getName());

    /** What the rest of the node does when locks are lost. */
    public interface Host {
        /** Locks that were taken through these open files went with the session: every call on them fails from now on. Monitor held. */
        void locksLost(long ino, Set<Long> handles);
    }

    private final Monitor monitor;
    private final MetadataStore store;
    private final Tasks tasks;
    private final Session session;
    private final Keys keys;
    private final String node;
    private final Host host;
    private final Map<Long, FileLocks> files = new HashMap<>();
    private final WaitGraph graph;
    private final Monitor.Waiters decided;
    private final Monitor.Waiters work;
    /** Nobody wakes it but the end: of its own, as it waits all the time. */
    private final Monitor.Waiters sweeper;
    private final Blocked undecided;
    private Watch watch;
    private boolean stopped;
    private long requests;
    private long newestRevision;
    /** Counts sessions: what is answered for an earlier one does not count. */
    private long sessions;

    public Locks(Monitor monitor, MetadataStore store, Tasks tasks, Session session, Keys keys, String node, Host host) {
        this.monitor = monitor;
        this.store = store;
        this.tasks = tasks;
        this.session = session;
        this.keys = keys;
        this.node = node;
        this.host = host;
        this.graph = new WaitGraph(node, files);
        this.decided = monitor.new Waiters();
        this.work = monitor.new Waiters();
        this.sweeper = monitor.new Waiters();
        this.undecided = Blocked.among(decided);
    }

    /** Monitor not held. */
    public void start() {
        watch = store.watch(keys.fileLocks(), keys.fileLocks().prefixEnd(), 0, new WatchListener() {
            @Override
            public void changed(long revision, List<WatchEvent> events) {
                watched(() -> Locks.this.changed(revision, events));
            }

            @Override
            public void resynced(long revision) {
                watched(Locks.this::distrustViews);
            }
        });
        tasks.start("file-locks", this::sweep);
    }

    /** Monitor not held. */
    public void stop() {
        Watch w = watch;
        if (w != null) {
            w.close();
        }
        monitor.lock();
        try {
            stopped = true;
            monitor.everythingChanged();
        } finally {
            monitor.unlock();
        }
    }

    /** Thrown to be tried again after the next decision. */
    public Blocked undecided() {
        return undecided;
    }

    /** To have waiting requests look at their callers. Monitor not held. */
    public void wake() {
        monitor.lock();
        try {
            decided.wake();
        } finally {
            monitor.unlock();
        }
    }

    // ---- what processes ask for

    /** The request is answered at once, or when {@link LockRequest#answered} says so; till then it can be withdrawn. */
    public LockRequest ask(long ino, long handle, HeldLock wanted, LockRequest.Kind kind) {
        FileLocks f = files.computeIfAbsent(ino, i -> new FileLocks(i, graph));
        LockRequest r = new LockRequest(f, handle, wanted, kind, ++requests, newestRevision, monitor.nowNs());
        f.pending.add(r);
        advance(f);
        return r;
    }

    public void withdraw(LockRequest r) {
        if (!r.answered() && r.file.pending.remove(r)) {
            advance(r.file);
        }
    }

    /** The owner gives these bytes up. Returns what {@link #gone} takes. */
    public long unlock(long ino, LockOwner owner, long start, long end) {
        FileLocks f = files.get(ino);
        if (f == null) {
            return 0;
        }
        long version = f.unlock(owner, start, end);
        advance(f);
        return version;
    }

    /** Whether the owner has locks on the inode. */
    public boolean has(long ino, LockOwner owner) {
        FileLocks f = files.get(ino);
        return f != null && f.held.has(owner);
    }

    /** Whether no other node finds in etcd any more what was given up. */
    public boolean gone(long ino, long version) {
        FileLocks f = files.get(ino);
        return f == null || f.gone(version);
    }

    public void flushed(long ino, long handle) {
        FileLocks f = files.get(ino);
        if (f != null) {
            f.flushed(handle, monitor.nowNs());
        }
    }

    /** Nobody has the file open through that handle any more. */
    public void released(long ino, long handle) {
        FileLocks f = files.get(ino);
        if (f != null) {
            f.released(handle);
            advance(f);
        }
    }

    /** All locks that processes of this node hold or wait for. */
    public List<Listed> list() {
        List<Listed> all = new ArrayList<>();
        new TreeMap<>(files).forEach((ino, f) -> {
            f.held.all().forEach(l -> all.add(new Listed(ino, l, false)));
            for (LockRequest r : f.pending) {
                if (r.kind == LockRequest.Kind.WAIT) {
                    all.add(new Listed(ino, r.wanted, true));
                }
            }
        });
        return all;
    }

    public record Listed(long ino, HeldLock lock, boolean waits) {}

    /** All locks went with the session; who waits goes on waiting. */
    public void sessionLost() {
        sessions++;
        for (FileLocks f : files.values()) {
            Set<Long> through = f.lost();
            if (!through.isEmpty()) {
                LOG.log(System.Logger.Level.WARNING, "file locks on inode {0} were lost with the session", Long.toString(f.ino));
                host.locksLost(f.ino, through);
            }
        }
        decided.wake();
        monitor.changed();
        List.copyOf(files.values()).forEach(this::advance);
    }

    // ---- what is done about it

    private void advance(FileLocks f) {
        f.usedNs = monitor.nowNs();
        if (session.trusted() && f.decideAlone(monitor.nowNs())) {
            decided.wake();
        }
        if (f.working) {
            work.wake();
        } else if (!stopped && (f.needsWork() || !session.trusted())) {
            f.working = true;
            tasks.start("file-locks-" + f.ino, () -> work(f));
        }
    }

    private void work(FileLocks f) {
        monitor.lock();
        try {
            while (!stopped) {
                if (!session.trusted()) {
                    if (f.idle() && f.settled()) {
                        break;
                    }
                    monitor.awaitQuietly(monitor.nowNs() + 100_000_000L);
                    continue;
                }
                FileLocks.Plan plan = f.plan(monitor.nowNs());
                decided.wake();
                switch (plan) {
                    case FileLocks.Plan.Nothing ignored -> {
                        return;
                    }
                    case FileLocks.Plan.Later(long until) -> work.awaitQuietly(until);
                    case FileLocks.Plan.Read ignored -> read(f);
                    case FileLocks.Plan.Put put -> put(f, put);
                    case FileLocks.Plan.Delete delete -> delete(f, delete);
                }
            }
        } finally {
            f.working = false;
            forgetIfUnused(f);
            monitor.unlock();
        }
    }

    private void forgetIfUnused(FileLocks f) {
        if (f.forgettable()) {
            files.remove(f.ino, f);
        }
    }

    private interface Request<R> {
        R send() throws StoreUnavailableException, StoreRejectedException;
    }

    /** Without the monitor. Null: no answer, or one for a session that is gone. */
    private <R> R send(FileLocks f, Request<R> request) throws StoreRejectedException {
        long of = sessions;
        monitor.unlock();
        R answer = null;
        StoreRejectedException rejected = null;
        try {
            answer = request.send();
        } catch (StoreUnavailableException e) {
            LOG.log(System.Logger.Level.DEBUG, "file locks of inode {0}: {1}", Long.toString(f.ino), e.getMessage());
        } catch (StoreRejectedException e) {
            rejected = e;
        } finally {
            monitor.lock();
        }
        if (of != sessions) {
            return null;
        }
        if (rejected != null) {
            throw rejected;
        }
        if (answer == null) {
            pause();
        }
        return answer;
    }

    private void pause() {
        work.awaitQuietly(monitor.nowNs() + SETTLE_NS);
    }

    private void read(FileLocks f) {
        long begun = monitor.nowNs();
        try {
            RangeResult read = send(f, () -> store.range(keys.fileLocksOf(f.ino), keys.fileLocksOf(f.ino).prefixEnd(), 0, false, 0, REQUEST_NS));
            if (read != null) {
                f.seen(others(read.keyValues()), read.revision(), begun);
            }
        } catch (StoreRejectedException e) {
            LOG.log(System.Logger.Level.WARNING, "file locks of inode {0} can''t be read: {1}", Long.toString(f.ino), e.getMessage());
            pause();
        }
    }

    private Map<String, Published> others(List<KeyValue> records) {
        Map<String, Published> others = new TreeMap<>();
        for (KeyValue kv : records) {
            String name = keys.parseFileLocks(kv.key()).node();
            if (!name.equals(node)) {
                others.put(name, decode(kv));
            }
        }
        return others;
    }

    private Published decode(KeyValue kv) {
        try {
            Published record = Published.decode(kv.value());
            // What a node that decides alone tells is for people, and may be old.
            return record.alone() ? Published.ALONE : record;
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record " + kv.key());
        }
    }

    private void put(FileLocks f, FileLocks.Plan.Put put) {
        Key own = keys.fileLocks(f.ino, node);
        List<Compare> compares = new ArrayList<>();
        compares.add(Compare.modRevision(own, f.keyRevision));
        compares.addAll(aboutOthers(f, put.others()));
        List<Op> success = List.of(Op.put(own, put.value().encode(session.revision()), session.leaseId()), Op.prefix(keys.fileLocksOf(f.ino), 0));
        try {
            commit(f, own, compares, success, (result, begun) -> f.committed(put, others(((OpResult.Ranged) result.results().get(1)).keyValues()), result.revision(), begun, monitor.nowNs()));
        } catch (StoreRejectedException e) {
            refused(f, put, e);
        }
    }

    private void refused(FileLocks f, FileLocks.Plan.Put put, StoreRejectedException e) {
        LOG.log(System.Logger.Level.WARNING, "etcd refuses file locks of inode {0}: {1}", Long.toString(f.ino), e.getMessage());
        f.notCommitted();
        if (e.reason() != StoreRejectedException.Reason.LEASE_NOT_FOUND) {
            f.refuseAll();
            decided.wake();
            FileLocks.Plan.Delete deletion = f.deletion();
            if (deletion != null) {
                // A full etcd still takes deletes.
                delete(f, deletion);
                return;
            }
        }
        pause();
    }

    private List<Compare> aboutOthers(FileLocks f, FileLocks.Others others) {
        Key all = keys.fileLocksOf(f.ino);
        Key own = keys.fileLocks(f.ino, node);
        long below = switch (others) {
            case ANY -> Long.MAX_VALUE;
            // A record that went since does not matter: there are only fewer locks.
            case AS_SEEN -> f.viewRevision() + 1;
            case NONE -> 1;
        };
        return others == FileLocks.Others.ANY || Fault.FILE_LOCK_AS_REMEMBERED.on() ? List.of() : List.of(new Compare(all, own, Compare.Target.MOD_REVISION, Compare.Relation.LESS, below, null),
                new Compare(own.next(), all.prefixEnd(), Compare.Target.MOD_REVISION, Compare.Relation.LESS, below, null));
    }

    private void delete(FileLocks f, FileLocks.Plan.Delete delete) {
        Key own = keys.fileLocks(f.ino, node);
        try {
            commit(f, own, List.of(Compare.modRevision(own, f.keyRevision)), List.of(Op.delete(own)), (result, begun) -> f.deleted(delete));
        } catch (StoreRejectedException e) {
            LOG.log(System.Logger.Level.WARNING, "etcd refuses to delete {0}: {1}", own, e.getMessage());
            f.notCommitted();
            pause();
        }
    }

    private interface Applied {
        void committed(TxnResult result, long begunNs);
    }

    private void commit(FileLocks f, Key own, List<Compare> compares, List<Op> success, Applied applied) throws StoreRejectedException {
        Guard guard = session.guard();
        long revision = session.revision();
        long generationRevision = session.generationRevision();
        List<Compare> all = new ArrayList<>(guard.compares());
        all.addAll(compares);
        List<Op> failure = new ArrayList<>(guard.reads());
        failure.add(Op.get(own));
        failure.add(Op.prefix(keys.fileLocksOf(f.ino), 0));
        long begun = monitor.nowNs();
        Outcome outcome = send(f, () -> store.commit(new Txn(all, success, failure), REQUEST_NS));
        switch (outcome) {
            case null -> { }
            case Outcome.Committed(TxnResult r) -> applied.committed(r, begun);
            case Outcome.Conflict(TxnResult r) -> {
                if (!session.guardHeld(r, 0, revision, generationRevision)) {
                    // The session is gone, though that has not been noticed yet. Its end settles everything.
                    f.unknown();
                    pause();
                    return;
                }
                KeyValue found = r.ranged(2).only();
                f.seen(others(r.ranged(3).keyValues()), r.revision(), begun);
                if ((found == null ? 0 : found.modRevision()) != f.keyRevision) {
                    f.found(found == null ? null : decode(found), found == null ? 0 : found.modRevision(), monitor.nowNs());
                } else {
                    f.notCommitted();
                }
            }
            case Outcome.Unknown(String cause, boolean noSpace) -> {
                LOG.log(System.Logger.Level.DEBUG, "file locks of inode {0}: {1}", Long.toString(f.ino), cause);
                f.unknown();
                pause();
            }
        }
        decided.wake();
    }

    // ---- what others do

    /** The store's thread may end with what is thrown here, and the node would hear of no lock any more: it stops. */
    private void watched(Runnable body) {
        try {
            body.run();
        } catch (RuntimeException | Error e) {
            LOG.log(System.Logger.Level.ERROR, "the watch of file locks failed", e);
            tasks.start("watch", () -> {
                throw new NodeStoppedError("the watch of file locks failed: " + e);
            });
        }
    }

    private void changed(long revision, List<WatchEvent> events) {
        monitor.lock();
        try {
            newestRevision = Math.max(newestRevision, revision);
            for (WatchEvent e : events) {
                Keys.FileLocksKey k = keys.parseFileLocks(e.keyValue().key());
                FileLocks f = k.node().equals(node) ? null : files.get(k.ino());
                if (f != null) {
                    f.changed(k.node(), e.kind() == WatchEvent.Kind.DELETE ? null : decode(e.keyValue()), revision);
                    if (f.needsWork()) {
                        long used = f.usedNs;
                        advance(f);
                        f.usedNs = used;
                    }
                }
            }
        } finally {
            monitor.unlock();
        }
    }

    private void distrustViews() {
        monitor.lock();
        try {
            for (FileLocks f : List.copyOf(files.values())) {
                f.distrustView();
                advance(f);
            }
        } finally {
            monitor.unlock();
        }
    }

    /** Records that are not used any more are deleted, others brought up to date for people. */
    private void sweep() {
        monitor.lock();
        try {
            while (!stopped) {
                for (FileLocks f : List.copyOf(files.values())) {
                    if (session.trusted() && (f.retire(monitor.nowNs()) | f.tell()) && !f.working) {
                        f.working = true;
                        tasks.start("file-locks-" + f.ino, () -> work(f));
                    } else {
                        forgetIfUnused(f);
                    }
                }
                sweeper.awaitQuietly(monitor.nowNs() + SWEEP_NS);
            }
        } finally {
            monitor.unlock();
        }
    }
}
