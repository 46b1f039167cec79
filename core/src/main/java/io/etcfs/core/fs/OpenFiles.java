package io.etcfs.core.fs;

import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.domain.Vnode;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.fault.Rare;
import io.etcfs.core.file.Extent;
import io.etcfs.core.file.ExtentMap;
import io.etcfs.core.session.StartException;
import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.OpResult;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.TxnResult;
import io.etcfs.core.token.Blocked;
import io.etcfs.core.token.Need;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Files that are open, and files that outlive their last name because they are: handles, {@code open:}, {@code opened:} and {@code orphan:} keys, and the work
 * of freeing.
 *
 * <p>An inode that is published without a name always has {@code orphan:} and somebody's {@code open:}, and who has that key sees to it. Closing deletes the
 * key only in a transaction that compares that there is no {@code orphan:} or another {@code open:}; else the node takes X and frees inode, {@code orphan:}
 * and its {@code open:} in one batch.
 */
final class OpenFiles {
    /** An operation changes no more records about space than this in one batch (bitmaps, arenas, unfree: records); a file with more is freed in steps. */
    static final int MAX_SPACE_KEYS = 40;

    /** Where blocks are not freed by their bitmaps each piece of a file takes some bytes of a record: so many count as a record more. */
    private static final int PIECES_OF_A_KEY = 500;

    /** Above that a change is made in steps. */
    static int maxSpaceKeys() {
        return Rare.SMALL_STEPS.on() ? 4 : MAX_SPACE_KEYS;
    }

    /** Records beside its blocks' that go with an orphan. */
    private static final int ORPHAN_KEYS = 8;
    /** How long after its lookup an inode counts as about to be opened, and how many such are pinned when a token goes. */
    private static final long LOOKED_UP_NS = 500_000_000L;
    private static final int MAX_LOOKED_UP = 16;
    private static final long REQUEST_NS = 2_000_000_000L;
    private static final System.Logger LOG = System.getLogger(OpenFiles.class.getName());
    private static final Call BACKGROUND = new Call(0, 0, 0, 0, true, Call.Interruption.NEVER);

    static final class Handle {
        final long id;
        final Vnode vnode;
        final int flags;

        Handle(long id, Vnode vnode, int flags) {
            this.id = id;
            this.vnode = vnode;
            this.flags = flags;
        }

        boolean writable() {
            return (flags & 3) != 0;
        }

        boolean executes() {
            return (flags & Bytes.FOR_EXECUTION) != 0;
        }
    }

    private final Node node;
    private final Map<Long, Handle> handles = new HashMap<>();
    private final Set<Long> finishing = new HashSet<>();
    private long nextHandle = 1;

    OpenFiles(Node node) {
        this.node = node;
        node.space().freeing(this::freeing);
    }

    // ---- handles, monitor held

    Handle open(Vnode v, int flags) {
        Handle h = new Handle(nextHandle++, v, flags);
        handles.put(h.id, h);
        v.handles++;
        if (h.writable()) {
            v.writableHandles++;
        }
        if (h.executes()) {
            v.executed++;
        }
        return h;
    }

    int count() {
        return handles.size();
    }

    /** There is such a one. */
    boolean isOpen(long id) {
        return handles.containsKey(id);
    }

    void release(long id) {
        Handle h = handles.remove(id);
        if (h == null) {
            return;
        }
        node.waiting().sound(id);
        Vnode v = h.vnode;
        v.handles--;
        if (h.writable()) {
            v.writableHandles--;
        }
        if (h.executes()) {
            v.executed--;
        }
        if (v.handles == 0) {
            considerClosing(v);
            node.vnodes().dropIfUnused(v);
        }
    }

    /** Starts to see to a file that nobody here has open any more, if it needs that. */
    void considerClosing(Vnode v) {
        if (v.handles > 0 || v.closerRunning || v.openKeyRevision == 0 || v.nameless && v.lookups > 0) {
            return;
        }
        v.closerRunning = true;
        node.space().moreMayCome();
        node.tasks().start("close-" + v.ino, () -> close(v));
    }

