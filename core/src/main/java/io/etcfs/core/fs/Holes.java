package io.etcfs.core.fs;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.domain.Vnode;
import io.etcfs.core.file.Extent;
import io.etcfs.core.space.Run;
import io.etcfs.core.token.Blocked;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/** Parts of a file without blocks: fallocate fills and makes them. */
final class Holes {
    private static final int BLOCK = BlockDevice.BLOCK_BYTES;
    private static final int FALLOC_KEEP_SIZE = 1;
    private static final int FALLOC_PUNCH_HOLE = 2;
    private static final int FALLOC_ZERO_RANGE = 16;
    /** What fallocate reserves under one holding of the monitor: 64 MiB. */
    private static final long RESERVE_BLOCKS = 16_384;

    private final Node node;
    private final OpenFiles openFiles;
    private final Contents contents;
    private final Writes writes;

    Holes(Node node, OpenFiles openFiles, Contents contents, Writes writes) {
        this.node = node;
        this.openFiles = openFiles;
        this.contents = contents;
        this.writes = writes;
    }

    void fallocate(Call call, long ino, long handle, long offset, long length, int mode) throws FsException {
        if (offset < 0 || length <= 0) {
            throw new FsException(Errno.EINVAL);
        }
        if (offset + length > Names.FILE_MAX || offset + length < 0) {
            throw new FsException(Errno.EFBIG);
        }
        boolean keepSize = (mode & FALLOC_KEEP_SIZE) != 0;
        boolean punch = (mode & FALLOC_PUNCH_HOLE) != 0;
        boolean zero = (mode & FALLOC_ZERO_RANGE) != 0;
        if ((mode & ~(FALLOC_KEEP_SIZE | FALLOC_PUNCH_HOLE | FALLOC_ZERO_RANGE)) != 0 || punch && (zero || !keepSize)) {
            throw new FsException(Errno.EOPNOTSUPP);
        }
        if (!call.mayWait()) {
            throw MustWait.INSTANCE;
        }
        Vnode vnode = node.monitor().with(() -> node.vnodes().require(ino));
        long end = offset + length;
        boolean whole = false;
        boolean zeroing = false;
        long triedInEpoch = 0;
        try {
            while (!whole) {
                try (KeptToken kept = KeptToken.take(node, call, Waiting.NOTHING, vnode)) {
                    triedInEpoch = kept.againIn(triedInEpoch);
                    if (!punch) {
                        // First: where there is no room nothing has changed.
                        reserve(call, kept, vnode, offset / BLOCK, (end + BLOCK - 1) / BLOCK);
                    }
                    if (punch || zero) {
                        zeroing = true;
                        zeroEdges(call, kept, vnode, offset, end);
                        removeWhole(call, kept, vnode, (offset + BLOCK - 1) / BLOCK, end / BLOCK, punch);
                    }
                    if (zero) {
                        // What was removed was written, and is reserved again.
                        reserve(call, kept, vnode, offset / BLOCK, (end + BLOCK - 1) / BLOCK);
                    }
                    finish(call, kept, vnode, end, keepSize);
                    whole = kept.unbroken();
                } catch (KeptToken.Lost e) {
                    // Again from its beginning.
                }
            }
        } catch (FsException e) {
            if (zeroing) {
                // The kernel drops its pages of the range only after success.
                node.view().dropRangeBriefly(vnode, offset, length);
            }
            throw e;
        }
    }

    private void finish(Call call, KeptToken kept, Vnode vnode, long end, boolean keepSize) throws FsException {
        node.waiting().run(call, a -> {
            kept.require();
            Domain d = node.tokens().requireForData(vnode.home, Mode.EXCLUSIVE);
            Inode i = contents.inode(d, vnode);
            if (!node.pipeline().room(16)) {
                throw Blocked.INSTANCE;
            }
            long nowNs = node.realtimeNs();
            if (!keepSize) {
                i.size = Math.max(i.size, end);
            }
            i.mtimeNs = nowNs;
            i.ctimeNs = nowNs;
            if (call.uid() != 0) {
                // The kernel does not say who may keep them.
                i.killPrivileges();
            }
            node.journal().changed(d, i, true);
            return null;
        });
    }

    /** Bytes of the range in blocks that it covers only in part become zero, where there are any. */
    private void zeroEdges(Call call, KeptToken kept, Vnode v, long from, long to) throws FsException {
        long size = node.waiting().run(call, a -> {
            kept.require();
            return contents.inode(node.tokens().requireForData(v.home, Mode.EXCLUSIVE), v).size;
        });
        long end = Math.min(to, size);
        if (from >= end) {
            return;
        }
        long firstWhole = (from + BLOCK - 1) / BLOCK * BLOCK;
        long lastWhole = to / BLOCK * BLOCK;
        if (firstWhole > lastWhole) {
            zeroPart(call, kept, v, from, end);
            return;
        }
        if (from < firstWhole) {
            zeroPart(call, kept, v, from, Math.min(firstWhole, end));
        }
        if (lastWhole < end) {
            zeroPart(call, kept, v, lastWhole, end);
        }
    }

