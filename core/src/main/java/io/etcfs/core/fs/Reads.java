package io.etcfs.core.fs;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.domain.Vnode;
import io.etcfs.core.file.Extent;
import io.etcfs.core.pipeline.DirtyBlocks;
import io.etcfs.core.token.Blocked;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Reading: planned under the monitor, read from the device without, and good only if the session is still the one it was planned under. */
final class Reads {
    private static final int BLOCK = BlockDevice.BLOCK_BYTES;

    private final Node node;
    private final Contents contents;
    private final Copies copies;

    Reads(Node node, Contents contents, Copies copies) {
        this.node = node;
        this.contents = contents;
        this.copies = copies;
    }

    private record DeviceRead(long deviceBlock, long scratchOffset, long bytes) {}

    private record ReadPlan(Vnode vnode, List<DeviceRead> reads, int length, long validBytes, long sessionRevision, Map<Long, byte[]> side, boolean dropAfter) {}

    /** Instead of a plan: some of the blocks have to be copied before they can be shown. */
    private static final ReadPlan COPY_FIRST = new ReadPlan(null, List.of(), 0, 0, 0, Map.of(), false);

    MemorySegment read(Call call, long ino, long handle, long offset, int size, int openFlags, MemorySegment scratch) throws FsException {
        if (offset < 0) {
            throw new FsException(Errno.EINVAL);
        }
        Vnode vnode = node.monitor().with(() -> node.vnodes().require(ino));
        long base = offset / BLOCK * BLOCK;
        // Around the page cache it holds no page locked, and the cache can have its pages: a recall must not leave them out.
        Waiting.Held held = Bytes.cached(openFlags) ? Waiting.pages(vnode, offset, offset + size, false) : Waiting.NOTHING;
        while (true) {
            ReadPlan plan = node.waiting().run(call, held, a -> planRead(call, vnode, offset, size, openFlags, scratch, base));
            if (plan == COPY_FIRST) {
                copies.copy(call, held, vnode, offset / BLOCK, (offset + size + BLOCK - 1) / BLOCK);
                continue;
            }
            if (!plan.reads.isEmpty()) {
                try {
                    for (DeviceRead r : plan.reads) {
                        node.device().read(r.deviceBlock * BLOCK, scratch.asSlice(r.scratchOffset, r.bytes));
                    }
                } catch (DeviceException e) {
                    if (e.isLate()) {
                        continue;
                    }
                    throw Contents.failed("read", ino, e);
                } finally {
                    endRead(plan.vnode);
                }
                // What ended after the deadline waits for the session to be confirmed; what was read under a session that is gone is read again.
                if (!confirmed(call, plan.sessionRevision)) {
                    continue;
                }
            }
            long from = offset - base;
            if (plan.validBytes < plan.length) {
                long valid = Math.max(0, plan.validBytes);
                scratch.asSlice(from + valid, plan.length - valid).fill((byte) 0);
            }
            overlay(plan.side, offset, plan.length, scratch, from);
            if (plan.dropAfter) {
                node.view().dropAnswered(vnode, offset, offset + plan.length);
            }
            return scratch.asSlice(from, plan.length);
        }
    }

    private ReadPlan planRead(Call call, Vnode v, long offset, int size, int openFlags, MemorySegment scratch, long base) throws FsException {
        Domain d = node.tokens().requireForData(v.home, Mode.SHARED);
        Inode i = contents.inode(d, v);
        if (v.changing || d.pagesClosed || node.monitor().nowNs() < v.changeWantedUntilNs) {
            throw Blocked.INSTANCE;
        }
        int n = (int) Math.max(0, Math.min(size, i.size - offset));
        List<DeviceRead> reads = new ArrayList<>();
        if (n > 0 && !d.suspects.isEmpty()) {
            if (copies.needed(d, i, offset / BLOCK, (offset + n + BLOCK - 1) / BLOCK)) {
                if (!call.mayWait()) {
                    throw MustWait.INSTANCE;
                }
                return COPY_FIRST;
            }
            copies.requirePublished(d, i);
        }
        planBlocks(i, offset, n, base, scratch, reads);
        if (!reads.isEmpty()) {
            v.readers++;
            node.pipeline().beginDeviceAccess();
        }
        boolean dropAfter = false;
        if (Bytes.cached(openFlags)) {
            node.view().answeredRead(v, offset, offset + size);
            dropAfter = n > 0 && node.view().mayCut(d, v, offset, offset + n);
        }
        Map<Long, byte[]> side = v.sideBuffer.isEmpty() ? Map.of() : new TreeMap<>(v.sideBuffer);
        return new ReadPlan(v, reads, n, i.valid - offset, node.session().revision(), side, dropAfter);
    }