    /** The kernel has given its last lookup of the inode back. */
    void forgotten(Vnode v) {
        if (!v.nameless || v.handles > 0 || v.closerRunning) {
            return;
        }
        Domain d = node.tokens().known(v.home);
        Inode inode = d == null ? null : d.inodes.get(v.ino);
        if (inode != null && inode.nlink == 0 && d.usable(Mode.EXCLUSIVE) && node.session().trusted() && !d.openElsewhere(v.ino) && freeableAtOnce(v, inode)
                && node.pipeline().room(freeingKeys(inode) + ORPHAN_KEYS)) {
            free(d, inode, v);
        } else {
            considerClosing(v);
        }
    }

    /** The kernel is unmounted: nobody here has anything open, and it gives nothing back any more, also where it was cut off from open files. */
    void allForgotten() {
        List.copyOf(handles.keySet()).forEach(this::release);
        for (Vnode v : List.copyOf(node.vnodes().all())) {
            v.lookups = 0;
            considerClosing(v);
        }
    }

    /** Files that nobody has open any more are still being closed or freed. */
    boolean busy() {
        if (!finishing.isEmpty()) {
            return true;
        }
        for (Vnode v : node.vnodes().all()) {
            if (v.closerRunning) {
                return true;
            }
        }
        return false;
    }

    /** Blocks of files that nobody here has open any more, or of ends that were cut off, are about to come back. */
    private boolean freeing() {
        if (!finishing.isEmpty()) {
            return true;
        }
        for (Vnode v : node.vnodes().all()) {
            if (v.nameless && v.handles == 0) {
                return true;
            }
        }
        return false;
    }

    /** The domain goes: what is open in it is pinned before, or by the same batch. */
    List<Runnable> pins(Domain d) {
        List<Runnable> pins = new ArrayList<>();
        if (Fault.OPEN_NOT_PINNED.on()) {
            return pins;
        }
        int lookedUp = 0;
        for (Vnode v : node.vnodes().withHome(d.id)) {
            if (v.directory || !d.inodes.containsKey(v.ino)) {
                continue;
            }
            if (v.handles > 0) {
                if (v.openKeyRevision != 0 && Fault.OPEN_PINNED_ONCE.on()) {
                    continue;
                }
                pins.add(() -> {
                    if (v.handles > 0) {
                        pinForHandover(v);
                    }
                });
            } else if (aboutToBeOpened(v) && lookedUp++ < MAX_LOOKED_UP) {
                pins.add(() -> {
                    pinForHandover(v);
                    closeLater(v);
                });
            }
        }
        return pins;
    }

    /** A process has looked the name up and may be on its way to open what it found: it must still find it there, whoever removes the name meanwhile. */
    private boolean aboutToBeOpened(Vnode v) {
        return v.lookups > 0 && node.monitor().nowNs() - v.lookedUpNs < LOOKED_UP_NS;
    }

    /** Inodes of the domain that its recall asks for. */
    List<Long> inUse(Domain d) {
        List<Long> inos = new ArrayList<>();
        for (Vnode v : node.vnodes().withHome(d.id)) {
            if (!v.directory && (v.handles > 0 || aboutToBeOpened(v))) {
                inos.add(v.ino);
            }
        }
        return inos;
    }

    boolean inUse(Vnode v) {
        return v != null && (v.handles > 0 || v.readers > 0 || v.changing || v.nameless || v.closerRunning || v.openKeyRevision != 0 || v.pages != null || !v.waiting.isEmpty()
                || !v.sideBuffer.isEmpty() || aboutToBeOpened(v));
    }

    private void closeLater(Vnode v) {
        node.tasks().start("close-later-" + v.ino, () -> {
            node.monitor().pause(LOOKED_UP_NS);
            node.monitor().lock();
            try {
                considerClosing(v);
            } finally {
                node.monitor().unlock();
            }
        });
    }

