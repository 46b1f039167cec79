package io.etcfs.testkit.sim;

import io.etcfs.core.fs.Attributes;
import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.fs.MustWait;
import io.etcfs.core.fs.Operations;
import io.etcfs.core.kernel.KernelCache;
import io.etcfs.core.session.NodeStoppedError;
import io.etcfs.core.lock.HeldLock;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.IntConsumer;

/**
 * The kernel of one mount, as far as coherence needs it: names, attributes and pages it caches and for how long, the locks it holds while it asks (a directory's
 * for LOOKUP and changes, an inode's for writes, a page's for READ and partial WRITE), notifications that wait for those locks, and answers that it
 * takes in late. From Linux 6.18, fs/fuse.
 */
final class SimKernel implements KernelCache {
    static final int PAGE = 4096;
    /** Until a notification about a page that was cut has come. */
    private static final long CUT_SEEN_NS = 2_000_000L;
    private static final int O_RDWR = 2;
    private static final int O_CREAT_EXCL = 0300;
    static final int O_APPEND = 02000;
    private static final long MS = 1_000_000L;
    private static final long LIMIT_NS = 120_000 * MS;

    private final SimProcess daemon;
    /** Threads in the kernel: they are not stopped with the daemon. */
    private final SimProcess host;
    private final Scheduler scheduler;
    private final Weather weather;
    private final Random random;
    private final ClusterNode node;
    private final Sessions sessions;
    private boolean aborted;
    private long requests;
    private long version;
    /** In the order of asking: an order of hash codes would be another one in each process, and a seed another run. */
    private final Set<Answer<?>> waiting = new LinkedHashSet<>();

    private record Name(long dir, String name) {}

    /** {@code ino} 0: there is no such name. */
    private record Dentry(long ino, long untilNs) {}

    /** What pages need to know of the sessions of the machine's node. */
    interface Sessions {
        /** The number of the last call or return so far, of {@link Op#called}. */
        long calls();

        /** The last session that etcd has or had, 0 if none. */
        long latest();

        /** {@link #calls} when the session had ended; 0: it has not. */
        long endedAt(long session);
    }

    /** A page came with an answer under that session, to a request of then ({@link Sessions#calls}). */
    private record Filled(long session, long asked) {}

    /** What is known of an inode while the kernel has a reference. */
    private static final class Known {
        final long ino;
        boolean directory;
        long lookups;
        long size;
        Attributes attributes;
        long attributesUntilNs;
        /** Somebody here is changing the size: answers do not tell it (FUSE_I_SIZE_UNSTABLE). */
        boolean unstable;
        /** The last answer that told the size was refused, as it was asked for before something else was said of the inode: {@link #size} may be an older one. */
        boolean sizeRefused;
        /** When the page of a new end was cut last. A read that goes on meanwhile, or before the daemon's notification is there, may see it, whoever has written there since that end was told. */
        long cutNs = Long.MIN_VALUE / 2;
        /** The access ACL as it was answered last, null for none; {@code aclKnown}: it is remembered. Not limited in time. */
        SimAcl acl;
        boolean aclKnown;
        /** Raised by whatever makes an answer about the ACL that is on its way too old to be remembered. */
        long aclForgotten;
        /** Raised by whatever makes answers that are on their way too old. */
        long version;
        final TreeMap<Long, byte[]> pages = new TreeMap<>();
        /** Of pages, the last time that all of one came from the daemon or was accepted by it. */
        final Map<Long, Filled> filled = new HashMap<>();
        /** Notifications that drop all pages and are on their way. */
        int pagesGoing;
        /** Of {@link #pages}, those that have bytes of a WRITE that is not answered. */
        final Set<Long> unanswered = new HashSet<>();
        final Map<Long, ReentrantLock> pageLocks = new HashMap<>();
        final ReentrantReadWriteLock names = new ReentrantReadWriteLock();
        final ReentrantLock contents = new ReentrantLock();

        Known(long ino) {
            this.ino = ino;
        }

        void forgetAcl() {
            aclKnown = false;
            aclForgotten++;
        }

        ReentrantLock page(long number) {
            return pageLocks.computeIfAbsent(number, n -> new ReentrantLock());
        }
    }

