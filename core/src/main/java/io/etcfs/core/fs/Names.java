package io.etcfs.core.fs;

import io.etcfs.core.domain.Dirent;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.domain.Vnode;
import io.etcfs.core.record.proto.FileType;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.token.Attempt;
import io.etcfs.core.token.Blocked;
import io.etcfs.core.token.Need;
import io.etcfs.core.token.Tokens;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Operations on names and attributes. */
final class Names {
    static final int NAME_MAX = 255;
    static final int LINK_MAX = 65_000;
    static final int SYMLINK_MAX = 4095;
    static final long FILE_MAX = 16L << 40;
    private static final int ROOM = 24;
    private static final int XATTR_INLINE = 2048;
    private static final int XATTR_INLINE_TOTAL = 16_384;
    private static final int XATTR_VALUE_MAX = 65_536;
    private static final int XATTR_TOTAL_MAX = 524_288;
    private static final byte[] TRUSTED = "trusted.".getBytes(StandardCharsets.US_ASCII);
    private static final List<byte[]> XATTR_NAMESPACES = List.of("user.".getBytes(StandardCharsets.US_ASCII), TRUSTED, "security.".getBytes(StandardCharsets.US_ASCII));
    private static final long REQUEST_NS = 5_000_000_000L;
    private static final long COOKIE_DOT = 1;
    private static final long COOKIE_DOT_DOT = 2;

    private final Node node;
    private final OpenFiles openFiles;
    private long ownMoves;

    Names(Node node, OpenFiles openFiles) {
        this.node = node;
        this.openFiles = openFiles;
    }

    // ---- helpers, monitor held

    private long now() {
        return node.monitor().clock().realtimeNs();
    }

    private static void checkName(byte[] name) throws FsException {
        if (name.length > NAME_MAX) {
            throw new FsException(Errno.ENAMETOOLONG);
        }
    }

    private Vnode directory(long ino) throws FsException {
        Vnode v = node.vnodes().require(ino);
        if (!v.directory) {
            throw new FsException(Errno.ENOTDIR);
        }
        return v;
    }

    private Waiting.Held holding(long... dirs) {
        Domain[] domains = node.monitor().with(() -> {
            Domain[] found = new Domain[dirs.length];
            for (int i = 0; i < dirs.length; i++) {
                found[i] = node.tokens().domain(dirs[i]);
            }
            return found;
        });
        return Waiting.directories(domains);
    }

    private Dirent find(Domain dir, byte[] name) {
        return dir.entry(node.nameHash().hash63(name), name);
    }

    /** The directory's own inode; a directory that was removed has none and takes no names. */
    private Inode live(Domain dir) throws FsException {
        Inode i = dir.directory();
        if (i == null) {
            throw new FsException(Errno.ENOENT);
        }
        return i;
    }

    private void room(int operations) {
        if (!node.pipeline().room(operations)) {
            throw Blocked.INSTANCE;
        }
    }

    private Inode inode(Domain home, long ino) throws FsException {
        Inode i = home.inodes.get(ino);
        if (i == null) {
            throw new FsException(Errno.ESTALE);
        }
        return i;
    }

    private Operations.Entry entry(Call call, Domain dir, Dirent e, Inode inode) {
        Vnode v = node.vnodes().get(e.ino(), e.home(), e.isDirectory());
        v.lookups++;
        Domain home = node.tokens().domain(e.home());
        long entryValid = node.view().grantName(call, dir, e.name());
        long attributesValid = node.view().grantAttributes(call, home, v);
        v.lastAttributes = e.isDirectory() ? inode.attributes() : null;
        return new Operations.Entry(e.ino(), 0, inode.attributes(), entryValid, attributesValid);
    }

    private void touchDirectory(Domain d, Inode dir, long nowNs) {
        dir.mtimeNs = nowNs;
        dir.ctimeNs = nowNs;
        node.journal().changed(d, dir, true);
    }

    private Dirent newEntry(Domain dir, byte[] name, long ino, FileType type, long home) throws FsException {
        long hash = node.nameHash().hash63(name);
        if (dir.entries.containsKey(hash)) {
            // Another name has the same hash: one in 2^63, and the kernel can't resume a listing between two equal cookies.
            System.getLogger(Names.class.getName()).log(System.Logger.Level.WARNING, "name hash collision in directory {0}", dir.id);
            throw new FsException(Errno.ENOSPC);
        }
        return new Dirent(name.clone(), hash, ino, type, home, node.pipeline().openNumber());
    }

