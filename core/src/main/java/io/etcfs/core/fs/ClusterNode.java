package io.etcfs.core.fs;

import io.etcfs.core.clock.Clock;
import io.etcfs.core.clock.Monitor;
import io.etcfs.core.clock.Tasks;
import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Vnode;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.fence.FenceController;
import io.etcfs.core.fence.FencedDevice;
import io.etcfs.core.fence.Fencer;
import io.etcfs.core.kernel.KernelCache;
import io.etcfs.core.lock.HeldLock;
import io.etcfs.core.lock.LockOwner;
import io.etcfs.core.lock.LockRequest;
import io.etcfs.core.lock.Locks;
import io.etcfs.core.pipeline.Pipeline;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.NameHash;
import io.etcfs.core.record.proto.BatchMarker;
import io.etcfs.core.record.proto.Membership;
import io.etcfs.core.record.proto.Super;
import io.etcfs.core.session.NodeStoppedError;
import io.etcfs.core.session.OneHistory;
import io.etcfs.core.session.Session;
import io.etcfs.core.session.StartException;
import io.etcfs.core.space.InodeNumbers;
import io.etcfs.core.space.Space;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreRoom;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.token.Blocked;
import io.etcfs.core.token.Host;
import io.etcfs.core.token.Tokens;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.IntPredicate;
import java.util.random.RandomGenerator;

/** One node of the cluster: its parts put together, and what the kernel asks passed on to them. */
public final class ClusterNode implements Operations {
    /** @param fencer how a node that vanished is cut off from the device */
    public record Ports(MetadataStore store, BlockDevice device, Clock clock, Tasks tasks, RandomGenerator random, Fencer fencer) {}

    /**
     * @param incarnation       a new name for each process
     * @param requestDeadlineNs how long an operation waits before it fails with ETIMEDOUT
     * @param maxTxnOps         operations in one etcd transaction, as etcd is configured (128 by default)
     * @param maxCachedBytes    about how much of the heap may be taken by names, inodes and extents whose tokens are not in use
     */
    public record Settings(String filesystem, String node, String incarnation, Membership membership, long requestDeadlineNs, int maxTxnOps, long maxCachedBytes) {}

    public static final long DEFAULT_DEADLINE_NS = 20_000_000_000L;
    private static final long SESSION_TTL_S = 2;
    private static final long MEMBERSHIP_TTL_S = 10;
    /** Also after everything else took all the time: to end the session. */
    private static final long CLOSE_NS = 2_000_000_000L;
    /** After an outage in which this node lost its session, others are on their way back, too. */
    private static final long OUTAGE_OVER_NS = 4_000_000_000L;
    private static final long USAGE_FRESH_NS = 50_000_000L;
    private static final System.Logger LOG = System.getLogger(ClusterNode.class.getName());

    private final Node node;
    private final Settings settings;
    private final OpenFiles openFiles;
    private final Names names;
    private final Renames renames;
    private final Xattrs xattrs;
    private final Bytes bytes;
    private final Upkeep upkeep;
    private final Locks locks;
    private final Locking locking;
    private final FenceController fences;
    private final LeftOpen leftOpen;
    private final KnownHistory history;
    private Consumer<String> onStop = reason -> {};
    private FilesystemStatus lastStatus;
    private long lastStatusNs = Long.MIN_VALUE / 2;
    private boolean stopped;

