package io.etcfs.core.fs;

import io.etcfs.core.device.DeviceException;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Vnode;
import io.etcfs.core.file.Extent;
import io.etcfs.core.token.Blocked;

/** A file's contents as operations on bytes find them: its inode, where its blocks are, who is at them. Monitor held. */
final class Contents {
    /** How long new reads wait for somebody who changes blocks. */
    private static final long CHANGE_TURN_NS = 50_000_000L;

    private final Node node;
    private final OpenFiles openFiles;

    Contents(Node node, OpenFiles openFiles) {
        this.node = node;
        this.openFiles = openFiles;
    }

    /** The inode of an open file: gone means that its token was lost with a session and the file was removed meanwhile. */
    Inode inode(Domain d, Vnode v) throws FsException {
        Inode i = node.tokens().reads().inode(d, v.ino);
        if (i == null) {
            throw new FsException(v.handles > 0 ? Errno.EIO : Errno.ESTALE);
        }
        if (i.isDirectory()) {
            throw new FsException(Errno.EISDIR);
        }
        if (!i.extentsLoaded) {
            openFiles.loadExtents(d, i);
            throw Blocked.INSTANCE;
        }
        return i;
    }

    /** The mapping of a block in this node's view; what is to be freed counts as absent. */
    static Extent mapped(Inode i, long block) {
        return block >= i.deadFrom ? null : i.extents.at(block);
    }

    static long deviceBlock(Extent e, long block) {
        return e.deviceBlock() + (block - e.logicalBlock());
    }

    /** Reads under way are waited for, and new ones wait meanwhile: where reads overlap all the time a change would never get its turn. */
    void requireNoReaders(Vnode v) {
        if (v.readers > 0) {
            v.changeWantedUntilNs = node.monitor().nowNs() + CHANGE_TURN_NS;
            throw Blocked.INSTANCE;
        }
        v.changeWantedUntilNs = Long.MIN_VALUE;
    }

    static FsException failed(String what, long ino, DeviceException e) {
        System.getLogger(Bytes.class.getName()).log(System.Logger.Level.ERROR, "device {0} for inode {1} failed: {2}", what, ino, e.getMessage());
        return new FsException(Errno.EIO);
    }
}