    // ---- lookup and attributes

    Operations.Entry lookup(Call call, long parent, byte[] name) throws FsException {
        checkName(name);
        return node.waiting().run(call, holding(parent), a -> {
            directory(parent);
            node.tokens().require(a, Need.shared(parent));
            Domain d = node.tokens().domain(parent);
            Dirent e = find(d, name);
            if (e == null) {
                return new Operations.Entry(0, 0, null, node.view().grantName(call, d, name), 0);
            }
            if (e.home() != parent) {
                node.tokens().require(a, Need.shared(parent), Need.shared(e.home()));
            }
            Inode i = node.tokens().domain(e.home()).inodes.get(e.ino());
            if (i == null) {
                throw new FsException(Errno.EIO);
            }
            return entry(call, d, e, i);
        });
    }

    void forget(long ino, long count) {
        node.monitor().lock();
        try {
            Vnode v = node.vnodes().known(ino);
            if (v != null) {
                v.lookups = Math.max(0, v.lookups - count);
                node.vnodes().dropIfUnused(v);
            }
        } finally {
            node.monitor().unlock();
        }
    }

    Operations.Attr getattr(Call call, long ino) throws FsException {
        return node.waiting().run(call, a -> {
            Vnode v = node.vnodes().require(ino);
            node.tokens().require(a, Need.shared(v.home));
            Domain d = node.tokens().domain(v.home);
            Inode i = d.inodes.get(ino);
            if (i == null) {
                if (v.directory && v.lastAttributes != null) {
                    // Removed elsewhere while it is somebody's cwd or open here.
                    Attributes l = v.lastAttributes;
                    return new Operations.Attr(new Attributes(l.ino(), l.mode(), l.uid(), l.gid(), 0, l.size(), l.blocks(), l.atimeNs(), l.mtimeNs(), l.ctimeNs(), l.btimeNs(), l.rdev()), 0);
                }
                throw new FsException(v.handles > 0 ? Errno.EIO : Errno.ESTALE);
            }
            if (v.directory) {
                v.lastAttributes = i.attributes();
            }
            return new Operations.Attr(i.attributes(), node.view().grantAttributes(call, d, v));
        });
    }

    /** All of setattr but a change of size, which is {@link Bytes}'. */
    Operations.Attr setattr(Call call, long ino, Operations.Change c) throws FsException {
        return node.waiting().run(call, a -> {
            Vnode v = node.vnodes().require(ino);
            Domain d = requireAttributes(a, v);
            Inode i = inode(d, ino);
            room(ROOM);
            applyAttributes(i, c, now());
            node.journal().changed(d, i, true);
            return new Operations.Attr(i.attributes(), node.view().grantAttributes(call, d, v));
        });
    }

    /** Attribute changes are served while the kernel's pages are being dropped: the kernel may hold up a write-back for them. */
    private Domain requireAttributes(Attempt a, Vnode v) {
        return node.tokens().requireForData(v.home, Mode.EXCLUSIVE);
    }

    static void applyAttributes(Inode i, Operations.Change c, long nowNs) {
        if (c.mode() != null) {
            i.mode = i.mode & Inode.FORMAT_MASK | c.mode() & 07777;
        }
        if (c.uid() != null || c.gid() != null) {
            i.uid = c.uid() == null ? i.uid : c.uid();
            i.gid = c.gid() == null ? i.gid : c.gid();
            if (c.mode() == null) {
                i.killPrivileges();
            }
        }
        if (c.killPrivileges()) {
            i.killPrivileges();
        }
        if (c.atimeNs() != null) {
            i.atimeNs = c.atimeNs() == Operations.Change.NOW_NS ? nowNs : c.atimeNs();
        }
        if (c.mtimeNs() != null) {
            i.mtimeNs = c.mtimeNs() == Operations.Change.NOW_NS ? nowNs : c.mtimeNs();
        }
        i.ctimeNs = c.ctimeNs() != null && c.ctimeNs() != Operations.Change.NOW_NS ? c.ctimeNs() : nowNs;
    }