    private void pin(Vnode v) {
        node.journal().putOpen(v.home, v.ino, v.openKeyRevision != 0);
        v.openKeyRevision = Vnode.OPEN_KEY_UNPUBLISHED;
        v.openKeyBatch = node.pipeline().openNumber();
        v.openKeyBound = false;
    }

    /** The token is about to go: the pin is good only while the session is, as the file can be removed by another node once the token has gone with that. */
    private void pinForHandover(Vnode v) {
        long revision = v.openKeyRevision;
        long batch = v.openKeyBatch;
        boolean bound = v.openKeyBound;
        long pinnedIn = node.pipeline().openNumber();
        if (revision == Vnode.OPEN_KEY_UNPUBLISHED && batch == pinnedIn) {
            return;
        }
        node.journal().putOpenForHandover(v.home, v.ino, revision != 0, () -> {
            if (v.openKeyRevision == Vnode.OPEN_KEY_UNPUBLISHED && v.openKeyBatch == pinnedIn && v.openKeyBound) {
                v.openKeyRevision = revision;
                v.openKeyBatch = batch;
                v.openKeyBound = bound;
                node.vnodes().dropIfUnused(v);
            }
        });
        v.openKeyRevision = Vnode.OPEN_KEY_UNPUBLISHED;
        v.openKeyBatch = pinnedIn;
        v.openKeyBound = true;
    }

    /** The inode's last name is gone in the open batch. Frees it, or makes it an orphan. The home domain is held X. */
    void lastNameGone(Domain home, Inode inode) {
        Vnode v = node.vnodes().get(inode.ino, inode.home, false);
        if (v.handles == 0 && v.lookups == 0 && v.openKeyRevision == 0 && !home.openElsewhere(inode.ino) && freeableAtOnce(v, inode)) {
            node.journal().delete(home, inode);
            node.vnodes().dropIfUnused(v);
            return;
        }
        node.journal().changed(home, inode, true);
        if (!(v.handles > 0 ? Fault.ORPHAN_NOT_PINNED : Fault.ORPHAN_OF_OTHERS_NOT_PINNED).on()) {
            node.journal().putOrphan(inode);
            pin(v);
        }
        v.nameless = true;
        node.space().moreMayCome();
        considerClosing(v);
    }

    /** An inode that is born without a name, and open. Pinned like one that has lost its last: so it is freed whatever becomes of this node. */
    void bornWithoutName(Vnode v, Inode inode, boolean linkable) {
        if (!Fault.TMPFILE_NOT_PINNED.on()) {
            node.journal().putOrphan(inode);
            pin(v);
        }
        v.nameless = true;
        v.linkable = linkable;
    }

    /** An inode without a name gets one in the open batch. This node's {@code open:} stays until it is closed. */
    void named(Vnode v, Inode inode) {
        if (!Fault.ORPHAN_KEPT_BY_LINK.on()) {
            node.journal().deleteOrphan(inode);
        }
        v.nameless = false;
        v.linkable = false;
        considerClosing(v);
    }

    /** How many records at most, beside the inode's own and an orphan's, {@link #lastNameGone} changes. */
    int freeingKeys(Inode inode) {
        return Math.min(MAX_SPACE_KEYS, spaceKeys(inode.extents.all())) + Math.min(MAX_SPACE_KEYS, inode.extentRecords().size()) + inode.xattrs().size();
    }

    private boolean freeableAtOnce(Vnode v, Inode inode) {
        return inode.extentsLoaded && v.readers == 0 && !v.changing && inode.deadFrom == Long.MAX_VALUE && spaceKeys(inode.extents.all()) <= maxSpaceKeys()
                && inode.extentRecords().size() <= maxSpaceKeys();
    }

    /** How many records about space change when blocks of these extents are used or freed: a bitmap for each segment, and a record for each arena. */
    final class SpaceKeys {
        private final Set<Long> segments = new HashSet<>();
        private final Set<Long> arenas = new HashSet<>();
        private int pieces;

