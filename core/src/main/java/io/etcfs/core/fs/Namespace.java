package io.etcfs.core.fs;

import io.etcfs.core.domain.Dirent;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.domain.Vnode;
import io.etcfs.core.record.proto.FileType;
import io.etcfs.core.token.Attempt;
import io.etcfs.core.token.Blocked;
import io.etcfs.core.token.Need;

/** Directories, names and inodes as operations on them find them, and the steps that these have in common. Monitor held, but for {@link #holding}. */
final class Namespace {
    /** Operations that one on names or attributes adds to a batch at most, apart from the freeing of space. */
    static final int ROOM = 24;

    private final Node node;
    private final OpenFiles openFiles;
    private final Places places;

    Namespace(Node node, OpenFiles openFiles) {
        this.node = node;
        this.openFiles = openFiles;
        this.places = new Places(node);
    }

    static void checkName(byte[] name) throws FsException {
        if (name.length > Names.NAME_MAX) {
            throw new FsException(Errno.ENAMETOOLONG);
        }
    }

    Vnode directory(long ino) throws FsException {
        Vnode v = node.vnodes().require(ino);
        if (!v.directory) {
            throw new FsException(Errno.ENOTDIR);
        }
        return v;
    }

    Waiting.Held holding(long... dirs) {
        Domain[] domains = node.monitor().with(() -> {
            Domain[] found = new Domain[dirs.length];
            for (int i = 0; i < dirs.length; i++) {
                found[i] = node.tokens().domain(dirs[i]);
            }
            return found;
        });
        return Waiting.directories(domains);
    }

    /**
     * The name's entry, or null.
     *
     * @throws Blocked it is being read
     */
    Dirent find(Domain dir, byte[] name) {
        long hash = node.nameHash().hash63(name);
        node.tokens().reads().requireName(dir, hash);
        return dir.entry(hash, name);
    }

    /** The directory's own inode; a directory that was removed has none and takes no names. */
    Inode live(Domain dir) throws FsException {
        Inode i = dir.directory();
        if (i == null) {
            throw new FsException(Errno.ENOENT);
        }
        return i;
    }

    void room(int operations) {
        if (!node.pipeline().room(operations)) {
            throw Blocked.INSTANCE;
        }
    }

    /** Room for an operation that takes a name from the inode, perhaps its last. */
    void roomWithout(Inode inode) {
        room(openFiles.freeingKeys(inode) + ROOM);
    }

    /**
     * The inode that the kernel names, or that an entry does.
     *
     * @throws FsException as {@link #gone}
     * @throws Blocked     it is being read
     */
    Inode inode(Domain home, long ino) throws FsException {
        Inode i = node.tokens().reads().inode(home, ino);
        if (i == null) {
            throw gone(ino);
        }
        return i;
    }

    /** ESTALE: it was removed. EIO: it is open here all the same, as its token was lost with a session before. */
    FsException gone(long ino) {
        Vnode v = node.vnodes().known(ino);
        return new FsException(v != null && !v.directory && v.handles > 0 ? Errno.EIO : Errno.ESTALE);
    }

    /**
     * What is known of a directory that was removed, here or elsewhere, while it is somebody's working directory or open here. Null: it is none.
     *
     * @throws Blocked its token is not here
     */
    Attributes removedDirectory(Vnode v) {
        if (!v.directory || v.lastAttributes == null || node.tokens().requireForData(v.home, Mode.SHARED).directory() != null) {
            return null;
        }
        return v.lastAttributes.withoutName();
    }

    void requireTwo(Attempt a, long one, long other) {
        if (one == other) {
            node.tokens().require(a, Need.exclusive(one));
        } else {
            node.tokens().require(a, Need.exclusive(one), Need.exclusive(other));
        }
    }

    /** Attribute changes are served while the kernel's pages are being dropped: the kernel may hold up a write-back for them. */
    Domain requireAttributes(Attempt a, Vnode v) {
        return node.tokens().requireForData(v.home, Mode.EXCLUSIVE);
    }