    byte[] readlink(Call call, long ino) throws FsException {
        return node.waiting().run(call, a -> {
            Vnode v = node.vnodes().require(ino);
            node.tokens().require(a, Need.shared(v.home));
            Inode i = inode(node.tokens().domain(v.home), ino);
            if (!i.isSymlink()) {
                throw new FsException(Errno.EINVAL);
            }
            return i.symlinkTarget;
        });
    }

    // ---- making names

    private interface Initialiser {
        void accept(Inode inode);
    }

    /** A new inode in the parent's domain, and its name. X of the parent is held. */
    private Inode make(Call call, Domain d, byte[] name, int mode, Initialiser init) throws FsException {
        Inode dir = live(d);
        node.space().requireStore();
        node.inodeNumbers().require();
        long ino = node.inodeNumbers().next();
        boolean isDirectory = (mode & Inode.FORMAT_MASK) == Inode.DIRECTORY;
        Inode i = new Inode(ino, isDirectory ? ino : d.id);
        long nowNs = now();
        i.mode = mode;
        i.uid = call.uid();
        i.gid = call.gid();
        if ((dir.mode & Inode.SET_GID) != 0) {
            i.gid = dir.gid;
            if (isDirectory) {
                i.mode |= Inode.SET_GID;
            }
        }
        i.nlink = isDirectory ? 2 : 1;
        i.atimeNs = nowNs;
        i.mtimeNs = nowNs;
        i.ctimeNs = nowNs;
        i.btimeNs = nowNs;
        init.accept(i);
        Dirent e = newEntry(d, name, ino, i.type(), i.home);
        node.journal().add(d, e);
        if (isDirectory) {
            i.parent = d.id;
            dir.nlink++;
            node.journal().born(node.tokens().born(ino), i);
        } else {
            node.journal().born(d, i);
        }
        touchDirectory(d, dir, nowNs);
        return i;
    }

    private Operations.Entry makeNode(Call call, long parent, byte[] name, int mode, Initialiser init) throws FsException {
        checkName(name);
        return node.waiting().run(call, holding(parent), a -> {
            directory(parent);
            node.tokens().require(a, Need.exclusive(parent));
            Domain d = node.tokens().domain(parent);
            live(d);
            if (find(d, name) != null) {
                throw new FsException(Errno.EEXIST);
            }
            if ((mode & Inode.FORMAT_MASK) == Inode.DIRECTORY && d.directory().nlink >= LINK_MAX) {
                throw new FsException(Errno.EMLINK);
            }
            node.inodeNumbers().require();
            room(ROOM);
            Inode i = make(call, d, name, mode, init);
            return entry(call, d, find(d, name), i);
        });
    }

    Operations.Entry symlink(Call call, long parent, byte[] name, byte[] target) throws FsException {
        if (target.length > SYMLINK_MAX) {
            throw new FsException(Errno.ENAMETOOLONG);
        }
        return makeNode(call, parent, name, Inode.SYMLINK | 0777, i -> {
            i.symlinkTarget = target.clone();
            i.size = target.length;
        });
    }

    Operations.Entry mknod(Call call, long parent, byte[] name, int mode, int umask, int rdev) throws FsException {
        if ((mode & Inode.FORMAT_MASK) == Inode.DIRECTORY) {
            throw new FsException(Errno.EPERM);
        }
        int format = (mode & Inode.FORMAT_MASK) == 0 ? Inode.REGULAR : mode & Inode.FORMAT_MASK;
        return makeNode(call, parent, name, format | mode & 07777 & ~umask, i -> i.rdev = rdev);
    }

    Operations.Entry mkdir(Call call, long parent, byte[] name, int mode, int umask) throws FsException {
        return makeNode(call, parent, name, Inode.DIRECTORY | mode & 07777 & ~umask, i -> {});
    }