    /** Holes and what is dirty go to the scratch memory at once, the rest is to be read there. */
    private void planBlocks(Inode i, long offset, int n, long base, MemorySegment scratch, List<DeviceRead> reads) {
        if (n <= 0) {
            return;
        }
        long firstBlock = offset / BLOCK;
        long endBlock = (offset + n + BLOCK - 1) / BLOCK;
        long block = firstBlock;
        while (block < endBlock) {
            Extent e = block >= i.deadFrom ? null : i.extents.atOrAfter(block);
            long mappedFrom = e == null ? endBlock : Math.min(endBlock, Math.max(block, e.logicalBlock()));
            if (mappedFrom > block) {
                scratch.asSlice(block * BLOCK - base, (mappedFrom - block) * BLOCK).fill((byte) 0);
                block = mappedFrom;
                continue;
            }
            long end = Math.min(Math.min(endBlock, e.logicalEnd()), i.deadFrom);
            if (e.unwritten()) {
                scratch.asSlice(block * BLOCK - base, (end - block) * BLOCK).fill((byte) 0);
            } else {
                planMapped(e, block, end, base, scratch, reads);
            }
            block = end;
        }
    }

    /** Dirty blocks come from memory, the others from the device, adjacent ones in one access. */
    private void planMapped(Extent e, long from, long to, long base, MemorySegment scratch, List<DeviceRead> reads) {
        DirtyBlocks dirty = node.pipeline().dirty();
        long runStart = from;
        if (!dirty.isEmpty()) {
            for (long b = from; b < to; b++) {
                DirtyBlocks.Block held = dirty.get(Contents.deviceBlock(e, b));
                if (held != null) {
                    if (b > runStart) {
                        reads.add(new DeviceRead(Contents.deviceBlock(e, runStart), runStart * BLOCK - base, (b - runStart) * BLOCK));
                    }
                    MemorySegment.copy(held.bytes(), 0, scratch, b * BLOCK - base, BLOCK);
                    runStart = b + 1;
                }
            }
        }
        if (to > runStart) {
            reads.add(new DeviceRead(Contents.deviceBlock(e, runStart), runStart * BLOCK - base, (to - runStart) * BLOCK));
        }
    }

    private static void overlay(Map<Long, byte[]> side, long offset, int length, MemorySegment scratch, long at) {
        for (Map.Entry<Long, byte[]> s : side.entrySet()) {
            long from = Math.max(offset, s.getKey());
            long to = Math.min(offset + length, s.getKey() + s.getValue().length);
            if (from < to) {
                MemorySegment.copy(s.getValue(), (int) (from - s.getKey()), scratch, ValueLayout.JAVA_BYTE, at + from - offset, (int) (to - from));
            }
        }
    }

    /** A file's bytes up to its end as they are while the token is held as it was: nobody else can have changed them since the kernel was given its pages. */
    record Base(Domain domain, long lockRevision, long sessionRevision, byte[] bytes) {}

    /** Never waits for a token. Null: it is not known. Without what is in the side buffer. */
    Base base(Vnode v, long offset, int size) {
        long from = offset / BLOCK * BLOCK;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment scratch = arena.allocate((offset + size + BLOCK - 1) / BLOCK * BLOCK - from, BLOCK);
            List<DeviceRead> reads = new ArrayList<>();
            long[] valid = {0};
            Base base = node.monitor().with(() -> {
                Domain d = node.tokens().known(v.home);
                Inode i = d == null ? null : d.inodes.get(v.ino);
                if (i == null || !d.usableForData(Mode.SHARED) || !node.session().trusted() || !d.suspects.isEmpty() || v.changing || !i.isRegular() || !i.extentsLoaded) {
                    return null;
                }
                int n = (int) Math.clamp(i.size - offset, 0, size);
                planBlocks(i, offset, n, from, scratch, reads);
                valid[0] = Math.clamp(i.valid - offset, 0, n);
                if (!reads.isEmpty()) {
                    v.readers++;
                    node.pipeline().beginDeviceAccess();
                }
                return new Base(d, d.lockRevision, node.session().revision(), new byte[n]);
            });
            if (base == null) {
                return null;
            }
            if (!reads.isEmpty()) {
                try {
                    for (DeviceRead r : reads) {
                        node.device().read(r.deviceBlock * BLOCK, scratch.asSlice(r.scratchOffset, r.bytes));
                    }
                } catch (DeviceException e) {
                    return null;
                } finally {
                    endRead(v);
                }
            }
            MemorySegment.copy(scratch, ValueLayout.JAVA_BYTE, offset - from, base.bytes, 0, (int) valid[0]);
            return base;
        }
    }

    /** Whether it is what the file has still, but for changes of this node. Monitor held. */
    boolean stands(Base base) {
        return base.domain.usableForData(Mode.SHARED) && base.domain.lockRevision == base.lockRevision && node.session().trusted() && node.session().revision() == base.sessionRevision;
    }

    private void endRead(Vnode v) {
        node.monitor().lock();
        try {
            v.readers--;
            node.pipeline().endDeviceAccess();
            node.vnodes().dropIfUnused(v);
            node.monitor().changed();
        } finally {
            node.monitor().unlock();
        }
    }

    private boolean confirmed(Call call, long sessionRevision) throws FsException {
        return node.waiting().run(call, a -> {
            if (!node.session().trusted()) {
                throw Blocked.INSTANCE;
            }
            return node.session().revision() == sessionRevision;
        });
    }
}