    Operations.Entry entry(Call call, Domain dir, Dirent e, Inode inode) {
        Vnode v = node.vnodes().get(e.ino(), e.home(), e.isDirectory());
        v.lookups++;
        Domain home = node.tokens().domain(e.home());
        long entryValid = node.view().grantName(call, dir, e.name());
        long attributesValid = node.view().grantAttributes(call, home, v, inode);
        v.lastAttributes = e.isDirectory() ? inode.attributes() : null;
        if (e.isDirectory()) {
            places.told(v, dir, e.name());
        }
        return new Operations.Entry(e.ino(), 0, inode.attributes(), entryValid, attributesValid);
    }

    /** False: the kernel is being made to drop another place of this directory, which is waited for a little. */
    boolean placeSettled(Domain dir, Dirent e) {
        Vnode v = node.vnodes().known(e.ino());
        return v == null || places.settled(v, dir, e.name());
    }

    /** The kernel moves a name itself, when this operation is answered. */
    void moved(Domain from, Dirent e, Domain to, byte[] name) {
        node.view().moved(from, e.name(), to, name, e.isDirectory());
        if (e.isDirectory()) {
            places.moved(e.ino(), to, name);
        }
    }

    interface Initialiser {
        void accept(Inode inode);
    }

    /** An inode of the directory's domain as it is born: its owner, mode and times. X of the directory is held, and there is a number for it. */
    Inode newInode(Call call, Domain d, int mode, int umask, Initialiser init) throws FsException {
        Inode dir = live(d);
        node.space().requireStore();
        node.inodeNumbers().require();
        long ino = node.inodeNumbers().next();
        boolean isDirectory = (mode & Inode.FORMAT_MASK) == Inode.DIRECTORY;
        Inode i = new Inode(ino, isDirectory ? ino : d.id);
        long nowNs = node.realtimeNs();
        i.mode = mode;
        i.uid = call.uid();
        i.gid = call.gid();
        if ((dir.mode & Inode.SET_GID) != 0) {
            i.gid = dir.gid;
            if (isDirectory) {
                i.mode |= Inode.SET_GID;
            }
        }
        Xattrs.inherit(dir, i, umask);
        i.nlink = isDirectory ? 2 : 1;
        i.atimeNs = nowNs;
        i.mtimeNs = nowNs;
        i.ctimeNs = nowNs;
        i.btimeNs = nowNs;
        init.accept(i);
        return i;
    }

    void touchDirectory(Domain d, Inode dir, long nowNs) {
        dir.mtimeNs = nowNs;
        dir.ctimeNs = nowNs;
        node.journal().changed(d, dir, true);
    }

    Dirent newEntry(Domain dir, byte[] name, long ino, FileType type, long home) throws FsException {
        long hash = node.nameHash().hash63(name);
        if (dir.entries.containsKey(hash)) {
            // Another name has the same hash: one in 2^63, and the kernel can't resume a listing between two equal cookies.
            System.getLogger(Names.class.getName()).log(System.Logger.Level.WARNING, "name hash collision in directory {0}", dir.id);
            throw new FsException(Errno.ENOSPC);
        }
        return new Dirent(name.clone(), hash, ino, type, home, node.pipeline().openNumber());
    }

    void dropLink(Domain home, Inode i, long nowNs) {
        i.nlink--;
        i.ctimeNs = nowNs;
        if (i.nlink == 0) {
            openFiles.lastNameGone(home, i);
        } else {
            node.journal().changed(home, i, true);
        }
    }

    void removeDirectory(Domain child, long nowNs) {
        Inode i = child.directory();
        i.nlink = 0;
        i.ctimeNs = nowNs;
        Vnode v = node.vnodes().known(child.id);
        if (v != null) {
            v.lastAttributes = i.attributes();
        }
        node.journal().delete(child, i);
        child.lastChangedNs = Long.MIN_VALUE / 2;
        // Given back once the batch that removes it is out: files can live on in the domain.
        node.pipeline().onCommitted(() -> node.tokens().release(child));
    }
}