    Operations.Created create(Call call, long parent, byte[] name, int mode, int umask, int flags, Bytes bytes) throws FsException {
        checkName(name);
        return node.waiting().run(call, holding(parent), a -> {
            directory(parent);
            node.tokens().require(a, Need.exclusive(parent));
            Domain d = node.tokens().domain(parent);
            live(d);
            Dirent e = find(d, name);
            Inode i;
            if (e != null) {
                if ((flags & Bytes.O_EXCL) != 0) {
                    throw new FsException(Errno.EEXIST);
                }
                if (e.isDirectory()) {
                    throw new FsException(Errno.EISDIR);
                }
                if (e.home() != parent) {
                    node.tokens().require(a, Need.exclusive(parent), Need.exclusive(e.home()));
                }
                Domain home = node.tokens().domain(e.home());
                i = inode(home, e.ino());
                if (!i.isRegular() || !certainlyMayOpen(call, i, flags)) {
                    // Made elsewhere since the kernel looked, which checks nothing more: it looks again and opens it as a file that was there.
                    throw new FsException(Errno.ESTALE);
                }
                Vnode v = node.vnodes().get(e.ino(), e.home(), false);
                if ((flags & Bytes.O_TRUNC) != 0) {
                    try {
                        if (!i.extentsLoaded) {
                            openFiles.loadExtents(home, i);
                            throw Blocked.INSTANCE;
                        }
                        bytes.truncate(home, i, v, 0, now());
                    } catch (Blocked b) {
                        node.vnodes().dropIfUnused(v);
                        throw b;
                    }
                }
            } else {
                node.inodeNumbers().require();
                room(ROOM);
                i = make(call, d, name, Inode.REGULAR | mode & 07777 & ~umask, x -> {});
                e = find(d, name);
            }
            Vnode v = node.vnodes().get(e.ino(), e.home(), false);
            OpenFiles.Handle h = openFiles.open(v, flags);
            return new Operations.Created(entry(call, d, e, i), new Operations.Opened(h.id, Bytes.openFlags(flags)));
        });
    }

    /** By the mode alone. Other groups of the caller are not known here: where they could make a difference the answer is no. */
    private static boolean certainlyMayOpen(Call call, Inode i, int flags) {
        int wanted = switch (flags & Bytes.O_ACCMODE) {
            case 0 -> 4;
            case 1 -> 2;
            default -> 6;
        } | ((flags & Bytes.O_TRUNC) != 0 ? 2 : 0);
        if (call.uid() == 0) {
            return true;
        }
        if (call.uid() == i.uid) {
            return (i.mode >> 6 & wanted) == wanted;
        }
        boolean group = (i.mode >> 3 & wanted) == wanted;
        return call.gid() == i.gid ? group : group && (i.mode & wanted) == wanted;
    }

    Operations.Entry link(Call call, long ino, long newParent, byte[] newName) throws FsException {
        checkName(newName);
        return node.waiting().run(call, holding(newParent), a -> {
            directory(newParent);
            Vnode v = node.vnodes().require(ino);
            if (v.directory) {
                throw new FsException(Errno.EPERM);
            }
            requireTwo(a, newParent, v.home);
            Domain d = node.tokens().domain(newParent);
            Domain home = node.tokens().domain(v.home);
            Inode dir = live(d);
            if (find(d, newName) != null) {
                throw new FsException(Errno.EEXIST);
            }
            Inode i = inode(home, ino);
            if (i.nlink == 0) {
                throw new FsException(Errno.ENOENT);
            }
            if (i.nlink >= LINK_MAX) {
                throw new FsException(Errno.EMLINK);
            }
            room(ROOM);
            long nowNs = now();
            Dirent e = newEntry(d, newName, ino, i.type(), v.home);
            node.journal().add(d, e);
            i.nlink++;
            i.ctimeNs = nowNs;
            node.journal().changed(home, i, true);
            touchDirectory(d, dir, nowNs);
            return entry(call, d, e, i);
        });
    }

    private void requireTwo(Attempt a, long one, long other) {
        if (one == other) {
            node.tokens().require(a, Need.exclusive(one));
        } else {
            node.tokens().require(a, Need.exclusive(one), Need.exclusive(other));
        }
    }

    // ---- removing names

    void unlink(Call call, long parent, byte[] name) throws FsException {
        checkName(name);
        node.waiting().run(call, holding(parent), a -> {
            directory(parent);
            node.tokens().require(a, Need.exclusive(parent));
            Domain d = node.tokens().domain(parent);
            Inode dir = live(d);
            Dirent e = find(d, name);
            if (e == null) {
                throw new FsException(Errno.ENOENT);
            }
            if (e.isDirectory()) {
                throw new FsException(Errno.EISDIR);
            }
            requireTwo(a, parent, e.home());
            Domain home = node.tokens().domain(e.home());
            Inode i = inode(home, e.ino());
            room(2 * OpenFiles.MAX_SPACE_KEYS + ROOM);
            long nowNs = now();
            node.journal().remove(d, e);
            dropLink(home, i, nowNs);
            touchDirectory(d, dir, nowNs);
            return null;
        });
    }

