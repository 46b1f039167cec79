package io.etcfs.core.fs;

import io.etcfs.core.domain.Dirent;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.domain.Vnode;
import io.etcfs.core.token.Blocked;
import io.etcfs.core.token.Need;

/** Operations on names and attributes, apart from renaming ({@link Renames}) and extended attributes ({@link Xattrs}). */
final class Names {
    static final int NAME_MAX = 255;
    static final int LINK_MAX = 65_000;
    static final int SYMLINK_MAX = 4095;
    static final long FILE_MAX = 16L << 40;
    private static final long COOKIE_DOT = 1;
    private static final long COOKIE_DOT_DOT = 2;

    private final Node node;
    private final OpenFiles openFiles;
    private final Namespace namespace;
    private final Readahead readahead;

    Names(Node node, OpenFiles openFiles, Namespace namespace) {
        this.node = node;
        this.openFiles = openFiles;
        this.namespace = namespace;
        this.readahead = new Readahead(node);
    }

    // ---- lookup and attributes

    Operations.Entry lookup(Call call, long parent, byte[] name) throws FsException {
        Namespace.checkName(name);
        return node.waiting().run(call, namespace.holding(parent), a -> {
            namespace.directory(parent);
            node.tokens().require(a, Need.shared(parent));
            Domain d = node.tokens().domain(parent);
            Dirent e = namespace.find(d, name);
            if (e == null) {
                return new Operations.Entry(0, 0, null, node.view().grantMissing(call, d, name), 0);
            }
            if (e.isDirectory()) {
                readahead.lookedUp(d, e);
            }
            if (e.home() != parent) {
                if (d.fromHolder) {
                    node.tokens().expectElsewhere(e.home());
                }
                node.tokens().require(a, Need.shared(parent), Need.shared(e.home()));
            }
            Inode i = node.tokens().reads().inode(node.tokens().domain(e.home()), e.ino());
            if (i == null) {
                throw new FsException(Errno.EIO);
            }
            if (e.isDirectory() && !namespace.placeSettled(d, e)) {
                throw Blocked.INSTANCE;
            }
            Operations.Entry entry = namespace.entry(call, d, e, i);
            if (i.isRegular()) {
                node.vnodes().known(e.ino()).lookedUpNs = node.monitor().nowNs();
            }
            return entry;
        });
    }

    void forget(long ino, long count) {
        node.monitor().lock();
        try {
            Vnode v = node.vnodes().known(ino);
            if (v != null) {
                v.lookups = Math.max(0, v.lookups - count);
                if (v.lookups == 0) {
                    v.noPlace();
                    openFiles.forgotten(v);
                }
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
            Inode i = node.tokens().reads().inode(d, ino);
            if (i == null) {
                Attributes removed = namespace.removedDirectory(v);
                if (removed == null) {
                    throw namespace.gone(ino);
                }
                return new Operations.Attr(removed, 0);
            }
            if (v.directory) {
                v.lastAttributes = i.attributes();
            }
            return new Operations.Attr(i.attributes(), node.view().grantAttributes(call, d, v, i));
        });
    }

    /** All of setattr but a change of size, which is {@link Bytes}'. */
    Operations.Attr setattr(Call call, long ino, Operations.Change c) throws FsException {
        return node.waiting().run(call, a -> {
            Vnode v = node.vnodes().require(ino);
            if (namespace.removedDirectory(v) != null) {
                return new Operations.Attr(changeRemoved(v, c), 0);
            }
            Domain d = namespace.requireAttributes(a, v);
            Inode i = namespace.inode(d, ino);
            namespace.room(Namespace.ROOM);
            applyAttributes(i, c, node.realtimeNs());
            node.journal().changed(d, i, true);
            return new Operations.Attr(i.attributes(), node.view().grantAttributes(call, d, v, i));
        });
    }

