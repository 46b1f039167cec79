package io.etcfs.core.fs;

import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.domain.Vnode;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.token.Blocked;
import java.lang.foreign.MemorySegment;

/**
 * File contents: what is done to an open file's bytes. A read or write is planned under the monitor, does its device accesses without, and is completed under the
 * monitor again; {@link Vnode#readers} and {@link Vnode#changing} keep the blocks in place meanwhile, and a domain with either is not given up.
 *
 * <p>Small writes go into dirty blocks that the pipeline writes, many files' in one access. Large aligned ones, and those of O_DIRECT and O_DSYNC files, go to the
 * device at once. A block is overwritten in place only if its epoch is the domain's; else it is written elsewhere and remapped.
 */
final class Bytes {
    static final int O_ACCMODE = 3;
    /** Not of open(2): the kernel adds it where a program is opened to be executed (__FMODE_EXEC). */
    static final int FOR_EXECUTION = 040;
    static final int O_EXCL = 0200;
    static final int O_TRUNC = 01000;
    static final int O_APPEND = 02000;
    static final int O_DSYNC = 010000;
    static final int O_DIRECT = 040000;
    static final int O_SYNC = 04010000;
    static final int FOPEN_DIRECT_IO = 1;
    static final int FOPEN_KEEP_CACHE = 2;

    private final Node node;
    private final OpenFiles openFiles;
    private final Reads reads;
    private final Writes writes;
    private final Sizes sizes;
    private final Holes holes;
    private final Seeks seeks;
    private final Durability durability;

    Bytes(Node node, OpenFiles openFiles) {
        this.node = node;
        this.openFiles = openFiles;
        Contents contents = new Contents(node, openFiles);
        durability = new Durability(node);
        reads = new Reads(node, contents, new Copies(node, openFiles, contents));
        writes = new Writes(node, openFiles, contents, durability, reads);
        sizes = new Sizes(node, openFiles, contents, writes.mappings());
        holes = new Holes(node, openFiles, contents, writes);
        seeks = new Seeks(node, contents);
    }

    /** FOPEN_*: whoever appends does not go through the page cache, as the daemon places the bytes. */
    static int openFlags(int flags) {
        return (flags & O_APPEND) != 0 ? FOPEN_DIRECT_IO : FOPEN_KEEP_CACHE;
    }

    /** Not to be told by O_DIRECT and O_APPEND: fcntl sets them on cached handles, and mappings of any handle are cached. */
    static boolean cached(int openFlags) {
        return (openFlags & Operations.AROUND_CACHE) == 0;
    }

    Operations.Opened open(Call call, long ino, int flags, boolean killPrivileges) throws FsException {
        boolean truncates = (flags & O_TRUNC) != 0;
        Waiting.Held held = truncates ? sizes.sizeChange(node.monitor().with(() -> node.vnodes().require(ino))) : Waiting.NOTHING;
        return node.waiting().run(call, held, a -> {
            Vnode v = node.vnodes().require(ino);
            Domain given = node.tokens().domain(v.home);
            boolean blind = Fault.OPENED_WHILE_GIVEN.on() && given.giving && given.loaded && !truncates;
            Domain d = blind ? given : node.tokens().requireForData(v.home, truncates ? Mode.EXCLUSIVE : Mode.SHARED);
            if (d.recalling && d.namesClosed && !blind) {
                // The batch that gives the token may be closed without the open: key of this file.
                throw Blocked.INSTANCE;
            }
            Inode i = blind ? d.inodes.get(ino) : node.tokens().reads().inode(d, ino);
            // Without a name it is good while this node's own pin of it stands, and nobody is about to take that away.
            if (i == null || !Fault.OPENED_WITHOUT_NAME.on() && i.nlink == 0 && v.handles == 0 && (v.openKeyRevision == 0 || v.closerRunning)) {
                throw new FsException(Errno.ESTALE);
            }
            if (truncates && i.isRegular()) {
                if (v.executed > 0 && (flags & O_ACCMODE) == 0) {
                    // The kernel refuses it by itself where the open is for writing, and here only after we have cut the running program off.
                    throw new FsException(Errno.ETXTBSY);
                }
                if (!i.extentsLoaded) {
                    openFiles.loadExtents(d, i);
                    throw Blocked.INSTANCE;
                }
                sizes.truncate(d, i, v, 0, node.realtimeNs());
                if (killPrivileges) {
                    i.killPrivileges();
                }
            }
            OpenFiles.Handle h = openFiles.open(v, flags);
            v.lookedUpNs = Long.MIN_VALUE / 2;
            return new Operations.Opened(h.id, openFlags(flags));
        });
    }

    MemorySegment read(Call call, long ino, long handle, long offset, int size, int openFlags, MemorySegment scratch) throws FsException {
        return reads.read(call, ino, handle, offset, size, openFlags, scratch);
    }

    int write(Call call, long ino, long handle, long offset, MemorySegment data, int openFlags, boolean fromPageCache, boolean killPrivileges) throws FsException {
        return writes.write(call, ino, handle, offset, data, openFlags, fromPageCache, killPrivileges);
    }

    Operations.Attr setSize(Call call, long ino, Operations.Change c) throws FsException {
        return sizes.setSize(call, ino, c);
    }

    /** Sets the size. X is held and the extents are loaded. Throws {@link Blocked} before it has any effect. */
    void truncate(Domain d, Inode i, Vnode v, long size, long nowNs) {
        sizes.truncate(d, i, v, size, nowNs);
    }

    void fallocate(Call call, long ino, long handle, long offset, long length, int mode) throws FsException {
        holes.fallocate(call, ino, handle, offset, length, mode);
    }

    long lseek(Call call, long ino, long offset, int whence) throws FsException {
        return seeks.lseek(call, ino, offset, whence);
    }

    void fsync(Call call, long ino, boolean dataOnly) throws FsException {
        durability.fsync(call, ino, dataOnly);
    }

    /** Before a close returns: what a mapping wrote until then is what every node reads, or the close says that it was lost. */
    void awaitWriteBack(Call call, long ino) throws FsException {
        durability.awaitWriteBack(call, ino);
    }
}