    private void dropLink(Domain home, Inode i, long nowNs) {
        i.nlink--;
        i.ctimeNs = nowNs;
        if (i.nlink == 0) {
            openFiles.lastNameGone(home, i);
        } else {
            node.journal().changed(home, i, true);
        }
    }

    void rmdir(Call call, long parent, byte[] name) throws FsException {
        checkName(name);
        node.waiting().run(call, holding(parent), a -> {
            directory(parent);
            node.tokens().require(a, Need.exclusive(parent));
            Domain d = node.tokens().domain(parent);
            Inode dir = live(d);
            Dirent e = find(d, name);
            if (e == null) {
                throw new FsException(Errno.ENOENT);
            }
            if (!e.isDirectory()) {
                throw new FsException(Errno.ENOTDIR);
            }
            node.tokens().require(a, Need.exclusive(parent), Need.exclusive(e.ino()));
            Domain child = node.tokens().domain(e.ino());
            if (!child.entries.isEmpty()) {
                throw new FsException(Errno.ENOTEMPTY);
            }
            room(ROOM);
            long nowNs = now();
            node.journal().remove(d, e);
            removeDirectory(child, nowNs);
            dir.nlink--;
            touchDirectory(d, dir, nowNs);
            return null;
        });
    }

    private void removeDirectory(Domain child, long nowNs) {
        Inode i = child.directory();
        i.nlink = 0;
        i.ctimeNs = nowNs;
        Vnode v = node.vnodes().known(child.id);
        if (v != null) {
            v.lastAttributes = i.attributes();
        }
        node.journal().delete(child, i);
        // Given back once the batch that removes it is out: files can live on in the domain.
        node.pipeline().onCommitted(() -> node.tokens().release(child));
    }

    // ---- rename

    /** Parents of directories as read from etcd while the rename token was held: good as long as nobody else can have moved a directory. */
    private record Ancestry(long renameTokenRevision, long ownMoves, Map<Long, Long> parents) {}

    static final class NeedsParent extends RuntimeException {
        private static final long serialVersionUID = 1L;
        final long directory;

        NeedsParent(long directory) {
            super(null, null, false, false);
            this.directory = directory;
        }
    }

    void rename(Call call, long parent, byte[] name, long newParent, byte[] newName, int flags) throws FsException {
        checkName(name);
        checkName(newName);
        if ((flags & ~(Operations.RENAME_NOREPLACE | Operations.RENAME_EXCHANGE)) != 0) {
            throw new FsException(Errno.EINVAL);
        }
        Ancestry[] known = {new Ancestry(0, 0, new HashMap<>())};
        while (true) {
            long missing;
            try {
                node.waiting().run(call, holding(parent, newParent), a -> {
                    attemptRename(a, parent, name, newParent, newName, flags, known);
                    return null;
                });
                return;
            } catch (NeedsParent n) {
                missing = n.directory;
            }
            if (!call.mayWait()) {
                throw MustWait.INSTANCE;
            }
            known[0].parents.put(missing, readParent(missing));
        }
    }

    private long readParent(long directory) throws FsException {
        try {
            KeyValue kv = node.store().range(node.keys().inode(directory, directory), null, 0, false, 0, REQUEST_NS).only();
            return kv == null ? 0 : Inode.decode(directory, directory, kv.value()).parent;
        } catch (StoreUnavailableException e) {
            throw new FsException(Errno.ETIMEDOUT);
        } catch (StoreRejectedException e) {
            throw new FsException(Errno.EIO);
        }
    }