    /** @param superblockCreated the create revision of the superblock's record, as it was read */
    public ClusterNode(Ports ports, Settings settings, Super superblock, long superblockCreated) {
        this.settings = settings;
        Monitor monitor = new Monitor(ports.clock());
        Keys keys = new Keys(settings.filesystem());
        NameHash nameHash = new NameHash(superblock.getNameHashKey().toByteArray());
        Tasks tasks = new NodeTasks(ports.tasks(), this::stop);
        MetadataStore store = new OneHistory(ports.store(), tasks, keys.superblock(), this::stop);
        Session session = new Session(monitor, store, tasks, keys, settings.node(), settings.incarnation(), settings.membership(), ports.fencer(), superblockCreated, SESSION_TTL_S, MEMBERSHIP_TTL_S);
        BlockDevice device = new FencedDevice(ports.device(), session::trusted, this::stop);
        Pipeline pipeline = new Pipeline(monitor, store, device, session, keys, settings.node(), settings.maxTxnOps());
        Tokens tokens = new Tokens(monitor, store, tasks, session, pipeline, keys, settings.node(), settings.maxCachedBytes());
        long deviceBlocks = Math.min(superblock.getDeviceSize(), ports.device().sizeBytes()) / BlockDevice.BLOCK_BYTES;
        Space space = new Space(monitor, store, device, tasks, session, pipeline, keys, settings.node(), superblock.getArenaSize() / BlockDevice.BLOCK_BYTES, deviceBlocks);
        InodeNumbers numbers = new InodeNumbers(monitor, store, tasks, session, keys, ports.random());
        Vnodes vnodes = new Vnodes();
        KernelView view = new KernelView(monitor, session, vnodes, nameHash);
        Journal journal = new Journal(pipeline, space, keys, settings.node());
        Waiting waiting = new Waiting(monitor, settings.requestDeadlineNs(), e -> {
            pipeline.stop();
            tasks.start("failed-operation", () -> {
                if (e instanceof Error error) {
                    throw error;
                }
                throw (RuntimeException) e;
            });
        });
        node = new Node(monitor, store, device, tasks, keys, settings.node(), nameHash, session, pipeline, tokens, space, numbers, vnodes, view, journal, waiting);
        waiting.reading(tokens::lastPageNs);
        waiting.storeTakesNothing(() -> space.storeRoom() == StoreRoom.NONE);
        openFiles = new OpenFiles(node);
        Namespace namespace = new Namespace(node, openFiles);
        names = new Names(node, openFiles, namespace);
        renames = new Renames(node, namespace);
        xattrs = new Xattrs(node, namespace);
        bytes = new Bytes(node, openFiles);
        history = new KnownHistory(monitor, store, ports.device(), device, superblock, keys, settings.node());
        upkeep = new Upkeep(node, settings.maxCachedBytes(), history);
        locks = new Locks(monitor, store, tasks, session, keys, settings.node(), this::locksLost);
        locking = new Locking(node, locks);
        leftOpen = new LeftOpen(node, openFiles);
        fences = new FenceController(monitor, store, tasks, keys, settings.node(), ports.fencer(), new FenceHost());
        tokens.host(new TokenHost());
        session.listener(new SessionListener());
    }

    // ---- life

    /** Called once, when the node may do nothing more: cut the kernel off and end the process. */
    public void onStop(Consumer<String> handler) {
        this.onStop = handler;
    }

    public void start() throws StartException {
        start(() -> false);
    }

    /**
     * Opens the session, reads what this node owns and begins to publish.
     *
     * @param unwanted asked from time to time while the session is being opened: whether to give up
     */
    public void start(BooleanSupplier unwanted) throws StartException {
        Fault.warn();
        history.check();
        List<KeyValue> early = Fault.OPENED_READ_EARLY.on() ? openFiles.openedBefore() : null;
        node.session().open(unwanted);
        try {
            node.pipeline().start(node.tasks());
            node.space().start();
            node.tokens().start();
            locks.start();
            openFiles.cleanUpAfterRestart(early != null ? early : openFiles.openedBefore());
        } catch (StartException e) {
            // As a member that is gone it would be fenced.
            leave(CLOSE_NS);
            throw e;
        }
        history.tryWrite();
        upkeep.start(node.tasks());
        fences.start();
    }

    /** @param ended whether the process of that number is gone or about to be, whatever else may be said of it */
    public void processes(IntPredicate ended) {
        locking.processes(ended);
    }

    public void attachKernel(KernelCache kernel) {
        node.view().attach(kernel);
    }

    /** Ends the node as a crash would: nothing more is published, every operation fails. */
    private void stop(String reason) {
        node.monitor().lock();
        try {
            if (stopped) {
                return;
            }
            stopped = true;
        } finally {
            node.monitor().unlock();
        }
        LOG.log(System.Logger.Level.ERROR, "node stops: {0}", reason);
        endParts();
        node.session().abandon();
        onStop.accept(reason);
    }

