package io.etcfs.core.fs;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.domain.Vnode;
import io.etcfs.core.file.Extent;
import io.etcfs.core.token.Blocked;

/**
 * Where a file has bytes and where it has holes. Bytes that a mapping wrote and the kernel has not written back yet count: who copies a file without its holes would
 * lose them. So the kernel writes back the pages of a hole before it is called one.
 */
final class Seeks {
    static final int SEEK_DATA = 3;
    static final int SEEK_HOLE = 4;
    private static final int BLOCK = BlockDevice.BLOCK_BYTES;
    /** It waits for requests that have pages of the hole locked, and they may wait for a token. */
    private static final long WRITE_BACK_NS = 1_000_000_000L;
    /** Somebody who makes holes meanwhile can make each answer another one. */
    private static final int TRIES = 4;

    private final Node node;
    private final Contents contents;

    Seeks(Node node, Contents contents) {
        this.node = node;
        this.contents = contents;
    }

    /** @param at the answer, -1: there is none; it is one only if there is nothing in the pages of {@code [holeFrom, holeTo)} */
    private record Found(long at, long holeFrom, long holeTo, long size) {}

    long lseek(Call call, long ino, long offset, int whence) throws FsException {
        if (whence != SEEK_DATA && whence != SEEK_HOLE) {
            throw new FsException(Errno.EINVAL);
        }
        Vnode vnode = node.monitor().with(() -> node.vnodes().require(ino));
        long writtenBackFrom = 0;
        long writtenBackTo = 0;
        long size = 0;
        for (int tries = 0; tries < TRIES; tries++) {
            Found found = node.waiting().run(call, a -> find(vnode, offset, whence));
            if (found.holeFrom >= found.holeTo || found.holeFrom >= writtenBackFrom && found.holeTo <= writtenBackTo) {
                if (found.at < 0) {
                    throw new FsException(Errno.ENXIO);
                }
                return found.at;
            }
            if (!call.mayWait()) {
                throw MustWait.INSTANCE;
            }
            size = found.size;
            if (!node.view().dropRange(vnode, found.holeFrom, found.holeTo - found.holeFrom, WRITE_BACK_NS)) {
                break;
            }
            writtenBackFrom = found.holeFrom;
            writtenBackTo = found.holeTo;
        }
        // Whether there are bytes is not known: to say so where there are none harms nobody.
        return whence == SEEK_DATA ? offset : size;
    }

    private Found find(Vnode v, long offset, int whence) throws FsException {
        Domain d = node.tokens().requireForData(v.home, Mode.SHARED);
        Inode i = contents.inode(d, v);
        if (offset < 0 || offset >= i.size) {
            throw new FsException(Errno.ENXIO);
        }
        if (!v.sideBuffer.isEmpty()) {
            throw Blocked.INSTANCE;
        }
        // A mapping keeps its handle open.
        boolean mayBeDirty = v.pagesCached && v.writableHandles > 0;
        long data = nextData(i, offset);
        if (whence == SEEK_DATA) {
            long holeTo = data < 0 ? i.size : data;
            return new Found(data, mayBeDirty ? offset : holeTo, holeTo, i.size);
        }
        long hole = nextHole(i, offset);
        long next = hole >= i.size ? hole : nextData(i, hole);
        long holeTo = next < 0 ? i.size : next;
        return new Found(hole, mayBeDirty ? hole : holeTo, holeTo, i.size);
    }

    /** Or -1. */
    private static long nextData(Inode i, long offset) {
        long endBlock = endBlock(i);
        for (long block = offset / BLOCK; block < endBlock; ) {
            Extent e = extent(i, block);
            if (e == null) {
                return -1;
            }
            if (e.logicalBlock() <= block && !e.unwritten()) {
                return Math.max(offset, block * BLOCK);
            }
            block = e.logicalBlock() <= block ? e.logicalEnd() : e.logicalBlock();
        }
        return -1;
    }

    /** The end of the file is one. */
    private static long nextHole(Inode i, long offset) {
        long endBlock = endBlock(i);
        long block = offset / BLOCK;
        while (block < endBlock) {
            Extent e = extent(i, block);
            if (e == null || e.logicalBlock() > block || e.unwritten()) {
                break;
            }
            block = e.logicalEnd();
        }
        return Math.min(i.size, Math.max(offset, Math.min(block, endBlock) * BLOCK));
    }

    /** At the block or behind it. */
    private static Extent extent(Inode i, long block) {
        return block >= i.deadFrom ? null : i.extents.atOrAfter(block);
    }

    /** Behind it all bytes are zero, whatever the blocks contain. */
    private static long endBlock(Inode i) {
        return (Math.min(i.size, i.valid) + BLOCK - 1) / BLOCK;
    }
}