    private void attemptRename(Attempt a, long parent, byte[] name, long newParent, byte[] newName, int flags, Ancestry[] known) throws FsException {
        directory(parent);
        directory(newParent);
        requireTwo(a, parent, newParent);
        Domain from = node.tokens().domain(parent);
        Domain to = node.tokens().domain(newParent);
        Inode fromDir = live(from);
        Inode toDir = live(to);
        Dirent source = find(from, name);
        Dirent target = find(to, newName);
        if (source == null) {
            throw new FsException(Errno.ENOENT);
        }
        boolean exchange = (flags & Operations.RENAME_EXCHANGE) != 0;
        if (target != null && (flags & Operations.RENAME_NOREPLACE) != 0) {
            throw new FsException(Errno.EEXIST);
        }
        if (target == null && exchange) {
            throw new FsException(Errno.ENOENT);
        }
        if (target != null && target.ino() == source.ino()) {
            return;
        }
        boolean moves = parent != newParent && (source.isDirectory() || exchange && target.isDirectory());
        List<Need> needs = new ArrayList<>();
        add(needs, parent);
        add(needs, newParent);
        add(needs, source.home());
        if (target != null) {
            add(needs, target.home());
        }
        if (moves) {
            add(needs, Tokens.RENAME_TOKEN);
        }
        node.tokens().require(a, needs.toArray(Need[]::new));
        if (moves) {
            checkAncestry(known, source.isDirectory() ? source.ino() : 0, newParent);
            if (exchange && target.isDirectory()) {
                checkAncestry(known, target.ino(), parent);
            }
        }
        Domain sourceHome = node.tokens().domain(source.home());
        Inode moved = inode(sourceHome, source.ino());
        Domain targetHome = target == null ? null : node.tokens().domain(target.home());
        Inode replaced = target == null ? null : inode(targetHome, target.ino());
        if (target != null && !exchange) {
            if (source.isDirectory() && !target.isDirectory()) {
                throw new FsException(Errno.ENOTDIR);
            }
            if (!source.isDirectory() && target.isDirectory()) {
                throw new FsException(Errno.EISDIR);
            }
            if (target.isDirectory() && !targetHome.entries.isEmpty()) {
                throw new FsException(Errno.ENOTEMPTY);
            }
        }
        if (source.isDirectory() && parent != newParent && target == null && toDir.nlink >= LINK_MAX) {
            throw new FsException(Errno.EMLINK);
        }
        room(2 * OpenFiles.MAX_SPACE_KEYS + ROOM);
        long nowNs = now();
        long batch = node.pipeline().openNumber();
        if (exchange) {
            node.journal().replace(from, source, new Dirent(source.name(), source.hash(), target.ino(), target.type(), target.home(), born(source, batch)));
            node.journal().replace(to, target, new Dirent(target.name(), target.hash(), source.ino(), source.type(), source.home(), born(target, batch)));
            reparent(replaced, toDir, fromDir, from.id);
            reparent(moved, fromDir, toDir, to.id);
            replaced.ctimeNs = nowNs;
            node.journal().changed(targetHome, replaced, true);
        } else {
            if (target != null) {
                node.journal().replace(to, target, new Dirent(target.name(), target.hash(), source.ino(), source.type(), source.home(), born(target, batch)));
                if (target.isDirectory()) {
                    removeDirectory(targetHome, nowNs);
                    toDir.nlink--;
                } else {
                    dropLink(targetHome, replaced, nowNs);
                }
                node.journal().remove(from, source);
            } else {
                Dirent e = newEntry(to, newName, source.ino(), source.type(), source.home());
                node.journal().remove(from, source);
                node.journal().add(to, e);
            }
            reparent(moved, fromDir, toDir, to.id);
        }
        moved.ctimeNs = nowNs;
        node.journal().changed(sourceHome, moved, true);
        touchDirectory(from, fromDir, nowNs);
        if (to != from) {
            touchDirectory(to, toDir, nowNs);
        }
        if (moves) {
            ownMoves++;
        }
    }

    /** Whether the name's key was there before the open batch does not change with what it names. */
    private static long born(Dirent e, long openBatch) {
        return e.bornBatch() == openBatch ? openBatch : 0;
    }

    private static void reparent(Inode moved, Inode fromDir, Inode toDir, long newParent) {
        if (moved.isDirectory() && fromDir != toDir) {
            fromDir.nlink--;
            toDir.nlink++;
            moved.parent = newParent;
        }
    }

    private static void add(List<Need> needs, long resource) {
        Need n = Need.exclusive(resource);
        if (!needs.contains(n)) {
            needs.add(n);
        }
    }