    private final Map<Name, Dentry> dentries = new HashMap<>();
    /** Entries that a removal or a rename is about which has no answer yet, and their inodes: in use, neither goes when memory is short. */
    private final Map<Name, Long> held = new HashMap<>();
    private final Map<Long, Known> inodes = new HashMap<>();

    /** The daemon is gone: what becomes of a request is not known. */
    static final class Gone extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Gone() {
            super("ENOTCONN", null, false, false);
        }
    }

    SimKernel(SimProcess daemon, SimProcess host, Weather weather, Random random, ClusterNode node, Sessions sessions) {
        this.daemon = daemon;
        this.host = host;
        this.scheduler = daemon.scheduler();
        this.weather = weather;
        this.random = random;
        this.node = node;
        this.sessions = sessions;
        known(1).lookups = 1;
        known(1).directory = true;
    }

    private Known known(long ino) {
        return inodes.computeIfAbsent(ino, Known::new);
    }

    boolean isDirectory(long ino) {
        return known(ino).directory;
    }

    private long lateNs() {
        return weather.has(Weather.Kind.SLOW_KERNEL) && random.nextInt(4) == 0 ? random.nextLong(25 * MS) : random.nextLong(20_000);
    }

    // ---- requests

    private interface Request<R> {
        R ask(Operations fs, Call call) throws FsException;
    }

    private record Reply<R>(R value, FsException refused) {
        /** With all validities 0. */
        @SuppressWarnings("unchecked")
        Reply<R> withoutGrants() {
            Object without = switch (value) {
                case Operations.Entry e -> believedNever(e);
                case Operations.Created c -> new Operations.Created(believedNever(c.entry()), c.opened());
                case Operations.Attr a -> new Operations.Attr(a.attributes(), 0);
                case null, default -> value;
            };
            return new Reply<>((R) without, refused);
        }

        private static Operations.Entry believedNever(Operations.Entry e) {
            return new Operations.Entry(e.ino(), e.generation(), e.attributes(), 0, 0);
        }
    }

    /** Has a thread of the daemon answer: at once on the reader, or on one that may wait. */
    private <R> R ask(Request<R> request) throws FsException {
        if (aborted) {
            throw new Gone();
        }
        Answer<Reply<R>> answer = new Answer<>();
        waiting.add(answer);
        boolean reader = random.nextInt(4) != 0;
        daemon.start("request", () -> {
            Reply<R> reply = null;
            Call call = new Call(++requests, 0, 0, 1, !reader, Call.Interruption.NEVER);
            try {
                try {
                    reply = answered(request, call);
                } catch (MustWait e) {
                    replied(call);
                    call = call.waiting();
                    reply = answered(request, call);
                }
            } catch (NodeStoppedError e) {
                // The device refused the node: it has cut the kernel off.
                return;
            } catch (IllegalStateException e) {
                scheduler.failed(e);
            }
            if (weather.has(Weather.Kind.BUSY_DAEMON) && random.nextInt(8) == 0) {
                daemon.sleep(random.nextLong(250 * MS));
            }
            // Between this look and the write there is no step of another thread.
            Reply<R> written = reply == null || node.grantsStand(call) ? reply : reply.withoutGrants();
            scheduler.after(lateNs(), () -> answer.give(written));
            replied(call);
        });
        boolean given = answer.await(scheduler, scheduler.nowNs() + LIMIT_NS);
        waiting.remove(answer);
        if (!given) {
            throw new IllegalStateException("a request has no answer after " + LIMIT_NS / MS + " ms");
        }
        if (answer.value() == null) {
            throw new Gone();
        }
        if (answer.value().refused != null) {
            throw answer.value().refused;
        }
        return answer.value().value;
    }

    private <R> Reply<R> answered(Request<R> request, Call call) {
        try {
            return new Reply<>(request.ask(node, call), null);
        } catch (FsException e) {
            return new Reply<>(null, e);
        }
    }

    private void replied(Call call) {
        if (call.hasGrants()) {
            node.replied(call);
        }
    }

    /** The connection ends: nobody gets an answer any more. */
    @Override
    public void abort() {
        aborted = true;
        List.copyOf(waiting).forEach(a -> a.give(null));
    }

    // ---- notifications, each on a thread of the daemon's

    @Override
    public boolean canExpireEntries() {
        return true;
    }

    private void notification(Runnable body, Runnable done) {
        // The daemon's thread is in the kernel meanwhile, and comes back to it at the end.
        host.start("notify", () -> {
            scheduler.sleep(lateNs());
            body.run();
            daemon.start("notified", done);
        });
    }

    @Override
    public void invalidateEntry(long parentIno, byte[] name, boolean expireOnly, Runnable done) {
        notification(() -> {
            Known parent = inodes.get(parentIno);
            if (parent != null) {
                parent.names.writeLock().lock();
                dentries.remove(new Name(parentIno, new String(name, StandardCharsets.UTF_8)));
                parent.names.writeLock().unlock();
            }
        }, done);
    }

    @Override
    public void invalidateAttributes(long ino, Runnable done) {
        notification(() -> {
            Known k = inodes.get(ino);
            if (k != null) {
                k.version = ++version;
                k.attributesUntilNs = 0;
                k.forgetAcl();
            }
        }, done);
    }

    @Override
    public void invalidatePages(long ino, long offsetBytes, long lengthBytes, Runnable done) {
        invalidatePages(ino, offsetBytes, lengthBytes, () -> {}, done);
    }

    @Override
    public void invalidatePages(long ino, long offsetBytes, long lengthBytes, Runnable sending, Runnable done) {
        Known whole = lengthBytes == 0 && offsetBytes == 0 ? inodes.get(ino) : null;
        if (whole != null) {
            whole.pagesGoing++;
        }
        notification(() -> {
            Answer<Boolean> said = new Answer<>();
            daemon.start("sending", () -> {
                sending.run();
                said.give(true);
            });
            while (!said.given() && !daemon.isDead()) {
                said.await(scheduler, scheduler.nowNs() + 10 * MS);
            }
            dropPages(ino, offsetBytes, lengthBytes);
            if (whole != null) {
                whole.pagesGoing--;
            }
        }, done);
    }

    private void dropPages(long ino, long offsetBytes, long lengthBytes) {
        Known k = inodes.get(ino);
        if (k == null) {
            return;
        }
        k.version = ++version;
        k.attributesUntilNs = 0;
        k.forgetAcl();
        long from = offsetBytes / PAGE;
        long to = lengthBytes == 0 ? Long.MAX_VALUE : (offsetBytes + lengthBytes - 1) / PAGE;
        Set<Long> there = new TreeSet<>(k.pages.keySet());
        there.addAll(k.pageLocks.keySet());
        for (long page : there) {
            if (page >= from && page <= to) {
                ReentrantLock lock = k.page(page);
                lock.lock();
                k.pages.remove(page);
                lock.unlock();
            }
        }
    }

    // ---- what answers say

    private Known entry(Name name, Operations.Entry e, long askedVersion) {
        long now = scheduler.nowNs();
        dentries.put(name, new Dentry(e.attributes() == null ? 0 : e.ino(), now + e.entryValidNs()));
        if (e.attributes() == null) {
            return null;
        }
        Known k = known(e.ino());
        k.lookups++;
        k.directory = (e.attributes().mode() & 0170000) == 0040000;
        attributes(k, e.attributes(), e.attributesValidNs(), askedVersion);
        return k;
    }

    private void attributes(Known k, Attributes a, long validNs, long askedVersion) {
        if (k.version > askedVersion || k.unstable) {
            k.attributesUntilNs = 0;
            k.sizeRefused |= a.size() != k.size;
            return;
        }
        k.sizeRefused = false;
        k.attributes = a;
        k.attributesUntilNs = scheduler.nowNs() + validNs;
        resize(k, a.size());
    }

    /**
     * A file that became shorter loses the pages behind its end, and what the last one has there: also one that is being read, whose answer may be from before, as
     * truncate_pagecache waits for its lock.
     */
    private void resize(Known k, long size) {
        long before = k.size;
        k.size = size;
        if (size >= before) {
            return;
        }
        TreeSet<Long> there = new TreeSet<>(k.pages.keySet());
        there.addAll(k.pageLocks.keySet());
        for (long page : there.tailSet(size / PAGE)) {
            ReentrantLock lock = k.page(page);
            lock.lock();
            try {
                if (page * PAGE >= size) {
                    k.pages.remove(page);
                } else if (k.pages.get(page) instanceof byte[] last) {
                    Arrays.fill(last, (int) (size % PAGE), PAGE, (byte) 0);
                    k.cutNs = scheduler.nowNs();
                }
            } finally {
                lock.unlock();
            }
        }
    }

    private static byte[] bytes(String name) {
        return name.getBytes(StandardCharsets.UTF_8);
    }

    // ---- names

    /** 0: there is no such name. */
    long lookup(long dir, String name) throws FsException {
        Known d = known(dir);
        Name key = new Name(dir, name);
        Dentry cached = dentries.get(key);
        if (cached != null && scheduler.nowNs() < cached.untilNs) {
            return cached.ino;
        }
        if (cached != null && cached.ino != 0) {
            // Asked again without the directory's lock. The answer is about that entry: where it was removed, moved or replaced meanwhile nothing is remembered of it.
            long asked = version;
            Operations.Entry e = ask((fs, call) -> fs.lookup(call, dir, bytes(name)));
            Dentry meanwhile = dentries.get(key);
            Known k = entry(key, e, asked);
            if (meanwhile == null) {
                dentries.remove(key);
            } else if (meanwhile != cached) {
                dentries.put(key, meanwhile);
            }
            return k == null ? 0 : k.ino;
        }
        d.names.readLock().lock();
        try {
            return lookupLocked(key);
        } finally {
            d.names.readLock().unlock();
        }
    }

    private long lookupLocked(Name key) throws FsException {
        return entryLocked(key).ino;
    }

    private Dentry entryLocked(Name key) throws FsException {
        Dentry cached = dentries.get(key);
        if (cached != null && scheduler.nowNs() < cached.untilNs) {
            return cached;
        }
        long asked = version;
        Known k = entry(key, ask((fs, call) -> fs.lookup(call, key.dir, bytes(key.name))), asked);
        // The kernel may have let go of it already.
        Dentry now = dentries.get(key);
        return now != null ? now : new Dentry(k == null ? 0 : k.ino, 0);
    }

    private interface Change<R> {
        R make() throws FsException;
    }

    private <R> R changing(long dir, Change<R> change) throws FsException {
        ReentrantReadWriteLock lock = known(dir).names;
        lock.writeLock().lock();
        try {
            return change.make();
        } finally {
            known(dir).attributesUntilNs = 0;
            known(dir).version = ++version;
            lock.writeLock().unlock();
        }
    }

    record Made(long ino, long handle) {}

    Made create(long dir, String name) throws FsException {
        return changing(dir, () -> {
            Name key = new Name(dir, name);
            if (lookupLocked(key) != 0) {
                throw new FsException(Errno.EEXIST);
            }
            long asked = version;
            Operations.Created c = ask((fs, call) -> fs.create(call, dir, bytes(name), Program.modeOf(Op.Kind.CREATE), Program.UMASK, O_RDWR | O_CREAT_EXCL));
            entry(key, c.entry(), asked);
            return new Made(c.entry().ino(), c.opened().handle());
        });
    }

    /** O_TMPFILE. No name is made, and the kernel holds the directory's lock for nobody else's sake. */
    Made tmpfile(long dir) throws FsException {
        Known d = known(dir);
        d.names.readLock().lock();
        try {
            long asked = version;
            Operations.Created c = ask((fs, call) -> fs.tmpfile(call, dir, Program.modeOf(Op.Kind.TMPFILE), Program.UMASK, O_RDWR));
            Known k = known(c.entry().ino());
            k.lookups++;
            attributes(k, c.entry().attributes(), c.entry().attributesValidNs(), asked);
            return new Made(k.ino, c.opened().handle());
        } finally {
            d.names.readLock().unlock();
        }
    }

    long mkdir(long dir, String name) throws FsException {
        return changing(dir, () -> {
            Name key = new Name(dir, name);
            if (lookupLocked(key) != 0) {
                throw new FsException(Errno.EEXIST);
            }
            long asked = version;
            return entry(key, ask((fs, call) -> fs.mkdir(call, dir, bytes(name), Program.modeOf(Op.Kind.MKDIR), Program.UMASK)), asked).ino;
        });
    }

    void link(long ino, long dir, String name) throws FsException {
        changing(dir, () -> {
            Name key = new Name(dir, name);
            if (lookupLocked(key) != 0) {
                throw new FsException(Errno.EEXIST);
            }
            long asked = version;
            entry(key, ask((fs, call) -> fs.link(call, ino, dir, bytes(name))), asked);
            return null;
        });
    }

    /** Returns what had the name. */
    long remove(long dir, String name, boolean directory) throws FsException {
        return changing(dir, () -> {
            Name key = new Name(dir, name);
            long ino = lookupLocked(key);
            if (ino == 0) {
                throw new FsException(Errno.ENOENT);
            }
            if (directory != known(ino).directory) {
                throw new FsException(directory ? Errno.ENOTDIR : Errno.EISDIR);
            }
            held.put(key, ino);
            try {
                ask((fs, call) -> {
                    if (directory) {
                        fs.rmdir(call, dir, bytes(name));
                    } else {
                        fs.unlink(call, dir, bytes(name));
                    }
                    return true;
                });
            } finally {
                held.remove(key);
                dentries.remove(key);
                known(ino).attributesUntilNs = 0;
                known(ino).version = ++version;
            }
            return ino;
        });
    }

    void rename(long dir, String name, long toDir, String toName) throws FsException {
        // In a fixed order; the kernel's own order does not matter here.
        changing(Math.min(dir, toDir), () -> dir == toDir ? renameLocked(dir, name, toDir, toName) : changing(Math.max(dir, toDir), () -> renameLocked(dir, name, toDir, toName)));
    }

    private Object renameLocked(long dir, String name, long toDir, String toName) throws FsException {
        Name from = new Name(dir, name);
        Name to = new Name(toDir, toName);
        // What the two entries are about as it begins: who looks for one of the names meanwhile, without the directory's lock, may be answered as after it.
        Dentry source = entryLocked(from);
        if (source.ino == 0) {
            throw new FsException(Errno.ENOENT);
        }
        held.put(from, source.ino);
        try {
            Dentry target = entryLocked(to);
            held.put(to, target.ino);
            renameHeld(from, source, to, target);
        } finally {
            held.remove(from);
            held.remove(to);
        }
        return null;
    }

    private void renameHeld(Name from, Dentry source, Name to, Dentry target) throws FsException {
        Dentry moved = null;
        try {
            ask((fs, call) -> {
                fs.rename(call, from.dir, bytes(from.name), to.dir, bytes(to.name), 0);
                return true;
            });
            // The entry moves as it is: it is believed under its new name for as long as it was under the old one.
            Dentry latest = dentries.get(from);
            moved = latest.ino == source.ino ? latest : source;
        } finally {
            dentries.remove(from);
            dentries.remove(to);
            for (Dentry d : List.of(source, target)) {
                if (d.ino != 0) {
                    known(d.ino).attributesUntilNs = 0;
                    known(d.ino).version = ++version;
                }
            }
            if (moved != null) {
                dentries.put(to, moved);
            }
        }
    }

    /** A piece of a listing. {@code end}: the offset at which the next one begins; the same as the offset of this one: there is no more. */
    record Listing(Map<String, Long> names, long end) {}

    /** @param withAttributes the daemon is asked for them, too; nothing is done with them */
    Listing readdir(long dir, long offset, boolean withAttributes) throws FsException {
        Known d = known(dir);
        d.names.readLock().lock();
        try {
            return ask((fs, call) -> {
                Map<String, Long> names = new TreeMap<>();
                long[] end = {offset};
                fs.readdir(call, dir, 0, offset, withAttributes, new Operations.DirectorySink() {
                    @Override
                    public boolean hasRoomFor(int nameLength) {
                        return true;
                    }

                    @Override
                    public void add(byte[] name, long ino, int type, long cookie, Operations.Entry entry) {
                        String n = new String(name, StandardCharsets.UTF_8);
                        end[0] = cookie;
                        if (!n.equals(".") && !n.equals("..")) {
                            names.put(n, ino);
                        }
                        if (entry != null) {
                            fs.forget(ino, 1);
                        }
                    }
                });
                return new Listing(names, end[0]);
            });
        } finally {
            d.names.readLock().unlock();
        }
    }

    // ---- inodes

    Attributes stat(long ino) throws FsException {
        Known k = known(ino);
        if (k.attributes == null || scheduler.nowNs() >= k.attributesUntilNs) {
            k.forgetAcl();
            long asked = version;
            Operations.Attr a = ask((fs, call) -> fs.getattr(call, ino, -1));
            attributes(k, a.attributes(), a.validNs(), asked);
            return a.attributes();
        }
        return k.attributes;
    }

    void truncate(long ino, long size) throws FsException {
        setattr(ino, new Operations.Change(null, null, null, size, null, null, null, -1, false));
    }

    void chmod(long ino, int mode) throws FsException {
        setattr(ino, new Operations.Change(mode, null, null, null, null, null, null, -1, false));
        known(ino).forgetAcl();
    }

    private void setattr(long ino, Operations.Change change) throws FsException {
        Known k = known(ino);
        k.contents.lock();
        k.unstable |= change.size() != null;
        try {
            long asked = version;
            Operations.Attr a = ask((fs, call) -> fs.setattr(call, ino, change));
            // Not believed where the inode has changed since it was asked (from Linux 6.16 on).
            k.attributesUntilNs = k.version > asked ? 0 : scheduler.nowNs() + a.validNs();
            k.version = ++version;
            k.attributes = a.attributes();
            k.sizeRefused = false;
            resize(k, a.attributes().size());
        } finally {
            k.unstable = false;
            k.contents.unlock();
        }
    }

    /**
     * What a permission check finds (fuse_permission, check_acl): where attributes are not believed any more they are asked for, which forgets the ACL; one that is
     * remembered then is used, however old it is. One that is asked for is remembered, unless something was said of the inode meanwhile. Null: there is none.
     */
    SimAcl access(long ino) throws FsException {
        stat(ino);
        Known k = known(ino);
        if (k.aclKnown) {
            return k.acl;
        }
        long forgotten = k.aclForgotten;
        SimAcl found;
        try {
            found = SimAcl.decode(ask((fs, call) -> fs.getxattr(call, ino, SimAcl.ACCESS)));
        } catch (FsException e) {
            if (e.errno() != Errno.ENODATA) {
                throw e;
            }
            found = null;
        }
        if (k.aclForgotten == forgotten) {
            k.acl = found;
            k.aclKnown = true;
        }
        return found;
    }

    /** @param acl null: removes it */
    void setAcl(long ino, byte[] which, SimAcl acl) throws FsException {
        Known k = known(ino);
        k.contents.lock();
        try {
            ask((fs, call) -> {
                if (acl == null) {
                    fs.removexattr(call, ino, which);
                } else {
                    fs.setxattr(call, ino, which, acl.encode(), 0);
                }
                return true;
            });
        } finally {
            k.forgetAcl();
            k.attributesUntilNs = 0;
            k.contents.unlock();
        }
    }

    long open(long ino, int flags) throws FsException {
        return ask((fs, call) -> fs.open(call, ino, O_RDWR | flags, false)).handle();
    }

    void close(long ino, long handle, long lockOwner) throws FsException {
        try {
            ask((fs, call) -> {
                fs.flush(call, ino, handle, lockOwner);
                return true;
            });
        } finally {
            ask((fs, call) -> {
                fs.release(call, ino, handle);
                return true;
            });
        }
    }

    /** @param patienceNs then a signal comes */
    void lock(long ino, long handle, HeldLock wanted, boolean wait, long patienceNs) throws FsException {
        long until = scheduler.nowNs() + patienceNs;
        ask((fs, call) -> {
            fs.lock(new Call(1, 0, 0, 1, call.mayWait(), new Call.Interruption() {
                @Override
                public boolean callerIsDying() {
                    return false;
                }

                @Override
                public boolean signalled() {
                    return scheduler.nowNs() > until;
                }
            }), ino, handle, wanted, wait);
            return true;
        });
    }

    void unlock(long ino, long handle, HeldLock part) throws FsException {
        ask((fs, call) -> {
            fs.unlock(call, ino, handle, part.owner(), part.start(), part.end());
            return true;
        });
    }

    void fsync(long ino, long handle) throws FsException {
        ask((fs, call) -> {
            fs.fsync(call, ino, handle, false);
            return true;
        });
    }

    /**
     * {@code byOldSize}: the end that the bytes were cut at is one that the kernel knew to be out of date. {@code cut}: zeros may be of an end that is out of date. {@code unanswered}: some may be those of a WRITE on this machine
     * that was not made yet (fuse_fill_write_pages copies them into pages that are there before it asks, and lets those go). {@code shownFrom}: the bytes may be as old as
     * that ({@link Sessions#calls}), or 0.
     */
    record Got(byte[] bytes, boolean byOldSize, boolean cut, boolean unanswered, long shownFrom) {}

    /**
     * Pages are good while the session is there under which they came: no other node gets a token before that has gone. From then on they are as old as its end, until the
     * daemon hears of it, asks the kernel to drop them and only then opens the next (M5 of docs/SEMANTICS.md).
     */
    private long shownFrom(Known k, long page) {
        Filled f = k.filled.get(page);
        long ended = f == null ? 0 : sessions.endedAt(f.session);
        boolean heard = f != null && sessions.latest() != f.session && k.pagesGoing == 0;
        return ended == 0 || heard ? 0 : Math.max(ended, f.asked) + 1;
    }

    /**
     * Within one page, through the page cache. Asks for the size where the file seems to be too short. As in Linux, an answer that was asked for before the inode's last
     * change of version (a notification, the end of a change here) tells the size to nobody: the call goes by the size that was known, and is not repeated
     * (fuse_change_attributes, fuse_read_update_size). The daemon can't do anything about it: it learns neither of the refusal nor has it a message that sets a size.
     */
    Got read(long ino, long handle, long offset, int length) throws FsException {
        Known k = known(ino);
        long began = scheduler.nowNs();
        if (offset + length > k.size && scheduler.nowNs() >= k.attributesUntilNs) {
            stat(ino);
        }
        int n = (int) Math.max(0, Math.min(length, k.size - offset));
        if (n == 0) {
            return new Got(new byte[0], k.sizeRefused, false, false, 0);
        }
        long page = offset / PAGE;
        ReentrantLock lock = k.page(page);
        lock.lock();
        try {
            byte[] cached = k.pages.get(page);
            if (cached == null) {
                long asked = version;
                long calls = sessions.calls();
                byte[] got = ask((fs, call) -> {
                    byte[] read = readFrom(fs, call, ino, handle, page * PAGE, PAGE, 0);
                    k.filled.put(page, new Filled(sessions.latest(), calls));
                    return read;
                });
                if (got.length < PAGE && page * PAGE + got.length < k.size) {
                    if (k.version <= asked) {
                        // Pages behind it stay (fuse_short_read).
                        k.size = page * PAGE + got.length;
                        k.attributesUntilNs = 0;
                        k.sizeRefused = false;
                    } else {
                        k.sizeRefused = true;
                    }
                }
                cached = Arrays.copyOf(got, PAGE);
                k.pages.put(page, cached);
            }
            int at = (int) (offset % PAGE);
            n = (int) Math.max(0, Math.min(length, k.size - offset));
            return new Got(Arrays.copyOfRange(cached, at, at + n), k.sizeRefused, k.cutNs + CUT_SEEN_NS >= began, k.unanswered.contains(page), shownFrom(k, page));
        } finally {
            lock.unlock();
        }
    }

    /** As O_DIRECT: one request, no cache. */
    byte[] readDirect(long ino, long handle, long offset, int length) throws FsException {
        return ask((fs, call) -> readFrom(fs, call, ino, handle, offset, length, Operations.AROUND_CACHE));
    }

    private static byte[] readFrom(Operations fs, Call call, long ino, long handle, long offset, int length, int flags) throws FsException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment scratch = arena.allocate(length + 2L * PAGE, PAGE);
            return fs.read(call, ino, handle, offset, length, O_RDWR | flags, scratch).toArray(ValueLayout.JAVA_BYTE);
        }
    }

    /**
     * One WRITE request: as much of {@code data} as one takes, up to and with the first page that the kernel does not have whole. {@code taken} is told how many
     * bytes that are before they are sent. Returns how many were written.
     */
    int write(long ino, long handle, long offset, byte[] data, IntConsumer taken) throws FsException {
        Known k = known(ino);
        k.contents.lock();
        k.unstable = true;
        ReentrantLock locked = null;
        try {
            long end = offset;
            List<Long> touched = new ArrayList<>();
            List<Long> whole = new ArrayList<>();
            long calls = sessions.calls();
            while (end < offset + data.length && locked == null) {
                long page = end / PAGE;
                long from = end;
                end = Math.min(offset + data.length, (page + 1) * PAGE);
                ReentrantLock lock = k.page(page);
                lock.lock();
                byte[] cached = k.pages.get(page);
                if (cached == null && end - from == PAGE) {
                    cached = new byte[PAGE];
                    k.pages.put(page, cached);
                }
                if (cached != null) {
                    System.arraycopy(data, (int) (from - offset), cached, (int) (from % PAGE), (int) (end - from));
                    touched.add(page);
                    if (end - from == PAGE) {
                        whole.add(page);
                    }
                    k.unanswered.add(page);
                    lock.unlock();
                } else {
                    // Not whole: stays locked until the answer, and is the last one.
                    locked = lock;
                }
            }
            byte[] sent = Arrays.copyOf(data, (int) (end - offset));
            taken.accept(sent.length);
            try {
                int written = ask((fs, call) -> {
                    int n = writeTo(fs, call, ino, handle, offset, sent, 0);
                    whole.stream().filter(page -> (page + 1) * PAGE <= offset + n).forEach(page -> k.filled.put(page, new Filled(sessions.latest(), calls)));
                    return n;
                });
                if (written < sent.length) {
                    touched.stream().filter(page -> (page + 1) * PAGE > offset + written).forEach(k.pages::remove);
                }
                k.version = ++version;
                k.size = Math.max(k.size, offset + written);
                k.attributesUntilNs = 0;
                return written;
            } catch (FsException | Gone e) {
                touched.forEach(k.pages::remove);
                throw e;
            }
        } finally {
            if (locked != null) {
                locked.unlock();
            }
            k.unanswered.clear();
            k.unstable = false;
            k.contents.unlock();
        }
    }

    /** As O_DIRECT, or O_APPEND on a handle that was opened so. Returns how many bytes were written. */
    int writeDirect(long ino, long handle, long offset, byte[] data, int flags) throws FsException {
        Known k = known(ino);
        k.contents.lock();
        k.unstable = true;
        try {
            dropPages(k, offset, data.length);
            int written = ask((fs, call) -> writeTo(fs, call, ino, handle, offset, data, flags | Operations.AROUND_CACHE));
            dropPages(k, offset, data.length);
            k.version = ++version;
            k.size = Math.max(k.size, offset + written);
            k.attributesUntilNs = 0;
            return written;
        } finally {
            k.unstable = false;
            k.contents.unlock();
        }
    }

    /** Where the kernel believes the end of the file to be. */
    long end(long ino) {
        return known(ino).size;
    }

    private void dropPages(Known k, long offset, long length) {
        for (long page = offset / PAGE; page * PAGE < offset + length; page++) {
            ReentrantLock lock = k.page(page);
            lock.lock();
            k.pages.remove(page);
            lock.unlock();
        }
    }

    private static int writeTo(Operations fs, Call call, long ino, long handle, long offset, byte[] data, int flags) throws FsException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment m = arena.allocate(data.length, PAGE);
            MemorySegment.copy(data, 0, m, ValueLayout.JAVA_BYTE, 0, data.length);
            return fs.write(call, ino, handle, offset, m, O_RDWR | flags, false, false);
        }
    }

    void punch(long ino, long handle, long offset, long length) throws FsException {
        Known k = known(ino);
        k.contents.lock();
        try {
            ask((fs, call) -> {
                fs.fallocate(call, ino, handle, offset, length, 3);
                return true;
            });
            dropPages(k, offset, length);
            k.version = ++version;
            k.attributesUntilNs = 0;
        } finally {
            k.contents.unlock();
        }
    }

    /** Memory is short: whatever is cached and not in use goes, and with it the references to inodes that nobody uses. */
    void shrink(Set<Long> inUse) {
        dentries.keySet().retainAll(held.keySet());
        for (Known k : List.copyOf(inodes.values())) {
            if (!inUse.contains(k.ino)) {
                evict(k);
            }
        }
    }

    /** Nobody uses the inode any more: unless an entry does, the kernel forgets it. */
    void evict(long ino) {
        Known k = inodes.get(ino);
        if (k != null && dentries.values().stream().noneMatch(d -> d.ino == ino)) {
            evict(k);
        }
    }

    private void evict(Known k) {
        if (k.ino != 1 && !held.containsValue(k.ino) && !k.names.isWriteLocked() && k.names.getReadLockCount() == 0 && !k.contents.isLocked()
                && k.pageLocks.values().stream().noneMatch(ReentrantLock::isLocked)) {
            inodes.remove(k.ino);
            long count = k.lookups;
            daemon.start("forget", () -> node.forget(k.ino, count));
        }
    }
}