    private void endParts() {
        fences.stop();
        node.waiting().stop();
        node.pipeline().stop();
        node.tokens().stop();
        locks.stop();
        node.space().stop();
    }

    /** Everything acknowledged so far is published when it returns. */
    public void sync(long timeoutNs) throws FsException {
        push(new Call(0, 0, 0, 0, true, Call.Interruption.NEVER), timeoutNs);
        try {
            node.pipeline().flushDevice();
        } catch (io.etcfs.core.device.DeviceException e) {
            throw new FsException(Errno.EIO);
        }
    }

    private void push(Call call, long timeoutNs) throws FsException {
        long until = node.monitor().nowNs() + timeoutNs;
        long[] upTo = {-1};
        node.waiting().run(call, a -> {
            if (upTo[0] < 0) {
                upTo[0] = node.pipeline().lastNumber();
            }
            if (!node.pipeline().published(upTo[0])) {
                node.pipeline().push(upTo[0]);
                if (node.monitor().nowNs() > until) {
                    throw new FsException(Errno.ETIMEDOUT);
                }
                throw Blocked.INSTANCE;
            }
            return null;
        });
    }

    /**
     * A clean departure, after the kernel was unmounted: everything is published, every token and arena given back, the departure recorded. If the time
     * does not suffice the node goes like one that crashed, and its session and membership end by themselves.
     *
     * @param timeoutNs while arenas are being given back it begins again with each
     * @return whether it was clean: if not, the node counts as vanished
     */
    public boolean leave(long timeoutNs) {
        long until = node.monitor().nowNs() + timeoutNs;
        boolean published = false;
        fences.stop();
        try {
            node.session().awaitTrust(until);
            // Before that is over there can always be one more to be closed.
            leftOpen.end(until);
            awaitClosers(until);
            sync(timeoutNs);
            boolean released = node.tokens().releaseAll(until);
            node.space().prepareToRelease();
            sync(Math.max(1, until - node.monitor().nowNs()));
            history.tryWrite();
            published = released;
        } catch (FsException e) {
            LOG.log(System.Logger.Level.WARNING, "not everything could be published before leaving: {0}", e.errno());
        }
        endParts();
        boolean clean = false;
        try {
            clean = published && depart(Math.max(until, node.monitor().nowNs() + CLOSE_NS), Math.max(timeoutNs, CLOSE_NS));
        } finally {
            if (!clean) {
                LOG.log(System.Logger.Level.WARNING, "left without a clean departure");
                node.session().abandon();
            }
        }
        return clean;
    }

    private boolean depart(long untilNs, long patienceNs) {
        // Nor may a write of a lost session land in an arena that others have by then: who can't wait for it keeps them. Without a session nothing that is still on its
        // way commits: no arena is claimed behind our back.
        return node.pipeline().awaitDeviceQuiet(untilNs) && node.session().end(untilNs) && node.space().releaseArenas(untilNs, patienceNs)
                && node.session().depart(Math.max(untilNs, node.monitor().nowNs() + CLOSE_NS));
    }

    /** What was removed while it was open is freed before the tokens go: nobody else would see to it until this node is back. */
    private void awaitClosers(long untilNs) {
        node.monitor().lock();
        try {
            openFiles.allForgotten();
            while (openFiles.busy() && node.monitor().nowNs() < untilNs && !node.waiting().stopped()) {
                node.monitor().awaitQuietly(Math.min(untilNs, node.monitor().nowNs() + 100_000_000L));
            }
        } finally {
            node.monitor().unlock();
        }
    }

    /** Returns if the node's state can be looked at: whoever keeps the monitor for ever keeps every request. */
    public void pulse() {
        node.monitor().with(() -> node.session().live());
    }