    /** EINVAL if {@code moving} is {@code newParent} or above it. The rename token is held: nobody else moves directories. */
    private void checkAncestry(Ancestry[] known, long moving, long newParent) throws FsException {
        Domain renameToken = node.tokens().domain(Tokens.RENAME_TOKEN);
        if (known[0].renameTokenRevision != renameToken.lockRevision || known[0].ownMoves != ownMoves) {
            known[0] = new Ancestry(renameToken.lockRevision, ownMoves, new HashMap<>());
        }
        long at = newParent;
        for (int depth = 0; at != Vnodes.ROOT && at != 0; depth++) {
            if (at == moving) {
                throw new FsException(Errno.EINVAL);
            }
            if (depth > 100_000) {
                throw new FsException(Errno.ELOOP);
            }
            Domain d = node.tokens().known(at);
            if (d != null && d.held != Mode.NONE && d.loaded && d.directory() != null) {
                at = d.directory().parent;
            } else {
                Long parent = known[0].parents.get(at);
                if (parent == null) {
                    throw new NeedsParent(at);
                }
                at = parent;
            }
        }
    }

    // ---- listings

    void readdir(Call call, long ino, long cookie, boolean withAttributes, Operations.DirectorySink sink) throws FsException {
        node.waiting().run(call, holding(ino), a -> {
            directory(ino);
            node.tokens().require(a, Need.shared(ino));
            Domain d = node.tokens().domain(ino);
            Inode dir = d.directory();
            if (dir == null) {
                return null;
            }
            if (cookie < COOKIE_DOT) {
                if (!sink.hasRoomFor(1)) {
                    return null;
                }
                sink.add(new byte[] {'.'}, ino, Inode.DIRECTORY >> 12, COOKIE_DOT, null);
            }
            if (cookie < COOKIE_DOT_DOT) {
                if (!sink.hasRoomFor(2)) {
                    return null;
                }
                sink.add(new byte[] {'.', '.'}, dir.parent, Inode.DIRECTORY >> 12, COOKIE_DOT_DOT, null);
            }
            for (Dirent e : d.entries.tailMap(cookie, false).values()) {
                if (!sink.hasRoomFor(e.name().length)) {
                    return null;
                }
                Operations.Entry entry = null;
                if (withAttributes) {
                    Domain home = node.tokens().known(e.home());
                    if (home != null && home.usable(Mode.SHARED) && home.inodes.containsKey(e.ino())) {
                        entry = entry(call, d, e, home.inodes.get(e.ino()));
                    }
                }
                sink.add(e.name(), e.ino(), e.dirType(), e.hash(), entry);
            }
            return null;
        });
    }

    // ---- extended attributes

    void setxattr(Call call, long ino, byte[] name, byte[] value, int flags) throws FsException {
        checkXattrName(name);
        if (name.length > NAME_MAX) {
            throw new FsException(Errno.ERANGE);
        }
        if (value.length > XATTR_VALUE_MAX) {
            throw new FsException(Errno.E2BIG);
        }
        node.waiting().run(call, a -> {
            Vnode v = node.vnodes().require(ino);
            Domain d = requireAttributes(a, v);
            Inode i = inode(d, ino);
            ByteBuffer key = ByteBuffer.wrap(name.clone());
            boolean there = i.xattrs.containsKey(key);
            if (there && (flags & Operations.SET_XATTR_CREATE) != 0) {
                throw new FsException(Errno.EEXIST);
            }
            if (!there && (flags & Operations.SET_XATTR_REPLACE) != 0) {
                throw new FsException(Errno.ENODATA);
            }
            node.space().requireStore();
            room(ROOM);
            boolean wasLarge = there && i.xattrs.get(key) == null;
            long inline = 0;
            long large = 0;
            for (Map.Entry<ByteBuffer, byte[]> x : i.xattrs.entrySet()) {
                if (!x.getKey().equals(key)) {
                    inline += x.getKey().capacity() + (x.getValue() == null ? 0 : x.getValue().length);
                    large += x.getValue() == null ? XATTR_VALUE_MAX : 0;
                }
            }
            boolean small = value.length <= XATTR_INLINE && inline + name.length + value.length <= XATTR_INLINE_TOTAL;
            if (inline + name.length > 4L * XATTR_INLINE_TOTAL || !small && large + XATTR_VALUE_MAX > XATTR_TOTAL_MAX) {
                throw new FsException(Errno.ENOSPC);
            }
            i.largeXattrs.remove(key);
            if (small) {
                i.xattrs.put(key, value.clone());
                if (wasLarge) {
                    node.pipeline().delete(node.keys().xattr(ino, name), true);
                }
            } else {
                byte[] copy = value.clone();
                i.xattrs.put(key, null);
                i.largeXattrs.put(key, copy);
                node.pipeline().put(node.keys().xattr(ino, name), () -> copy, wasLarge, copy.length);
            }
            i.ctimeNs = now();
            node.journal().changed(d, i, true);
            return null;
        });
    }