        /** With those of the extent; counting stops when there are too many. */
        int with(Extent e) {
            pieces++;
            for (long s = e.deviceBlock() / 4096; s <= (e.deviceBlock() + e.length() - 1) / 4096 && count() <= maxSpaceKeys(); s++) {
                segments.add(s);
                arenas.add(s * 4096 / node.space().arenaBlocks());
            }
            return count();
        }

        int count() {
            return segments.size() + arenas.size() + pieces / PIECES_OF_A_KEY;
        }
    }

    int spaceKeys(List<Extent> extents) {
        SpaceKeys keys = new SpaceKeys();
        extents.forEach(keys::with);
        return keys.count();
    }

    /** How many of the extents, from the first one on, one batch takes; at least one. */
    int fitting(List<Extent> extents) {
        SpaceKeys keys = new SpaceKeys();
        for (int i = 0; i < extents.size(); i++) {
            if (keys.with(extents.get(i)) > maxSpaceKeys() && i > 0) {
                return i;
            }
        }
        return extents.size();
    }

    // ---- closing, a task of its own

    private enum Step { DONE, AGAIN, NEEDS_EXCLUSIVE, BY_KEY }

    private void close(Vnode v) {
        try {
            Step step = node.monitor().with(() -> heldExclusive(v)) ? Step.NEEDS_EXCLUSIVE : Step.BY_KEY;
            while (step != Step.DONE && !node.waiting().stopped()) {
                Step next;
                try {
                    next = step == Step.NEEDS_EXCLUSIVE ? closeExclusive(v) : closeByKey(v);
                } catch (FsException e) {
                    next = Step.AGAIN;
                }
                if (next == Step.AGAIN) {
                    pause();
                    next = step;
                }
                step = next;
            }
        } finally {
            node.monitor().lock();
            try {
                v.closerRunning = false;
                if (v.handles == 0 && v.openKeyRevision != 0 && !node.waiting().stopped()) {
                    considerClosing(v);
                }
                node.vnodes().dropIfUnused(v);
                node.monitor().changed();
            } finally {
                node.monitor().unlock();
            }
        }
    }

    private void pause() {
        try {
            node.monitor().clock().sleep(100_000_000L);
        } catch (InterruptedException e) {
            throw new io.etcfs.core.clock.Monitor.Stopped();
        }
    }

    private boolean heldExclusive(Vnode v) {
        Domain d = node.tokens().known(v.home);
        return d != null && d.usable(Mode.EXCLUSIVE);
    }

