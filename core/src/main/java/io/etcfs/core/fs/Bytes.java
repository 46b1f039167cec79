package io.etcfs.core.fs;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.domain.Vnode;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.file.Extent;
import io.etcfs.core.file.ExtentMap;
import io.etcfs.core.pipeline.DirtyBlocks;
import io.etcfs.core.space.Run;
import io.etcfs.core.token.Blocked;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * File contents. A read or write is planned under the monitor, does its device accesses without, and is completed under the monitor again; {@link Vnode#readers}
 * and {@link Vnode#changing} keep the blocks in place meanwhile, and a domain with either is not given up.
 *
 * <p>Small writes go into dirty blocks that the pipeline writes, many files' in one access. Large aligned ones, and those of O_DIRECT and O_DSYNC files, go to the
 * device at once. A block is overwritten in place only if its epoch is the domain's; else it is written elsewhere and remapped.
 */
final class Bytes {
    static final int O_ACCMODE = 3;
    static final int O_EXCL = 0200;
    static final int O_TRUNC = 01000;
    static final int O_APPEND = 02000;
    static final int O_DSYNC = 010000;
    static final int O_DIRECT = 040000;
    static final int O_SYNC = 04010000;
    static final int FOPEN_DIRECT_IO = 1;
    static final int FOPEN_KEEP_CACHE = 2;
    static final int FALLOC_KEEP_SIZE = 1;
    static final int FALLOC_PUNCH_HOLE = 2;
    static final int FALLOC_ZERO_RANGE = 16;
    private static final int BLOCK = BlockDevice.BLOCK_BYTES;
    private static final int DIRECT_BYTES = 64 << 10;
    /** Operations that a write adds to a batch at most; one that would add more is split. */
    private static final int ROOM = 72;
    private static final int SPLIT_BYTES = 64 << 10;
    /** What fallocate reserves under one holding of the monitor: 64 MiB. */
    private static final long RESERVE_BLOCKS = 16_384;
    private static final long CHANGE_TURN_NS = 50_000_000L;
    private static final long FAR = Long.MAX_VALUE >> 1;
    private static final Call BACKGROUND = new Call(0, 0, 0, 0, true, Call.Interruption.NEVER);

    private final Node node;
    private final OpenFiles openFiles;

    Bytes(Node node, OpenFiles openFiles) {
        this.node = node;
        this.openFiles = openFiles;
    }

    /** FOPEN_*: whoever appends does not go through the page cache, as the daemon places the bytes. */
    static int openFlags(int flags) {
        return (flags & O_APPEND) != 0 ? FOPEN_DIRECT_IO : FOPEN_KEEP_CACHE;
    }

    /** Not to be told by O_DIRECT and O_APPEND: fcntl sets them on cached handles, and mappings of any handle are cached. */
    private static boolean cached(int openFlags) {
        return (openFlags & Operations.AROUND_CACHE) == 0;
    }

    private long now() {
        return node.monitor().clock().realtimeNs();
    }

    /** The inode of an open file: gone means that its token was lost with a session and the file was removed meanwhile. */
    private Inode inode(Domain d, Vnode v) throws FsException {
        Inode i = d.inodes.get(v.ino);
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
    private static Extent mapped(Inode i, long block) {
        return block >= i.deadFrom ? null : i.extents.at(block);
    }

    private static long deviceBlock(Extent e, long block) {
        return e.deviceBlock() + (block - e.logicalBlock());
    }

    // ---- opening

    Operations.Opened open(Call call, long ino, int flags, boolean killPrivileges) throws FsException {
        boolean truncates = (flags & O_TRUNC) != 0 && (flags & O_ACCMODE) != 0;
        Waiting.Held held = truncates ? sizeChange(node.monitor().with(() -> node.vnodes().require(ino))) : Waiting.NOTHING;
        return node.waiting().run(call, held, a -> {
            Vnode v = node.vnodes().require(ino);
            Domain d = node.tokens().requireForData(v.home, truncates ? Mode.EXCLUSIVE : Mode.SHARED);
            if (d.recalling && d.namesClosed) {
                // The batch that gives the token may be closed without the open: key of this file.
                throw Blocked.INSTANCE;
            }
            Inode i = d.inodes.get(ino);
            if (i == null || i.nlink == 0 && v.handles == 0) {
                throw new FsException(Errno.ESTALE);
            }
            if (truncates && i.isRegular()) {
                if (!i.extentsLoaded) {
                    openFiles.loadExtents(d, i);
                    throw Blocked.INSTANCE;
                }
                truncate(d, i, v, 0, now());
                if (killPrivileges) {
                    i.killPrivileges();
                }
            }
            OpenFiles.Handle h = openFiles.open(v, flags);
            return new Operations.Opened(h.id, openFlags(flags));
        });
    }

    // ---- reading

    private record DeviceRead(long deviceBlock, long scratchOffset, long bytes) {}

    private record ReadPlan(Vnode vnode, List<DeviceRead> reads, int length, long validBytes, long sessionRevision, Map<Long, byte[]> side) {}

    MemorySegment read(Call call, long ino, long handle, long offset, int size, int openFlags, MemorySegment scratch) throws FsException {
        if (offset < 0) {
            throw new FsException(Errno.EINVAL);
        }
        Vnode vnode = node.monitor().with(() -> node.vnodes().require(ino));
        long base = offset / BLOCK * BLOCK;
        // Around the page cache it holds no page locked, and the cache can have its pages: a recall must not leave them out.
        Waiting.Held held = cached(openFlags) ? Waiting.pages(vnode, offset, offset + size, false) : Waiting.NOTHING;
        while (true) {
            ReadPlan plan = node.waiting().run(call, held, a -> planRead(vnode, offset, size, openFlags, scratch, base));
            if (!plan.reads.isEmpty()) {
                try {
                    for (DeviceRead r : plan.reads) {
                        node.device().read(r.deviceBlock * BLOCK, scratch.asSlice(r.scratchOffset, r.bytes));
                    }
                } catch (DeviceException e) {
                    throw failed("read", ino, e);
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
            return scratch.asSlice(from, plan.length);
        }
    }

    private ReadPlan planRead(Vnode v, long offset, int size, int openFlags, MemorySegment scratch, long base) throws FsException {
        Domain d = node.tokens().requireForData(v.home, Mode.SHARED);
        Inode i = inode(d, v);
        if (v.changing || d.pagesClosed || node.monitor().nowNs() < v.changeWantedUntilNs) {
            throw Blocked.INSTANCE;
        }
        int n = (int) Math.max(0, Math.min(size, i.size - offset));
        List<DeviceRead> reads = new ArrayList<>();
        if (n > 0) {
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
        if (!reads.isEmpty()) {
            v.readers++;
            node.pipeline().beginDeviceAccess();
        }
        if (cached(openFlags)) {
            node.view().answered(v, offset, offset + size);
        }
        Map<Long, byte[]> side = v.sideBuffer.isEmpty() ? Map.of() : new TreeMap<>(v.sideBuffer);
        return new ReadPlan(v, reads, n, i.valid - offset, node.session().revision(), side);
    }

    /** Dirty blocks come from memory, the others from the device, adjacent ones in one access. */
    private void planMapped(Extent e, long from, long to, long base, MemorySegment scratch, List<DeviceRead> reads) {
        DirtyBlocks dirty = node.pipeline().dirty();
        long runStart = from;
        if (!dirty.isEmpty()) {
            for (long b = from; b < to; b++) {
                DirtyBlocks.Block held = dirty.get(deviceBlock(e, b));
                if (held != null) {
                    if (b > runStart) {
                        reads.add(new DeviceRead(deviceBlock(e, runStart), runStart * BLOCK - base, (b - runStart) * BLOCK));
                    }
                    MemorySegment.copy(held.bytes(), 0, scratch, b * BLOCK - base, BLOCK);
                    runStart = b + 1;
                }
            }
        }
        if (to > runStart) {
            reads.add(new DeviceRead(deviceBlock(e, runStart), runStart * BLOCK - base, (to - runStart) * BLOCK));
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

    /** Reads under way are waited for, and new ones wait meanwhile: where reads overlap all the time a change would never get its turn. */
    private void requireNoReaders(Vnode v) {
        if (v.readers > 0) {
            v.changeWantedUntilNs = node.monitor().nowNs() + CHANGE_TURN_NS;
            throw Blocked.INSTANCE;
        }
        v.changeWantedUntilNs = Long.MIN_VALUE;
    }

    private static FsException failed(String what, long ino, DeviceException e) {
        System.getLogger(Bytes.class.getName()).log(System.Logger.Level.ERROR, "device {0} for inode {1} failed: {2}", what, ino, e.getMessage());
        return new FsException(Errno.EIO);
    }

    // ---- writing

    int write(Call call, long ino, long handle, long offset, MemorySegment data, int openFlags, boolean fromPageCache, boolean killPrivileges) throws FsException {
        long n = data.byteSize();
        if (n == 0) {
            return 0;
        }
        if (offset < 0) {
            throw new FsException(Errno.EINVAL);
        }
        boolean append = (openFlags & O_APPEND) != 0 && !fromPageCache && !Fault.APPEND_PLACED_BY_KERNEL.on();
        if (!append && offset + n > Names.FILE_MAX) {
            throw new FsException(Errno.EFBIG);
        }
        Vnode vnode = node.monitor().with(() -> node.vnodes().require(ino));
        boolean sync = (openFlags & O_DSYNC) != 0;
        boolean now = sync || (openFlags & O_DIRECT) != 0 || n >= DIRECT_BYTES;
        // Both wait after the bytes were written, for durability and for the kernel's pages: a request that were made a second time for that would append twice.
        if ((sync || append) && !call.mayWait()) {
            throw MustWait.INSTANCE;
        }
        if (fromPageCache && !Fault.WRITE_BACK_WAITS.on()) {
            if (!tryWriteBack(vnode, offset, data)) {
                return (int) n;
            }
            // X is held: as any other write, and it never waits for a token, as dropping pages waits for it.
        }
        long placedAt;
        Waiting.Held held = append || !cached(openFlags) ? Waiting.NOTHING : Waiting.pages(vnode, offset, offset + n, true);
        while (true) {
            WritePlan plan = node.waiting().run(call, held, a -> planWrite(vnode, append ? -1 : offset, data, now, killPrivileges,
                    fromPageCache && !Fault.WRITE_BACK_WAITS.on() ? Source.MAPPING : Source.CALL, cached(openFlags)));
            if (plan == SIDE_BUFFERED) {
                return (int) n;
            }
            if (plan == SPLIT) {
                if (!call.mayWait()) {
                    throw MustWait.INSTANCE;
                }
                // As one write to everybody else on this node (the kernel holds the inode), in several steps to the batches.
                int done = 0;
                while (done < n) {
                    MemorySegment part = data.asSlice(done, Math.min(n > SPLIT_BYTES ? SPLIT_BYTES : BLOCK, n - done));
                    done += write(call, ino, handle, append ? offset : offset + done, part, openFlags, fromPageCache, killPrivileges);
                }
                return done;
            }
            placedAt = plan.offset;
            if (plan.complete || carryOut(call, plan)) {
                break;
            }
        }
        if (append && node.monitor().with(() -> vnode.pagesCached)) {
            // The kernel may have placed the bytes elsewhere in its cache than where they are.
            node.view().dropRangeBriefly(ino, placedAt, n);
            if (offset != placedAt) {
                node.view().dropRangeBriefly(ino, offset, n);
            }
        }
        if (sync) {
            makeDurable(call, vnode, (openFlags & O_SYNC) != O_SYNC);
        }
        return (int) n;
    }

    /** What a write does, in steps. Blocks are logical; {@code target} gives each block's device block once it is known. */
    private static final class WritePlan {
        final Vnode vnode;
        final Domain domain;
        final Inode inode;
        final long offset;
        final MemorySegment data;
        final long sessionRevision;
        boolean complete;
        boolean killPrivileges;
        /** Whole blocks that go to the device at once. */
        long directFrom;
        long directTo;
        /** The same as device accesses: logical block, device block, blocks. */
        final List<long[]> directRuns = new ArrayList<>();
        /** Block whose bytes beyond {@link Inode#valid} must become zero first, or -1. */
        long zeroTail = -1;
        /** New blocks by logical block, in order, as parallel lists of logical start and device run. */
        final List<Long> newLogical = new ArrayList<>();
        final List<Run> newRuns = new ArrayList<>();
        /** Old contents to be read first: logical block → where it is; then its bytes. */
        final Map<Long, Long> fetch = new TreeMap<>();
        final Map<Long, MemorySegment> fetched = new HashMap<>();
        /** Blocks written in part whose old contents are dirty in memory: logical block → device block. */
        final Map<Long, Long> dirty = new TreeMap<>();

        WritePlan(Vnode vnode, Domain domain, Inode inode, long offset, MemorySegment data, long sessionRevision) {
            this.vnode = vnode;
            this.domain = domain;
            this.inode = inode;
            this.offset = offset;
            this.data = data;
            this.sessionRevision = sessionRevision;
        }

        long target(long block, Inode i) {
            for (int k = 0; k < newRuns.size(); k++) {
                long at = newLogical.get(k);
                if (block >= at && block < at + newRuns.get(k).length()) {
                    return newRuns.get(k).firstBlock() + (block - at);
                }
            }
            return deviceBlock(i.extents.at(block), block);
        }
    }

    /** Answers of {@link #planWrite}: the write has to be made in parts; the bytes are in the side buffer; there is nothing to write. */
    private static final WritePlan SPLIT = new WritePlan(null, null, null, 0, null, 0);
    private static final WritePlan SIDE_BUFFERED = new WritePlan(null, null, null, 0, null, 0);
    private static final WritePlan NOTHING_LEFT = new WritePlan(null, null, null, 0, null, 0);

    static {
        NOTHING_LEFT.complete = true;
    }

    /** Who writes: a system call; the kernel, pages of a shared mapping; this node, those from the side buffer. */
    private enum Source { CALL, MAPPING, SIDE_BUFFER }

    private WritePlan planWrite(Vnode v, long wantedOffset, MemorySegment bytes, boolean now, boolean killPrivileges, Source source, boolean cached) throws FsException {
        if (source == Source.MAPPING && (!holdsExclusive(v) || !v.sideBuffer.isEmpty())) {
            // X went while this waited: the bytes wait for it in the side buffer, behind those that do already.
            sideBuffer(v, wantedOffset, bytes);
            return SIDE_BUFFERED;
        }
        Domain d = node.tokens().requireForData(v.home, Mode.EXCLUSIVE);
        Inode i = inode(d, v);
        if (v.changing || source == Source.CALL && (d.pagesClosed || !v.sideBuffer.isEmpty())) {
            // What is in the side buffer was written before.
            throw Blocked.INSTANCE;
        }
        long offset = wantedOffset >= 0 ? wantedOffset : i.size;
        // A mapping has no bytes behind the end of the file, whatever end the kernel knew when it wrote them back.
        MemorySegment data = source == Source.CALL ? bytes : bytes.asSlice(0, Math.clamp(i.size - offset, 0, bytes.byteSize()));
        long n = data.byteSize();
        if (n == 0) {
            return NOTHING_LEFT;
        }
        if (offset + n > Names.FILE_MAX) {
            throw new FsException(Errno.EFBIG);
        }
        long first = offset / BLOCK;
        long end = (offset + n + BLOCK - 1) / BLOCK;
        if (end > i.deadFrom) {
            openFiles.finishRemainder(i.home, i.ino);
            throw Blocked.INSTANCE;
        }
        if (!node.pipeline().room(ROOM)) {
            throw Blocked.INSTANCE;
        }
        WritePlan p = new WritePlan(v, d, i, offset, data, node.session().revision());
        p.killPrivileges = killPrivileges;
        DirtyBlocks dirty = node.pipeline().dirty();

        // Which whole blocks go to the device at once: only where their bytes lie aligned in memory and none of them is dirty.
        long wholeFrom = (offset + BLOCK - 1) / BLOCK;
        long wholeTo = (offset + n) / BLOCK;
        if (now && wholeTo > wholeFrom && (data.address() + (wholeFrom * BLOCK - offset)) % BLOCK == 0) {
            boolean clean = true;
            if (!dirty.isEmpty()) {
                for (long b = wholeFrom; b < wholeTo && clean; b++) {
                    Extent e = mapped(i, b);
                    clean = e == null || dirty.get(deviceBlock(e, b)) == null;
                }
            }
            if (clean) {
                p.directFrom = wholeFrom;
                p.directTo = wholeTo;
            }
        }

        // Blocks that are written in part keep the rest of what they have; so does the one whose end was never written.
        if (offset % BLOCK != 0 || n < BLOCK && end == first + 1) {
            planFetch(p, i, first, offset, n, dirty);
        }
        if ((offset + n) % BLOCK != 0 && end - 1 != first) {
            planFetch(p, i, end - 1, offset, n, dirty);
        }
        long validBlock = i.valid / BLOCK;
        if (i.valid % BLOCK != 0 && offset > i.valid && validBlock < first) {
            Extent e = mapped(i, validBlock);
            if (e != null && !e.unwritten()) {
                p.zeroTail = validBlock;
                planFetch(p, i, validBlock, -1, 0, dirty);
            }
        }

        boolean frees = false;
        List<long[]> wanted = new ArrayList<>();
        for (long b = p.zeroTail >= 0 ? p.zeroTail : first; b < end; b = b == p.zeroTail ? first : b + 1) {
            Extent e = mapped(i, b);
            boolean inPlace = e != null && e.epoch() == d.epoch;
            if (!inPlace) {
                frees |= e != null;
                if (!wanted.isEmpty() && wanted.getLast()[1] == b) {
                    wanted.getLast()[1] = b + 1;
                } else {
                    wanted.add(new long[] {b, b + 1});
                }
            }
        }
        if (frees || p.directTo > p.directFrom) {
            requireNoReaders(v);
        }
        try {
            for (long[] w : wanted) {
                Extent before = w[0] == 0 ? null : mapped(i, w[0] - 1);
                long hint = before == null ? -1 : deviceBlock(before, w[0] - 1) + 1;
                long at = w[0];
                for (Run run : node.space().allocate((int) (w[1] - w[0]), hint)) {
                    p.newLogical.add(at);
                    p.newRuns.add(run);
                    at += run.length();
                }
            }
        } catch (Blocked | FsException e) {
            node.space().abandon(p.newRuns);
            throw e;
        }
        if (n > BLOCK && spaceKeys(p, i, first, end) > OpenFiles.MAX_SPACE_KEYS) {
            node.space().abandon(p.newRuns);
            return SPLIT;
        }
        for (long b = p.directFrom; b < p.directTo; b++) {
            long device = p.target(b, i);
            long[] last = p.directRuns.isEmpty() ? null : p.directRuns.getLast();
            if (last != null && last[1] + last[2] == device) {
                last[2]++;
            } else {
                p.directRuns.add(new long[] {b, device, 1});
            }
        }
        if (cached) {
            node.view().answered(v, offset, offset + n);
        }
        if (p.fetch.isEmpty() && p.directFrom == p.directTo) {
            complete(p);
            p.complete = true;
        } else {
            // While the device is accessed the pipeline may write dirty blocks out and forget them.
            p.dirty.forEach((block, device) -> p.fetched.put(block, MemorySegment.ofArray(dirty.get(device).bytes().toArray(ValueLayout.JAVA_BYTE))));
            v.changing = true;
            node.pipeline().beginDeviceAccess();
        }
        return p;
    }

    /** How many records about space the write changes: those of new blocks and of blocks that they replace. */
    private int spaceKeys(WritePlan p, Inode i, long first, long end) {
        List<Extent> touched = new ArrayList<>();
        for (int k = 0; k < p.newRuns.size(); k++) {
            touched.add(new Extent(p.newLogical.get(k), p.newRuns.get(k).firstBlock(), p.newRuns.get(k).length(), 0, 0));
        }
        if (!p.newRuns.isEmpty()) {
            touched.addAll(i.extents.within(first, end));
        }
        return openFiles.spaceKeys(touched);
    }

    /** Notes that the block's old bytes have to be read, unless they are zero, dirty in memory, or written over anyway. */
    private void planFetch(WritePlan p, Inode i, long block, long offset, long n, DirtyBlocks dirty) {
        Extent e = mapped(i, block);
        long start = block * BLOCK;
        if (e == null || e.unwritten() || start >= i.valid || p.fetch.containsKey(block)) {
            return;
        }
        long device = deviceBlock(e, block);
        boolean covered = n > 0 && offset <= start && offset + n >= Math.min(i.valid, start + BLOCK);
        if (!covered) {
            (dirty.get(device) == null ? p.fetch : p.dirty).put(block, device);
        }
    }

    /** Device accesses of a planned write, and its end. False: the session went meanwhile; plan again. */
    private boolean carryOut(Call call, WritePlan p) throws FsException {
        try (Arena arena = Arena.ofConfined()) {
            return carryOut(call, p, arena);
        }
    }

    private boolean carryOut(Call call, WritePlan p, Arena arena) throws FsException {
        boolean accessed = false;
        try {
            for (Map.Entry<Long, Long> f : p.fetch.entrySet()) {
                MemorySegment block = arena.allocate(BLOCK, BLOCK);
                node.device().read(f.getValue() * BLOCK, block);
                p.fetched.put(f.getKey(), block);
            }
            for (long[] run : p.directRuns) {
                node.device().write(run[1] * BLOCK, p.data.asSlice(run[0] * BLOCK - p.offset, run[2] * BLOCK));
            }
            accessed = true;
        } catch (DeviceException e) {
            throw failed("write", p.vnode.ino, e);
        } finally {
            node.monitor().lock();
            try {
                if (!p.directRuns.isEmpty()) {
                    node.pipeline().deviceWritten();
                }
                node.pipeline().endDeviceAccess();
                if (!accessed) {
                    giveUp(p);
                }
            } finally {
                node.monitor().unlock();
            }
        }
        boolean completed = false;
        try {
            // A write in place counts only if the session is still trusted, and the token held, after it ended.
            completed = node.waiting().run(call, a -> {
                if (!stillHeld(p)) {
                    return false;
                }
                if (!node.session().trusted() || !node.pipeline().room(ROOM)) {
                    throw Blocked.INSTANCE;
                }
                complete(p);
                p.vnode.changing = false;
                node.monitor().changed();
                return true;
            });
            return completed;
        } finally {
            if (!completed) {
                node.monitor().lock();
                try {
                    giveUp(p);
                } finally {
                    node.monitor().unlock();
                }
            }
        }
    }

    private boolean stillHeld(WritePlan p) {
        return p.domain.held == Mode.EXCLUSIVE && p.domain.inodes.get(p.inode.ino) == p.inode && node.session().revision() == p.sessionRevision && node.session().live();
    }

    private void giveUp(WritePlan p) {
        node.space().abandon(p.newRuns);
        p.vnode.changing = false;
        node.vnodes().dropIfUnused(p.vnode);
        node.monitor().changed();
    }

    /** The write joins the open batch. Monitor held, room made. */
    private void complete(WritePlan p) {
        Inode i = p.inode;
        MemorySegment data = p.data;
        long n = data.byteSize();
        long offset = p.offset;
        DirtyBlocks dirty = node.pipeline().dirty();
        long first = offset / BLOCK;
        long end = (offset + n + BLOCK - 1) / BLOCK;
        boolean metadata = !p.newRuns.isEmpty() || offset + n > i.size || offset + n > i.valid;
        boolean buffered = false;

        // Old bytes of blocks that move are taken before the mapping changes.
        Map<Long, MemorySegment> old = new HashMap<>(p.fetched);
        for (long b : partialBlocks(p, first, end, offset, n)) {
            Extent e = mapped(i, b);
            if (e != null && !e.unwritten() && b * BLOCK < i.valid && e.epoch() != p.domain.epoch) {
                DirtyBlocks.Block held = dirty.get(deviceBlock(e, b));
                if (held != null) {
                    old.put(b, MemorySegment.ofArray(held.bytes().toArray(ValueLayout.JAVA_BYTE)));
                }
            }
        }
        for (int k = 0; k < p.newRuns.size(); k++) {
            Run run = p.newRuns.get(k);
            List<Extent> replaced = i.extents.put(new Extent(p.newLogical.get(k), run.firstBlock(), run.length(), p.domain.epoch, 0));
            node.space().reference(run);
            node.space().free(replaced, p.domain);
        }
        for (Extent e : i.extents.within(first, end)) {
            if (e.unwritten()) {
                i.extents.setWritten(Math.max(first, e.logicalBlock()), Math.min(end, e.logicalEnd()));
                metadata = true;
            }
        }
        if (p.zeroTail >= 0) {
            buffer(i, p.zeroTail, old.get(p.zeroTail), null, 0, 0);
            buffered = true;
        }
        for (long b = first; b < end; b++) {
            if (b >= p.directFrom && b < p.directTo) {
                continue;
            }
            buffer(i, b, old.get(b), data, offset, n);
            buffered = true;
        }
        long nowNs = now();
        i.size = Math.max(i.size, offset + n);
        i.valid = Math.max(i.valid, offset + n);
        i.mtimeNs = nowNs;
        i.ctimeNs = nowNs;
        if (p.killPrivileges) {
            i.killPrivileges();
        }
        node.journal().changed(p.domain, i, metadata || buffered);
        node.monitor().changed();
    }

    private static List<Long> partialBlocks(WritePlan p, long first, long end, long offset, long n) {
        List<Long> blocks = new ArrayList<>(3);
        if (p.zeroTail >= 0) {
            blocks.add(p.zeroTail);
        }
        if (offset % BLOCK != 0 || (offset + n) % BLOCK != 0) {
            blocks.add(first);
            if (end - 1 != first) {
                blocks.add(end - 1);
            }
        }
        return blocks;
    }

    /** Puts a block's new contents into its dirty buffer: the old bytes below {@code valid}, zeros beyond, then what is written of it. */
    private void buffer(Inode i, long block, MemorySegment old, MemorySegment data, long offset, long n) {
        long start = block * BLOCK;
        long from = data == null ? start : Math.max(start, offset);
        long to = data == null ? start : Math.min(start + BLOCK, offset + n);
        long device = deviceBlock(i.extents.at(block), block);
        boolean wasDirty = node.pipeline().dirty().get(device) != null;
        DirtyBlocks.Block target = node.pipeline().dirtyForWrite(device);
        if (to - from < BLOCK) {
            long valid = old == null && !wasDirty ? 0 : Math.max(0, Math.min(BLOCK, i.valid - start));
            if (old != null) {
                MemorySegment.copy(old, 0, target.bytes(), 0, valid);
            }
            target.bytes().asSlice(valid, BLOCK - valid).fill((byte) 0);
        }
        if (to > from) {
            MemorySegment.copy(data, from - offset, target.bytes(), from - start, to - from);
        }
    }

    // ---- write-back of shared mappings

    private boolean holdsExclusive(Vnode v) {
        Domain d = node.tokens().known(v.home);
        return d != null && d.usableForData(Mode.EXCLUSIVE) && node.session().trusted();
    }

    /** True: X is held, write as usual. False: the bytes are in the side buffer until X is ours. Never waits for a token. */
    private boolean tryWriteBack(Vnode v, long offset, MemorySegment data) {
        node.monitor().lock();
        try {
            if (holdsExclusive(v) && v.sideBuffer.isEmpty()) {
                return true;
            }
            sideBuffer(v, offset, data);
            return false;
        } finally {
            node.monitor().unlock();
        }
    }

    private void sideBuffer(Vnode v, long offset, MemorySegment data) {
        boolean first = v.sideBuffer.isEmpty();
        // By page: a later write-back of a page replaces an earlier one.
        long n = data.byteSize();
        for (long at = offset; at < offset + n; ) {
            long to = Math.min(offset + n, (at / BLOCK + 1) * BLOCK);
            byte[] bytes = data.asSlice(at - offset, to - at).toArray(ValueLayout.JAVA_BYTE);
            byte[] before = v.sideBuffer.get(at);
            if (before != null && before.length > bytes.length) {
                // A new array: whoever writes the old one out has to see that it was replaced.
                byte[] both = before.clone();
                System.arraycopy(bytes, 0, both, 0, bytes.length);
                bytes = both;
            }
            v.sideBuffer.put(at, bytes);
            at = to;
        }
        if (first) {
            node.tasks().start("write-back-" + v.ino, () -> writeSideBuffer(v));
        }
    }

    private void writeSideBuffer(Vnode v) {
        while (!node.waiting().stopped()) {
            Map.Entry<Long, byte[]> next = node.monitor().with(() -> v.sideBuffer.isEmpty() ? null : Map.entry(v.sideBuffer.firstKey(), v.sideBuffer.firstEntry().getValue()));
            if (next == null) {
                return;
            }
            MemorySegment data = MemorySegment.ofArray(next.getValue());
            boolean done;
            boolean lost = false;
            try {
                WritePlan plan = node.waiting().run(BACKGROUND, a -> v.sideBuffer.get(next.getKey()) != next.getValue() ? NOTHING_LEFT
                        : planWrite(v, next.getKey(), data, false, false, Source.SIDE_BUFFER, false));
                done = plan.complete || carryOut(BACKGROUND, plan);
            } catch (FsException e) {
                if (e.errno() == Errno.ETIMEDOUT) {
                    continue;
                }
                // The file is gone or there is no room: as with a local disk, the bytes of the mapping are lost and it is said once.
                System.getLogger(Bytes.class.getName()).log(System.Logger.Level.ERROR, "bytes of a shared mapping of inode {0} could not be written: {1}", v.ino, e.errno());
                lost = true;
                done = true;
            }
            if (done) {
                node.monitor().lock();
                try {
                    v.writeBackFailed |= lost;
                    if (v.sideBuffer.get(next.getKey()) == next.getValue()) {
                        v.sideBuffer.remove(next.getKey());
                    }
                    node.vnodes().dropIfUnused(v);
                    node.monitor().changed();
                } finally {
                    node.monitor().unlock();
                }
            }
        }
    }

    // ---- size

    Operations.Attr setSize(Call call, long ino, Operations.Change c) throws FsException {
        long size = c.size();
        if (size < 0) {
            throw new FsException(Errno.EINVAL);
        }
        if (size > Names.FILE_MAX) {
            throw new FsException(Errno.EFBIG);
        }
        Vnode vnode = node.monitor().with(() -> node.vnodes().require(ino));
        return node.waiting().run(call, sizeChange(vnode), a -> {
            Domain d = node.tokens().requireForData(vnode.home, Mode.EXCLUSIVE);
            Inode i = inode(d, vnode);
            if (!i.isRegular()) {
                throw new FsException(Errno.EINVAL);
            }
            long nowNs = now();
            truncate(d, i, vnode, size, nowNs);
            if (c.mtimeNs() == null) {
                i.mtimeNs = nowNs;
            }
            Names.applyAttributes(i, c, nowNs);
            node.journal().changed(d, i, true);
            return new Operations.Attr(i.attributes(), node.view().grantAttributes(call, d, vnode));
        });
    }

    /** The kernel holds write-back of the inode up while it waits for a change of size, by truncate or by open. */
    private Waiting.Held sizeChange(Vnode vnode) {
        return new Waiting.Held() {
            @Override
            public void begin() {}

            @Override
            public void end() {}

            @Override
            public boolean hopeless() {
                return node.view().sizeChangeIsHopeless(vnode);
            }
        };
    }

    /** Sets the size. X is held and the extents are loaded. Throws {@link Blocked} before it has any effect. */
    void truncate(Domain d, Inode i, Vnode v, long size, long nowNs) {
        if (v.changing) {
            throw Blocked.INSTANCE;
        }
        requireNoReaders(v);
        if (!node.pipeline().room(2 * OpenFiles.MAX_SPACE_KEYS + 16)) {
            throw Blocked.INSTANCE;
        }
        long keep = (size + BLOCK - 1) / BLOCK;
        if (size < i.size || keep < i.extents.end()) {
            List<Extent> gone = i.extents.within(keep, FAR);
            if (i.deadFrom == Long.MAX_VALUE && openFiles.spaceKeys(gone) <= OpenFiles.MAX_SPACE_KEYS && extentRecordsFrom(i, keep) <= OpenFiles.MAX_SPACE_KEYS) {
                node.space().free(i.extents.remove(keep, FAR), d);
            } else if (!gone.isEmpty()) {
                i.deadFrom = Math.min(i.deadFrom, keep);
                node.journal().putRemainder(d, i);
                openFiles.finishRemainder(i.home, i.ino);
            }
        }
        i.size = size;
        i.valid = Math.min(i.valid, size);
        i.mtimeNs = nowNs;
        i.ctimeNs = nowNs;
        cutSideBuffer(v, size);
        node.journal().changed(d, i, true);
    }

    /** Bytes of mappings behind the new end are gone with it. */
    private static void cutSideBuffer(Vnode v, long size) {
        v.sideBuffer.tailMap(size, true).clear();
        Map.Entry<Long, byte[]> last = v.sideBuffer.lastEntry();
        if (last != null && last.getKey() + last.getValue().length > size) {
            v.sideBuffer.put(last.getKey(), Arrays.copyOf(last.getValue(), (int) (size - last.getKey())));
        }
    }

    private static int extentRecordsFrom(Inode i, long block) {
        return i.extentRecords.tailSet(block / ExtentMap.RANGE_BLOCKS, true).size();
    }

    // ---- fallocate, lseek

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
        if (punch || zero) {
            zeroEdges(call, vnode, offset, end);
            removeWhole(call, vnode, (offset + BLOCK - 1) / BLOCK, end / BLOCK);
        }
        if (!punch) {
            reserve(call, vnode, offset / BLOCK, (end + BLOCK - 1) / BLOCK);
        }
        node.waiting().run(call, a -> {
            Domain d = node.tokens().requireForData(vnode.home, Mode.EXCLUSIVE);
            Inode i = inode(d, vnode);
            if (!node.pipeline().room(16)) {
                throw Blocked.INSTANCE;
            }
            long nowNs = now();
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
    private void zeroEdges(Call call, Vnode v, long from, long to) throws FsException {
        long size = node.waiting().run(call, a -> inode(node.tokens().requireForData(v.home, Mode.EXCLUSIVE), v).size);
        long end = Math.min(to, size);
        if (from >= end) {
            return;
        }
        long firstWhole = (from + BLOCK - 1) / BLOCK * BLOCK;
        long lastWhole = to / BLOCK * BLOCK;
        if (firstWhole > lastWhole) {
            zeroPart(call, v, from, end);
            return;
        }
        if (from < firstWhole) {
            zeroPart(call, v, from, Math.min(firstWhole, end));
        }
        if (lastWhole < end) {
            zeroPart(call, v, lastWhole, end);
        }
    }

    private void zeroPart(Call call, Vnode v, long from, long to) throws FsException {
        if (from >= to) {
            return;
        }
        boolean there = node.waiting().run(call, a -> {
            Inode i = inode(node.tokens().requireForData(v.home, Mode.EXCLUSIVE), v);
            Extent e = mapped(i, from / BLOCK);
            return e != null && !e.unwritten() && from < i.valid;
        });
        if (!there) {
            return;
        }
        MemorySegment zeros = Arena.ofAuto().allocate(to - from, BLOCK);
        while (true) {
            WritePlan plan = node.waiting().run(call, a -> planWrite(v, from, zeros, false, false, Source.CALL, true));
            if (plan.complete || carryOut(call, plan)) {
                return;
            }
        }
    }

    private void removeWhole(Call call, Vnode v, long from, long to) throws FsException {
        long at = from;
        while (at < to) {
            long start = at;
            long next = Math.min(to, at + RESERVE_BLOCKS);
            at = node.waiting().run(call, a -> {
                Domain d = node.tokens().requireForData(v.home, Mode.EXCLUSIVE);
                Inode i = inode(d, v);
                if (v.changing || !v.sideBuffer.isEmpty() || !node.pipeline().room(2 * OpenFiles.MAX_SPACE_KEYS)) {
                    throw Blocked.INSTANCE;
                }
                requireNoReaders(v);
                List<Extent> there = i.extents.within(start, next);
                int fitting = openFiles.fitting(there);
                long upTo = fitting == there.size() ? next : there.get(fitting).logicalBlock();
                List<Extent> gone = i.extents.remove(start, upTo);
                if (!gone.isEmpty()) {
                    node.space().free(gone, d);
                    node.journal().changed(d, i, true);
                }
                return upTo;
            });
        }
    }

    /** Holes of the range get unwritten extents, a piece at a time. */
    private void reserve(Call call, Vnode v, long from, long to) throws FsException {
        long at = from;
        while (at < to) {
            long start = at;
            long next = Math.min(to, at + RESERVE_BLOCKS);
            at = node.waiting().run(call, a -> {
                Domain d = node.tokens().requireForData(v.home, Mode.EXCLUSIVE);
                Inode i = inode(d, v);
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
                        long hint = before == null ? -1 : deviceBlock(before, hole[0] - 1) + 1;
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

    long lseek(Call call, long ino, long offset, int whence) throws FsException {
        Vnode vnode = node.monitor().with(() -> node.vnodes().require(ino));
        return node.waiting().run(call, a -> {
            Domain d = node.tokens().requireForData(vnode.home, Mode.SHARED);
            Inode i = inode(d, vnode);
            if (offset < 0 || offset >= i.size) {
                throw new FsException(Errno.ENXIO);
            }
            boolean data = switch (whence) {
                case 3 -> true;
                case 4 -> false;
                default -> throw new FsException(Errno.EINVAL);
            };
            long endBlock = (Math.min(i.size, i.valid) + BLOCK - 1) / BLOCK;
            long block = offset / BLOCK;
            while (block < endBlock) {
                Extent e = block >= i.deadFrom ? null : i.extents.atOrAfter(block);
                if (e != null && e.logicalBlock() <= block && !e.unwritten()) {
                    if (data) {
                        return Math.max(offset, block * BLOCK);
                    }
                    block = e.logicalEnd();
                } else {
                    if (!data) {
                        return Math.max(offset, block * BLOCK);
                    }
                    block = e == null ? endBlock : Math.max(block + 1, e.logicalBlock() <= block ? e.logicalEnd() : e.logicalBlock());
                }
            }
            if (data) {
                throw new FsException(Errno.ENXIO);
            }
            return Math.min(i.size, Math.max(offset, block * BLOCK));
        });
    }

    // ---- durability

    void fsync(Call call, long ino, boolean dataOnly) throws FsException {
        Vnode vnode = node.monitor().with(() -> node.vnodes().require(ino));
        makeDurable(call, vnode, dataOnly);
    }

    /** Before a close returns: what a mapping wrote until then is what every node reads, or the close says that it was lost. */
    void awaitWriteBack(Call call, long ino) throws FsException {
        node.waiting().run(call, a -> {
            Vnode v = node.vnodes().known(ino);
            if (v != null) {
                requireWrittenBack(v);
            }
            return null;
        });
    }

    private static void requireWrittenBack(Vnode v) throws FsException {
        if (!v.sideBuffer.isEmpty()) {
            throw Blocked.INSTANCE;
        }
        if (v.writeBackFailed) {
            v.writeBackFailed = false;
            throw new FsException(Errno.EIO);
        }
    }

    private void makeDurable(Call call, Vnode v, boolean dataOnly) throws FsException {
        node.waiting().run(call, a -> {
            requireWrittenBack(v);
            Domain d = node.tokens().known(v.home);
            Inode i = d == null ? null : d.inodes.get(v.ino);
            // Without a token everything was published when it was given up; with one, up to the inode's last change.
            long upTo = i == null ? d == null ? 0 : d.lastBatch : dataOnly ? i.lastDataBatch : i.lastBatch;
            if (!node.pipeline().published(upTo)) {
                node.pipeline().push(upTo);
                throw Blocked.INSTANCE;
            }
            return null;
        });
        try {
            node.pipeline().flushDevice();
        } catch (DeviceException e) {
            throw failed("flush", v.ino, e);
        }
    }
}