    public NodeStatus status() {
        return node.monitor().with(() -> {
            Tokens.Counters t = node.tokens().counters();
            Pipeline.Counters p = node.pipeline().counters();
            return new NodeStatus(settings.node(), node.session().revision(), Math.max(0, node.session().trustedUntilNs() - node.monitor().nowNs()), node.session().generation(), t.held(),
                    t.acquires(), t.recalls(), t.trimmed(), t.cachedBytes(), settings.maxCachedBytes(), p.batches(), p.operations(), p.blocksWritten(), p.dataNs(), p.transactionNs(), p.waiting(), node.space().arenaCount(), node.vnodes().count(), openFiles.count());
        });
    }

    private final class TokenHost implements Host {
        @Override
        public boolean forgetNames(Domain domain) {
            return node.view().forgetNames(domain);
        }

        @Override
        public void dropCached(Domain domain, boolean keepShared) {
            node.view().dropCached(domain, keepShared);
        }

        @Override
        public boolean busy(Domain domain) {
            for (Vnode v : node.vnodes().withHome(domain.id)) {
                if (v.readers > 0 || v.changing) {
                    return true;
                }
            }
            return false;
        }

        @Override
        public List<Runnable> pinsOfOpenFiles(Domain domain) {
            return openFiles.pins(domain);
        }

        @Override
        public List<Long> inUse(Domain domain) {
            return openFiles.inUse(domain);
        }

        @Override
        public boolean inUse(long ino) {
            return openFiles.inUse(node.vnodes().known(ino));
        }

        @Override
        public void loaded(Domain domain) {
            domain.remainders.forEach((ino, deadFrom) -> openFiles.finishRemainder(domain.id, ino));
        }

        @Override
        public void lost(Domain domain) {
            node.view().lost(domain);
        }
    }

    private final class FenceHost implements FenceController.Host {
        @Override
        public boolean mayJudge() {
            return node.session().trusted() && node.monitor().nowNs() >= node.session().reopenedAtNs() + OUTAGE_OVER_NS;
        }

        @Override
        public void takeOver(String gone, long doneRevision) throws StoreUnavailableException, StoreRejectedException {
            leftOpen.takeOver(gone, doneRevision);
        }
    }

    private final class SessionListener implements Session.Listener {
        @Override
        public void sessionLost() {
            node.monitor().lock();
            try {
                node.pipeline().sessionLost();
                node.tokens().sessionLost();
                locks.sessionLost();
            } finally {
                node.monitor().unlock();
            }
        }

        @Override
        public void awaitDeviceQuiet() {
            node.pipeline().awaitDeviceQuiet();
        }

        @Override
        public void sessionReopened(BatchMarker markerFound) {
            node.monitor().lock();
            try {
                node.pipeline().settle(markerFound, settings.incarnation());
            } finally {
                node.monitor().unlock();
            }
            if (!node.tokens().takeBack()) {
                return;
            }
            node.monitor().lock();
            try {
                node.pipeline().sessionRestored();
            } finally {
                node.monitor().unlock();
            }
        }
    }

    // ---- operations

    @Override
    public boolean grantsStand(Call call) {
        return node.view().grantsStand(call);
    }

    @Override
    public void replied(Call call) {
        node.monitor().lock();
        try {
            List<Domain> grants = call.takeGrants();
            if (grants != null) {
                long after = node.monitor().nowNs() - call.grantedNs();
                for (Domain d : grants) {
                    d.repliesInFlight--;
                    if (!call.grantsWithdrawn()) {
                        node.view().replied(d, after);
                    }
                    if (d.repliesInFlight == 0 && d.recalling) {
                        node.monitor().changed();
                    }
                }
            }
        } finally {
            node.monitor().unlock();
        }
    }

    @Override
    public Entry lookup(Call call, long parent, byte[] name) throws FsException {
        Entry entry = names.lookup(call, parent, name);
        Fault.delayReply();
        return entry;
    }

    @Override
    public void forget(long ino, long count) {
        names.forget(ino, count);
    }

    @Override
    public Attr getattr(Call call, long ino, long handle) throws FsException {
        call.through(handle);
        return names.getattr(call, ino);
    }

    @Override
    public Attr setattr(Call call, long ino, Change change) throws FsException {
        call.changes();
        call.through(change.handle());
        return change.size() != null ? bytes.setSize(call, ino, change) : names.setattr(call, ino, change);
    }