    /** The namespaces that a local filesystem has, apart from system: ACLs come later. The kernel leaves the check to us. */
    private static void checkXattrName(byte[] name) throws FsException {
        for (byte[] namespace : XATTR_NAMESPACES) {
            if (startsWith(name, namespace)) {
                if (name.length == namespace.length) {
                    throw new FsException(Errno.EINVAL);
                }
                return;
            }
        }
        throw new FsException(Errno.EOPNOTSUPP);
    }

    byte[] getxattr(Call call, long ino, byte[] name) throws FsException {
        checkXattrName(name);
        ByteBuffer key = ByteBuffer.wrap(name);
        byte[] present = node.waiting().run(call, a -> {
            Inode i = forXattrs(a, ino);
            if (!i.xattrs.containsKey(key)) {
                throw new FsException(Errno.ENODATA);
            }
            byte[] value = i.xattrs.get(key);
            return value != null ? value : i.largeXattrs.get(key);
        });
        if (present != null) {
            return present;
        }
        if (!call.mayWait()) {
            throw MustWait.INSTANCE;
        }
        byte[] read;
        try {
            KeyValue kv = node.store().range(node.keys().xattr(ino, name), null, 0, false, 0, REQUEST_NS).only();
            if (kv == null) {
                throw new FsException(Errno.ENODATA);
            }
            read = kv.value();
        } catch (StoreUnavailableException e) {
            throw new FsException(Errno.ETIMEDOUT);
        } catch (StoreRejectedException e) {
            throw new FsException(Errno.EIO);
        }
        return node.waiting().run(call, a -> {
            Inode i = forXattrs(a, ino);
            if (!i.xattrs.containsKey(key)) {
                throw new FsException(Errno.ENODATA);
            }
            byte[] changed = i.xattrs.get(key) != null ? i.xattrs.get(key) : i.largeXattrs.get(key);
            return changed != null ? changed : read;
        });
    }

    private Inode forXattrs(Attempt a, long ino) throws FsException {
        Vnode v = node.vnodes().require(ino);
        Domain d = node.tokens().requireForData(v.home, Mode.SHARED);
        return inode(d, ino);
    }

    private static boolean startsWith(byte[] name, byte[] prefix) {
        return name.length >= prefix.length && Arrays.equals(name, 0, prefix.length, prefix, 0, prefix.length);
    }

    List<byte[]> listxattr(Call call, long ino) throws FsException {
        return node.waiting().run(call, a -> {
            List<byte[]> names = new ArrayList<>();
            for (ByteBuffer n : forXattrs(a, ino).xattrs.keySet()) {
                // The kernel refuses others these names, but passes the list through. Capabilities can't be seen here.
                if (call.uid() == 0 || !startsWith(n.array(), TRUSTED)) {
                    names.add(n.array());
                }
            }
            return names;
        });
    }

    void removexattr(Call call, long ino, byte[] name) throws FsException {
        checkXattrName(name);
        node.waiting().run(call, a -> {
            Vnode v = node.vnodes().require(ino);
            Domain d = requireAttributes(a, v);
            Inode i = inode(d, ino);
            ByteBuffer key = ByteBuffer.wrap(name);
            if (!i.xattrs.containsKey(key)) {
                throw new FsException(Errno.ENODATA);
            }
            room(ROOM);
            if (i.xattrs.remove(key) == null) {
                i.largeXattrs.remove(key);
                node.pipeline().delete(node.keys().xattr(ino, name), true);
            }
            i.ctimeNs = now();
            node.journal().changed(d, i, true);
            return null;
        });
    }
}