    /** Without the token: the key goes if the inode has a name, or somebody else's key. */
    private Step closeByKey(Vnode v) {
        Key own = node.keys().open(v.home, v.ino, node.name());
        Key opened = node.keys().opened(node.name(), v.home, v.ino);
        List<Compare> guard;
        long exclusiveSince;
        long batch;
        node.monitor().lock();
        try {
            if (v.openKeyRevision == Vnode.OPEN_KEY_UNPUBLISHED && !published(v)) {
                return Step.AGAIN;
            }
            batch = v.openKeyBatch;
            Domain d = node.tokens().known(v.home);
            exclusiveSince = d != null && d.held == Mode.EXCLUSIVE ? d.lockRevision : -1L;
        } finally {
            node.monitor().unlock();
        }
        try {
            KeyValue present = node.store().range(own, null, 0, false, 0, REQUEST_NS).only();
            node.monitor().lock();
            try {
                if (v.handles > 0) {
                    return Step.DONE;
                }
                if (v.openKeyBatch != batch) {
                    return Step.AGAIN;
                }
                if (present == null) {
                    v.openKeyRevision = 0;
                    return Step.DONE;
                }
                if (!node.session().trusted()) {
                    return Step.AGAIN;
                }
                guard = node.session().guard().compares();
            } finally {
                node.monitor().unlock();
            }
            List<Compare> compares = new ArrayList<>(guard);
            if (!Fault.CLOSED_BLINDLY.on()) {
                compares.add(Compare.modRevision(own, present.modRevision()));
            }
            List<Compare> noOrphan = new ArrayList<>(compares);
            if (!Fault.CLOSED_UNSEEN.on()) {
                noOrphan.add(Compare.absent(node.keys().orphan(v.ino)));
            }
            List<Op> go = List.of(Op.delete(own), Op.delete(opened));
            Outcome o = node.store().commit(new Txn(noOrphan, go, List.of(Op.get(own), new Op.Range(node.keys().opensOf(v.home, v.ino), node.keys().opensOf(v.home, v.ino).prefixEnd(), 0, true))), REQUEST_NS);
            if (o instanceof Outcome.Committed) {
                return closed(v, batch);
            }
            if (!(o instanceof Outcome.Conflict(TxnResult r))) {
                return Step.AGAIN;
            }
            if (r.ranged(0).only() == null || r.ranged(0).only().modRevision() != present.modRevision()) {
                return Step.AGAIN;
            }
            for (KeyValue other : ((OpResult.Ranged) r.results().get(1)).keyValues()) {
                if (!node.keys().parseOpen(other.key()).node().equals(node.name())) {
                    List<Compare> another = new ArrayList<>(compares);
                    if (!Fault.CLOSED_AS_READ.on()) {
                        another.add(Compare.exists(other.key()));
                    }
                    return node.store().commit(new Txn(another, go, List.of()), REQUEST_NS) instanceof Outcome.Committed ? closed(v, batch) : Step.AGAIN;
                }
            }
            // Nobody else has it open. If X was ours all the time, nobody can have opened it since.
            node.monitor().lock();
            try {
                Domain d = node.tokens().known(v.home);
                if (d != null && d.held == Mode.EXCLUSIVE && d.lockRevision == exclusiveSince) {
                    d.othersOpen.remove(v.ino);
                }
            } finally {
                node.monitor().unlock();
            }
            return Step.NEEDS_EXCLUSIVE;
        } catch (StoreUnavailableException | StoreRejectedException e) {
            LOG.log(System.Logger.Level.DEBUG, "open: of inode {0} not closed yet: {1}", v.ino, e.getMessage());
            return Step.AGAIN;
        }
    }

    private boolean published(Vnode v) {
        return node.pipeline().published(v.openKeyBatch);
    }

    /** The key is gone, unless it was put again meanwhile. */
    private Step closed(Vnode v, long batch) {
        node.monitor().lock();
        try {
            if (v.openKeyBatch == batch) {
                v.openKeyRevision = 0;
            }
            return Step.DONE;
        } finally {
            node.monitor().unlock();
        }
    }

    /** Under X: an inode with a name only loses the key; one without is freed, in steps if it is large. */
    private Step closeExclusive(Vnode v) throws FsException {
        return node.waiting().run(BACKGROUND, a -> {
            if (v.handles > 0) {
                return Step.DONE;
            }
            node.tokens().require(a, Need.exclusive(v.home));
            Domain d = node.tokens().domain(v.home);
            Inode inode = node.tokens().reads().inode(d, v.ino);
            if (inode == null) {
                if (!node.pipeline().room(4)) {
                    throw Blocked.INSTANCE;
                }
                node.journal().deleteOpen(v.home, v.ino);
                forget(v);
                return Step.DONE;
            }
            if (inode.nlink > 0 && !Fault.FREED_BLINDLY.on()) {
                if (!node.pipeline().room(4)) {
                    throw Blocked.INSTANCE;
                }
                node.journal().deleteOpen(v.home, v.ino);
                node.pipeline().touch(d);
                forget(v);
                return Step.DONE;
            }
            if (d.openElsewhere(v.ino) && Fault.CLOSED_IN_BATCH.on()) {
                node.journal().deleteOpen(v.home, v.ino);
                forget(v);
                return Step.DONE;
            }
            if (d.openElsewhere(v.ino)) {
                // They see to it. Our key goes in a transaction that compares that theirs is there.
                if (!published(v)) {
                    node.pipeline().push(v.openKeyBatch);
                    throw Blocked.INSTANCE;
                }
                return Step.BY_KEY;
            }
            if (!inode.extentsLoaded) {
                loadExtents(d, inode);
                throw Blocked.INSTANCE;
            }
            if (v.readers > 0 || v.changing || !node.pipeline().room(2 * MAX_SPACE_KEYS)) {
                throw Blocked.INSTANCE;
            }
            if (!freeTail(d, inode, 0)) {
                return Step.NEEDS_EXCLUSIVE;
            }
            free(d, inode, v);
            return Step.DONE;
        });
    }