    @Override
    public byte[] readlink(Call call, long ino) throws FsException {
        return names.readlink(call, ino);
    }

    @Override
    public Entry symlink(Call call, long parent, byte[] name, byte[] target) throws FsException {
        call.changes();
        return names.symlink(call, parent, name, target);
    }

    @Override
    public Entry mknod(Call call, long parent, byte[] name, int mode, int umask, int rdev) throws FsException {
        call.changes();
        return names.mknod(call, parent, name, mode, umask, rdev);
    }

    @Override
    public Entry mkdir(Call call, long parent, byte[] name, int mode, int umask) throws FsException {
        call.changes();
        return names.mkdir(call, parent, name, mode, umask);
    }

    @Override
    public void unlink(Call call, long parent, byte[] name) throws FsException {
        call.changes();
        names.unlink(call, parent, name);
    }

    @Override
    public void rmdir(Call call, long parent, byte[] name) throws FsException {
        call.changes();
        names.rmdir(call, parent, name);
    }

    @Override
    public void rename(Call call, long parent, byte[] name, long newParent, byte[] newName, int flags) throws FsException {
        call.changes();
        renames.rename(call, parent, name, newParent, newName, flags);
    }

    @Override
    public Entry link(Call call, long ino, long newParent, byte[] newName) throws FsException {
        call.changes();
        return names.link(call, ino, newParent, newName);
    }

    @Override
    public Opened open(Call call, long ino, int flags, boolean killPrivileges) throws FsException {
        if ((flags & Bytes.O_TRUNC) != 0) {
            call.changes();
        }
        return bytes.open(call, ino, flags, killPrivileges);
    }

    @Override
    public Created tmpfile(Call call, long parent, int mode, int umask, int flags) throws FsException {
        call.changes();
        return names.tmpfile(call, parent, mode, umask, flags);
    }

    @Override
    public Created create(Call call, long parent, byte[] name, int mode, int umask, int flags) throws FsException {
        call.changes();
        return names.create(call, parent, name, mode, umask, flags, bytes);
    }

    @Override
    public MemorySegment read(Call call, long ino, long handle, long offset, int size, int openFlags, MemorySegment scratch) throws FsException {
        call.through(handle);
        MemorySegment read = bytes.read(call, ino, handle, offset, size, openFlags, scratch);
        Fault.delayReply();
        return read;
    }

    @Override
    public int write(Call call, long ino, long handle, long offset, MemorySegment data, int openFlags, boolean fromPageCache, boolean killPrivileges) throws FsException {
        if (!fromPageCache) {
            // Write-back comes through whatever handle the kernel finds, and its bytes are lost where it fails: it waits for as long as it may.
            call.through(handle);
            call.changes();
        }
        return bytes.write(call, ino, handle, offset, data, openFlags, fromPageCache, killPrivileges);
    }

    @Override
    public void flush(Call call, long ino, long handle, long lockOwner) throws FsException {
        boolean hasLocks = locking.flushed(ino, handle, new LockOwner(false, lockOwner));
        // Errors of other writes were answered by the writes. Locks go after the bytes, and also if those could not be written.
        call.through(handle);
        try {
            bytes.awaitWriteBack(call, ino);
        } finally {
            if (hasLocks) {
                call.through(-1);
                locking.unlock(call, ino, new LockOwner(false, lockOwner), 0, Long.MAX_VALUE);
            }
        }
    }

    @Override
    public LockRequest.Conflict getlk(Call call, long ino, long handle, HeldLock wanted) throws FsException {
        call.through(handle);
        return locking.test(call, ino, handle, wanted);
    }

    @Override
    public void lock(Call call, long ino, long handle, HeldLock wanted, boolean wait) throws FsException {
        call.through(handle);
        locking.lock(call, ino, handle, wanted, wait);
    }

    @Override
    public void unlock(Call call, long ino, long handle, LockOwner owner, long start, long end) throws FsException {
        locking.unlock(call, ino, owner, start, end);
        call.through(handle);
        node.waiting().run(call, a -> null);
    }