    private void zeroPart(Call call, KeptToken kept, Vnode v, long from, long to) throws FsException {
        if (from >= to) {
            return;
        }
        boolean there = node.waiting().run(call, a -> {
            kept.require();
            Inode i = contents.inode(node.tokens().requireForData(v.home, Mode.EXCLUSIVE), v);
            Extent e = Contents.mapped(i, from / BLOCK);
            return e != null && !e.unwritten() && from < i.valid;
        });
        if (!there) {
            return;
        }
        MemorySegment zeros = Arena.ofAuto().allocate(to - from, BLOCK);
        while (true) {
            WritePlan plan = node.waiting().run(call, a -> {
                kept.require();
                return writes.planWrite(v, from, zeros, Writes.Where.BATCH, false, Writes.Source.CALL, true);
            });
            if (plan.complete || writes.carryOut(call, plan)) {
                return;
            }
        }
    }

    /** @param reserved those, too, that are only reserved */
    private void removeWhole(Call call, KeptToken kept, Vnode v, long from, long to, boolean reserved) throws FsException {
        long at = from;
        while (at < to) {
            kept.letOthersIn();
            long start = at;
            long next = Math.min(to, at + RESERVE_BLOCKS);
            at = node.waiting().run(call, a -> {
                kept.require();
                Domain d = node.tokens().requireForData(v.home, Mode.EXCLUSIVE);
                Inode i = contents.inode(d, v);
                if (v.changing || !v.sideBuffer.isEmpty() || !node.pipeline().room(2 * OpenFiles.MAX_SPACE_KEYS)) {
                    throw Blocked.INSTANCE;
                }
                contents.requireNoReaders(v);
                List<Extent> there = i.extents.within(start, next);
                int fitting = openFiles.fitting(there);
                long upTo = fitting == there.size() ? next : there.get(fitting).logicalBlock();
                List<Extent> gone = reserved ? i.extents.remove(start, upTo) : removeWritten(i, there.subList(0, fitting));
                if (!gone.isEmpty()) {
                    node.space().free(gone, d);
                    node.journal().changed(d, i, true);
                }
                return upTo;
            });
        }
    }

    private static List<Extent> removeWritten(Inode i, List<Extent> there) {
        List<Extent> gone = new ArrayList<>();
        for (Extent e : there) {
            if (!e.unwritten()) {
                gone.addAll(i.extents.remove(e.logicalBlock(), e.logicalEnd()));
            }
        }
        return gone;
    }

    /** Holes of the range get unwritten extents, a piece at a time. */
    private void reserve(Call call, KeptToken kept, Vnode v, long from, long to) throws FsException {
        long at = from;
        while (at < to) {
            kept.letOthersIn();
            long start = at;
            long next = Math.min(to, at + RESERVE_BLOCKS);
            at = node.waiting().run(call, a -> {
                kept.require();
                Domain d = node.tokens().requireForData(v.home, Mode.EXCLUSIVE);
                Inode i = contents.inode(d, v);
                if (v.changing || !node.pipeline().room(2 * OpenFiles.MAX_SPACE_KEYS)) {
                    throw Blocked.INSTANCE;
                }
                if (next > i.deadFrom) {
                    openFiles.finishRemainder(i.home, i.ino);
                    throw Blocked.INSTANCE;
                }
                List<long[]> holes = new ArrayList<>();
                long b = start;
                for (Extent e : i.extents.within(start, next)) {
                    if (e.logicalBlock() > b) {
                        holes.add(new long[] {b, e.logicalBlock()});
                    }
                    b = e.logicalEnd();
                }
                if (b < next) {
                    holes.add(new long[] {b, next});
                }
                List<Run> runs = new ArrayList<>();
                List<Long> logical = new ArrayList<>();
                try {
                    for (long[] hole : holes) {
                        Extent before = hole[0] == 0 ? null : i.extents.at(hole[0] - 1);
                        long hint = before == null ? -1 : Contents.deviceBlock(before, hole[0] - 1) + 1;
                        long l = hole[0];
                        for (Run run : node.space().allocate((int) (hole[1] - hole[0]), hint)) {
                            runs.add(run);
                            logical.add(l);
                            l += run.length();
                        }
                    }
                } catch (Blocked | FsException e) {
                    node.space().abandon(runs);
                    throw e;
                }
                List<Extent> added = new ArrayList<>();
                for (int k = 0; k < runs.size(); k++) {
                    added.add(new Extent(logical.get(k), runs.get(k).firstBlock(), runs.get(k).length(), d.epoch, Extent.FLAG_UNWRITTEN));
                }
                int fitting = openFiles.fitting(added);
                node.space().abandon(runs.subList(fitting, runs.size()));
                for (int k = 0; k < fitting; k++) {
                    i.extents.put(added.get(k));
                    node.space().reference(runs.get(k));
                }
                if (fitting > 0) {
                    node.journal().changed(d, i, true);
                }
                return fitting == runs.size() ? next : added.get(fitting).logicalBlock();
            });
        }
    }
}