    /** Inode, {@code orphan:} and this node's {@code open:} in one batch. X is held, room made, nobody else has it open. */
    private void free(Domain d, Inode inode, Vnode v) {
        node.journal().delete(d, inode);
        node.journal().deleteOrphan(inode);
        node.journal().deleteOpen(v.home, v.ino);
        if (d.remainders.containsKey(v.ino)) {
            node.journal().deleteRemainder(d, inode);
        }
        forget(v);
    }

    private void forget(Vnode v) {
        v.openKeyRevision = 0;
    }

    /**
     * Frees from the end of the file towards {@code fromBlock} as much as one batch takes. True if nothing is left there.
     */
    private boolean freeTail(Domain d, Inode inode, long fromBlock) {
        List<Extent> extents = inode.extents.within(fromBlock, Long.MAX_VALUE >> 1);
        if (spaceKeys(extents) <= maxSpaceKeys() / 2 && inode.extentRecords().tailSet(fromBlock / ExtentMap.RANGE_BLOCKS, true).size() <= maxSpaceKeys() / 2) {
            if (fromBlock > 0) {
                node.space().free(inode.extents.remove(fromBlock, Long.MAX_VALUE >> 1), d);
                node.journal().changed(d, inode, true);
            }
            return true;
        }
        long blocks = 0;
        long cut = Long.MAX_VALUE >> 1;
        SpaceKeys keys = new SpaceKeys();
        Set<Long> records = new HashSet<>();
        for (int i = extents.size() - 1; i >= 0; i--) {
            Extent e = extents.get(i);
            long from = Math.max(e.logicalBlock(), e.logicalEnd() - 16L * 4096);
            Extent piece = from > e.logicalBlock() ? e.slice(from, e.logicalEnd()) : e;
            for (long r = piece.logicalBlock() / ExtentMap.RANGE_BLOCKS; r <= (piece.logicalEnd() - 1) / ExtentMap.RANGE_BLOCKS; r++) {
                records.add(r);
            }
            if ((keys.with(piece) > maxSpaceKeys() / 2 || records.size() > maxSpaceKeys() / 2) && blocks > 0) {
                break;
            }
            cut = piece.logicalBlock();
            blocks += piece.length();
            if (piece != e) {
                break;
            }
        }
        node.space().free(inode.extents.remove(cut, Long.MAX_VALUE >> 1), d);
        node.journal().changed(d, inode, true);
        return false;
    }

    // ---- remainders of truncations

    /** Extents at or beyond the inode's {@code dead_from} are to be freed: a task sees to it, unless one does already. Monitor held. */
    void finishRemainder(long home, long ino) {
        if (finishing.add(ino)) {
            node.space().moreMayCome();
            node.tasks().start("remainder-" + ino, () -> {
                try {
                    while (!node.waiting().stopped() && !remainderStep(home, ino)) {
                        node.monitor().with(() -> null);
                    }
                } finally {
                    node.monitor().with(() -> finishing.remove(ino));
                }
            });
        }
    }