    private void locksLost(long ino, Set<Long> handles) {
        for (long id : handles) {
            if (openFiles.isOpen(id)) {
                node.waiting().unsound(id);
            }
        }
        Vnode v = node.vnodes().known(ino);
        if (v != null) {
            node.view().dropPagesOnce(v);
        }
    }

    /** All locks that processes of this node hold or wait for. */
    public List<Locks.Listed> fileLocks() {
        return node.monitor().with(locks::list);
    }

    @Override
    public void release(Call call, long ino, long handle) {
        node.monitor().lock();
        try {
            openFiles.release(handle);
            locks.released(ino, handle);
        } finally {
            node.monitor().unlock();
        }
    }

    @Override
    public void fsync(Call call, long ino, long handle, boolean dataOnly) throws FsException {
        call.changes();
        call.through(handle);
        bytes.fsync(call, ino, dataOnly);
    }

    @Override
    public Opened opendir(Call call, long ino) throws FsException {
        return node.waiting().run(call, a -> {
            Vnode v = node.vnodes().require(ino);
            if (!v.directory) {
                throw new FsException(Errno.ENOTDIR);
            }
            return new Opened(openFiles.open(v, 0).id, 0);
        });
    }

    @Override
    public void readdir(Call call, long ino, long handle, long cookie, boolean withAttributes, DirectorySink sink) throws FsException {
        names.readdir(call, ino, cookie, withAttributes, sink);
    }

    @Override
    public void releasedir(Call call, long ino, long handle) {
        release(call, ino, handle);
    }

    /** A directory's names are durable when everything done before is. */
    @Override
    public void fsyncdir(Call call, long ino, long handle, boolean dataOnly) throws FsException {
        call.changes();
        push(call, settings.requestDeadlineNs());
        try {
            node.pipeline().flushDevice();
        } catch (io.etcfs.core.device.DeviceException e) {
            throw new FsException(Errno.EIO);
        }
    }

    @Override
    public FilesystemStatus statfs(Call call) throws FsException {
        FilesystemStatus fresh = node.monitor().with(() -> node.monitor().nowNs() - lastStatusNs < USAGE_FRESH_NS ? lastStatus : null);
        if (fresh != null) {
            return fresh;
        }
        if (!call.mayWait()) {
            throw MustWait.INSTANCE;
        }
        FilesystemStatus status = node.waiting().ask(call, () -> {
            Space.Usage u = node.space().usage();
            long files = node.inodeNumbers().upperBound();
            // Numbers of inodes are not scarce: what limits them is etcd, and its size is not counted in inodes.
            return new FilesystemStatus(BlockDevice.BLOCK_BYTES, u.totalBlocks(), u.freeBlocks(), u.freeBlocks(), files + (1L << 32), 1L << 32, Names.NAME_MAX);
        });
        node.monitor().lock();
        try {
            lastStatus = status;
            lastStatusNs = node.monitor().nowNs();
        } finally {
            node.monitor().unlock();
        }
        return status;
    }

    @Override
    public void setxattr(Call call, long ino, byte[] name, byte[] value, int flags) throws FsException {
        call.changes();
        xattrs.setxattr(call, ino, name, value, flags);
    }

    @Override
    public byte[] getxattr(Call call, long ino, byte[] name) throws FsException {
        return xattrs.getxattr(call, ino, name);
    }

    @Override
    public List<byte[]> listxattr(Call call, long ino) throws FsException {
        return xattrs.listxattr(call, ino);
    }

    @Override
    public void removexattr(Call call, long ino, byte[] name) throws FsException {
        call.changes();
        xattrs.removexattr(call, ino, name);
    }

    @Override
    public long lseek(Call call, long ino, long handle, long offset, int whence) throws FsException {
        call.through(handle);
        return bytes.lseek(call, ino, offset, whence);
    }

    @Override
    public void fallocate(Call call, long ino, long handle, long offset, long length, int mode) throws FsException {
        call.changes();
        call.through(handle);
        bytes.fallocate(call, ino, handle, offset, length, mode);
    }
}