    /** Only this node's kernel knows it still. */
    private Attributes changeRemoved(Vnode v, Operations.Change c) throws FsException {
        Inode i = new Inode(v.ino, v.home);
        Attributes was = v.lastAttributes;
        i.mode = was.mode();
        i.uid = was.uid();
        i.gid = was.gid();
        i.size = was.size();
        i.atimeNs = was.atimeNs();
        i.mtimeNs = was.mtimeNs();
        i.btimeNs = was.btimeNs();
        applyAttributes(i, c, node.realtimeNs());
        v.lastAttributes = i.attributes();
        return v.lastAttributes;
    }

    static void applyAttributes(Inode i, Operations.Change c, long nowNs) throws FsException {
        if (c.mode() != null) {
            i.mode = i.mode & Inode.FORMAT_MASK | c.mode() & 07777;
            Xattrs.modeChanged(i);
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
            Inode i = namespace.inode(node.tokens().domain(v.home), ino);
            if (!i.isSymlink()) {
                throw new FsException(Errno.EINVAL);
            }
            return i.symlinkTarget;
        });
    }

    // ---- making names

    /** A new inode in the parent's domain, and its name. X of the parent is held. */
    private Inode make(Call call, Domain d, byte[] name, int mode, int umask, Namespace.Initialiser init) throws FsException {
        Inode dir = namespace.live(d);
        Inode i = namespace.newInode(call, d, mode, umask, init);
        Dirent e = namespace.newEntry(d, name, i.ino, i.type(), i.home);
        node.journal().add(d, e);
        if (i.isDirectory()) {
            i.parent = d.id;
            dir.nlink++;
            node.journal().born(node.tokens().born(i.ino), i);
        } else {
            node.journal().born(d, i);
        }
        namespace.touchDirectory(d, dir, i.btimeNs);
        return i;
    }

    private Operations.Entry makeNode(Call call, long parent, byte[] name, int mode, int umask, Namespace.Initialiser init) throws FsException {
        Namespace.checkName(name);
        return node.waiting().run(call, namespace.holding(parent), a -> {
            namespace.directory(parent);
            node.tokens().require(a, Need.exclusive(parent));
            Domain d = node.tokens().domain(parent);
            namespace.live(d);
            if (namespace.find(d, name) != null) {
                throw new FsException(Errno.EEXIST);
            }
            if ((mode & Inode.FORMAT_MASK) == Inode.DIRECTORY && d.directory().nlink >= LINK_MAX) {
                throw new FsException(Errno.EMLINK);
            }
            node.inodeNumbers().require();
            namespace.room(Namespace.ROOM);
            Inode i = make(call, d, name, mode, umask, init);
            return namespace.entry(call, d, namespace.find(d, name), i);
        });
    }

    Operations.Entry symlink(Call call, long parent, byte[] name, byte[] target) throws FsException {
        if (target.length > SYMLINK_MAX) {
            throw new FsException(Errno.ENAMETOOLONG);
        }
        return makeNode(call, parent, name, Inode.SYMLINK | 0777, 0, i -> {
            i.symlinkTarget = target.clone();
            i.size = target.length;
        });
    }

    Operations.Entry mknod(Call call, long parent, byte[] name, int mode, int umask, int rdev) throws FsException {
        if ((mode & Inode.FORMAT_MASK) == Inode.DIRECTORY) {
            throw new FsException(Errno.EPERM);
        }
        int format = (mode & Inode.FORMAT_MASK) == 0 ? Inode.REGULAR : mode & Inode.FORMAT_MASK;
        return makeNode(call, parent, name, format | mode & 07777, umask, i -> i.rdev = rdev);
    }

    Operations.Entry mkdir(Call call, long parent, byte[] name, int mode, int umask) throws FsException {
        return makeNode(call, parent, name, Inode.DIRECTORY | mode & 07777, umask, i -> {});
    }

    Operations.Created create(Call call, long parent, byte[] name, int mode, int umask, int flags, Bytes bytes) throws FsException {
        Namespace.checkName(name);
        return node.waiting().run(call, namespace.holding(parent), a -> {
            namespace.directory(parent);
            node.tokens().require(a, Need.exclusive(parent));
            Domain d = node.tokens().domain(parent);
            namespace.live(d);
            Dirent e = namespace.find(d, name);
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
                i = namespace.inode(home, e.ino());
                if (!i.isRegular() || !certainlyMayOpen(call, i, flags)) {
                    // Made elsewhere since the kernel looked, which checks nothing more: it looks again and opens it as a file that was there.
                    throw new FsException(Errno.ESTALE);
                }
                Vnode v = node.vnodes().get(e.ino(), e.home(), false);
                if ((flags & Bytes.O_TRUNC) != 0) {
                    if (v.executed > 0 || Xattrs.hasPrivileges(i)) {
                        // An open for truncation says whether the caller may keep those, and the kernel takes capabilities away before it.
                        throw new FsException(Errno.ESTALE);
                    }
                    try {
                        if (!i.extentsLoaded) {
                            openFiles.loadExtents(home, i);
                            throw Blocked.INSTANCE;
                        }
                        bytes.truncate(home, i, v, 0, node.realtimeNs());
                    } catch (Blocked b) {
                        node.vnodes().dropIfUnused(v);
                        throw b;
                    }
                }
            } else {
                node.inodeNumbers().require();
                namespace.room(Namespace.ROOM);
                i = make(call, d, name, Inode.REGULAR | mode & 07777, umask, x -> {});
                e = namespace.find(d, name);
            }
            Vnode v = node.vnodes().get(e.ino(), e.home(), false);
            OpenFiles.Handle h = openFiles.open(v, flags);
            return new Operations.Created(namespace.entry(call, d, e, i), new Operations.Opened(h.id, Bytes.openFlags(flags)));
        });
    }

    /** O_TMPFILE: a file without a name from its birth, open. It gets one by {@link #link}, unless it was opened with O_EXCL. */
    Operations.Created tmpfile(Call call, long parent, int mode, int umask, int flags) throws FsException {
        return node.waiting().run(call, namespace.holding(parent), a -> {
            namespace.directory(parent);
            node.tokens().require(a, Need.exclusive(parent));
            Domain d = node.tokens().domain(parent);
            namespace.live(d);
            node.inodeNumbers().require();
            namespace.room(Namespace.ROOM);
            Inode i = namespace.newInode(call, d, Inode.REGULAR | mode & 07777, umask, x -> x.nlink = 0);
            node.journal().born(d, i);
            Vnode v = node.vnodes().get(i.ino, i.home, false);
            v.lookups++;
            OpenFiles.Handle h = openFiles.open(v, flags);
            openFiles.bornWithoutName(v, i, (flags & Bytes.O_EXCL) == 0);
            Operations.Entry entry = new Operations.Entry(i.ino, 0, i.attributes(), 0, node.view().grantAttributes(call, d, v, i));
            return new Operations.Created(entry, new Operations.Opened(h.id, Bytes.openFlags(flags)));
        });
    }

    /** By the mode alone, where there is no ACL. Other groups of the caller are not known here: where they could make a difference the answer is no. */
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
        if (Xattrs.hasAccessAcl(i)) {
            return false;
        }
        boolean group = (i.mode >> 3 & wanted) == wanted;
        return call.gid() == i.gid ? group : group && (i.mode & wanted) == wanted;
    }

    Operations.Entry link(Call call, long ino, long newParent, byte[] newName) throws FsException {
        Namespace.checkName(newName);
        return node.waiting().run(call, namespace.holding(newParent), a -> {
            namespace.directory(newParent);
            Vnode v = node.vnodes().require(ino);
            if (v.directory) {
                throw new FsException(Errno.EPERM);
            }
            namespace.requireTwo(a, newParent, v.home);
            Domain d = node.tokens().domain(newParent);
            Domain home = node.tokens().domain(v.home);
            Inode dir = namespace.live(d);
            if (namespace.find(d, newName) != null) {
                throw new FsException(Errno.EEXIST);
            }
            Inode i = namespace.inode(home, ino);
            if (i.nlink == 0 && !v.linkable) {
                throw new FsException(Errno.ENOENT);
            }
            if (i.nlink >= LINK_MAX) {
                throw new FsException(Errno.EMLINK);
            }
            node.space().requireStore();
            namespace.room(Namespace.ROOM);
            long nowNs = node.realtimeNs();
            Dirent e = namespace.newEntry(d, newName, ino, i.type(), v.home);
            node.journal().add(d, e);
            if (i.nlink == 0) {
                openFiles.named(v, i);
            }
            i.nlink++;
            i.ctimeNs = nowNs;
            node.journal().changed(home, i, true);
            namespace.touchDirectory(d, dir, nowNs);
            return namespace.entry(call, d, e, i);
        });
    }

    // ---- removing names

    void unlink(Call call, long parent, byte[] name) throws FsException {
        Namespace.checkName(name);
        node.waiting().run(call, namespace.holding(parent), a -> {
            namespace.directory(parent);
            node.tokens().require(a, Need.exclusive(parent));
            Domain d = node.tokens().domain(parent);
            Inode dir = namespace.live(d);
            Dirent e = namespace.find(d, name);
            if (e == null) {
                throw new FsException(Errno.ENOENT);
            }
            if (e.isDirectory()) {
                throw new FsException(Errno.EISDIR);
            }
            namespace.requireTwo(a, parent, e.home());
            Domain home = node.tokens().domain(e.home());
            Inode i = namespace.inode(home, e.ino());
            namespace.roomWithout(i);
            long nowNs = node.realtimeNs();
            node.journal().remove(d, e);
            namespace.dropLink(home, i, nowNs);
            namespace.touchDirectory(d, dir, nowNs);
            return null;
        });
    }

    void rmdir(Call call, long parent, byte[] name) throws FsException {
        Namespace.checkName(name);
        node.waiting().run(call, namespace.holding(parent), a -> {
            namespace.directory(parent);
            node.tokens().require(a, Need.exclusive(parent));
            Domain d = node.tokens().domain(parent);
            Inode dir = namespace.live(d);
            Dirent e = namespace.find(d, name);
            if (e == null) {
                throw new FsException(Errno.ENOENT);
            }
            if (!e.isDirectory()) {
                throw new FsException(Errno.ENOTDIR);
            }
            node.tokens().require(a, Need.exclusive(parent), Need.exclusive(e.ino()));
            Domain child = node.tokens().domain(e.ino());
            if (!node.tokens().reads().isEmpty(child)) {
                throw new FsException(Errno.ENOTEMPTY);
            }
            namespace.room(Namespace.ROOM);
            long nowNs = node.realtimeNs();
            node.journal().remove(d, e);
            namespace.removeDirectory(child, nowNs);
            dir.nlink--;
            namespace.touchDirectory(d, dir, nowNs);
            return null;
        });
    }

    // ---- listings

    void readdir(Call call, long ino, long cookie, boolean withAttributes, Operations.DirectorySink sink) throws FsException {
        node.waiting().run(call, namespace.holding(ino), a -> {
            namespace.directory(ino);
            node.tokens().require(a, Need.shared(ino));
            Domain d = node.tokens().domain(ino);
            Inode dir = d.directory();
            if (dir == null || cookie == Long.MAX_VALUE) {
                return null;
            }
            long knownTo = node.tokens().reads().listed(d, cookie + 1, withAttributes);
            boolean first = true;
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
            d.listedNs = node.monitor().nowNs();
            for (Dirent e : d.entries.tailMap(cookie, false).values()) {
                boolean unknown = e.hash() >= knownTo && knownTo != Long.MAX_VALUE || withAttributes && !first && node.tokens().reads().lacks(d, e);
                if (unknown || !sink.hasRoomFor(e.name().length)) {
                    // An answer that says something is not the end of the listing.
                    return null;
                }
                first = false;
                Operations.Entry entry = null;
                if (withAttributes) {
                    Domain home = node.tokens().known(e.home());
                    if (home != null && home.usable(Mode.SHARED) && home.inodes.containsKey(e.ino())) {
                        entry = namespace.entry(call, d, e, home.inodes.get(e.ino()));
                    }
                }
                sink.add(e.name(), e.ino(), e.dirType(), e.hash(), entry);
            }
            return null;
        });
    }
}