    private boolean remainderStep(long home, long ino) {
        try {
            return node.waiting().run(BACKGROUND, a -> {
                node.tokens().require(a, Need.exclusive(home));
                Domain d = node.tokens().domain(home);
                Inode inode = node.tokens().reads().inode(d, ino);
                if (inode == null || inode.deadFrom == Long.MAX_VALUE) {
                    return true;
                }
                Vnode v = node.vnodes().known(ino);
                if (!inode.extentsLoaded) {
                    loadExtents(d, inode);
                    throw Blocked.INSTANCE;
                }
                if (v != null && (v.readers > 0 || v.changing) || !node.pipeline().room(2 * MAX_SPACE_KEYS)) {
                    throw Blocked.INSTANCE;
                }
                if (!freeTail(d, inode, inode.deadFrom)) {
                    return false;
                }
                if (inode.deadFrom == 0) {
                    node.space().free(inode.extents.remove(0, Long.MAX_VALUE >> 1), d);
                }
                inode.deadFrom = Long.MAX_VALUE;
                node.journal().changed(d, inode, true);
                node.journal().deleteRemainder(d, inode);
                node.monitor().changed();
                return true;
            });
        } catch (FsException e) {
            pause();
            return false;
        }
    }

    // ---- extents in records of their own

    private final Set<Long> loading = new HashSet<>();

    /** Reads the extent records of an inode; the domain is held. Monitor held. */
    void loadExtents(Domain d, Inode inode) {
        if (!loading.add(inode.ino)) {
            return;
        }
        node.tasks().start("extents-" + inode.ino, () -> {
            List<Extent> extents = new ArrayList<>();
            List<Long> records = new ArrayList<>();
            boolean ok = false;
            try {
                Key from = node.keys().extentsOf(inode.ino);
                Key end = from.prefixEnd();
                boolean more = true;
                while (more) {
                    var page = node.store().range(from, end, 200, false, 0, REQUEST_NS);
                    for (KeyValue kv : page.keyValues()) {
                        records.add(node.keys().parseExtents(kv.key()).range());
                        extents.addAll(Inode.decodeExtentRecord(kv.value()));
                        from = kv.key().next();
                    }
                    more = page.more();
                }
                ok = true;
            } catch (StoreUnavailableException | StoreRejectedException e) {
                LOG.log(System.Logger.Level.DEBUG, "extents of {0} not read: {1}", inode.ino, e.getMessage());
            } catch (com.google.protobuf.InvalidProtocolBufferException e) {
                throw new io.etcfs.core.session.NodeStoppedError("damaged extents of inode " + inode.ino);
            } finally {
                node.monitor().lock();
                try {
                    loading.remove(inode.ino);
                    if (ok && d.held != Mode.NONE && d.inodes.get(inode.ino) == inode && !inode.extentsLoaded) {
                        inode.extents.load(extents);
                        inode.extentRecordsForChange().addAll(records);
                        inode.extentsLoaded = true;
                        d.countExtents(inode);
                    }
                    node.monitor().changed();
                } finally {
                    node.monitor().unlock();
                }
            }
        });
    }

    // ---- start

    /** What an earlier process of this node had open. To be read when the new session is there, so that nothing is added behind our back. */
    List<KeyValue> openedBefore() throws StartException {
        try {
            return node.store().range(node.keys().openedBy(node.name()), node.keys().openedBy(node.name()).prefixEnd(), 0, true, 0, REQUEST_NS).keyValues();
        } catch (StoreUnavailableException | StoreRejectedException e) {
            throw new StartException("the files that were open can't be read from etcd: " + e.getMessage());
        }
    }

    /** Closes what an earlier process had open. */
    void cleanUpAfterRestart(List<KeyValue> opened) {
        for (KeyValue kv : Fault.OPENED_LEFT.on() ? List.<KeyValue>of() : opened) {
            var k = node.keys().parseOpened(kv.key());
            node.monitor().lock();
            try {
                Vnode v = node.vnodes().get(k.ino(), k.home(), false);
                v.openKeyRevision = kv.modRevision();
                considerClosing(v);
            } finally {
                node.monitor().unlock();
            }
        }
    }
}
