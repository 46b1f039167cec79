package io.etcfs.core.fs;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.domain.Vnode;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.file.Extent;
import io.etcfs.core.pipeline.DirtyBlocks;
import io.etcfs.core.space.Run;
import io.etcfs.core.token.Blocked;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Writing. A write is planned, which has no effect, so that it can be tried again; its device accesses are carried out without the monitor; it is completed by
 * joining the open batch.
 */
final class Writes {
    private static final int BLOCK = BlockDevice.BLOCK_BYTES;
    private static final int DIRECT_BYTES = 64 << 10;
    /** Operations that a write adds to a batch at most; one that would add more is split. */
    private static final int ROOM = 72;
    /** Of a write that changes no extent records: beside those of its blocks; of each block, a bitmap and an arena of the new one and of the one it replaces. */
    private static final int SMALL_ROOM = 4;
    private static final int BLOCK_ROOM = 4;
    private static final int SPLIT_BYTES = 64 << 10;

    private final Node node;
    private final OpenFiles openFiles;
    private final Contents contents;
    private final Durability durability;
    private final Mappings mappings;
    /** Requests that are to be made again by a thread that may wait, after bytes of theirs had reached blocks in place: by their number, the epoch of the blocks. */
    private final Map<Long, Long> cutShort = new ConcurrentHashMap<>();

    Writes(Node node, OpenFiles openFiles, Contents contents, Durability durability, Reads reads) {
        this.node = node;
        this.openFiles = openFiles;
        this.contents = contents;
        this.durability = durability;
        this.mappings = new Mappings(node, this, reads);
    }

    Mappings mappings() {
        return mappings;
    }

    int write(Call call, long ino, long handle, long offset, MemorySegment data, int openFlags, boolean fromPageCache, boolean killPrivileges) throws FsException {
        long n = data.byteSize();
        if (n == 0) {
            return 0;
        }
        if (offset < 0) {
            throw new FsException(Errno.EINVAL);
        }
        boolean append = appends(openFlags, fromPageCache);
        if (!append && offset + n > Names.FILE_MAX) {
            throw new FsException(Errno.EFBIG);
        }
        Vnode vnode = node.monitor().with(() -> node.vnodes().require(ino));
        // Both wait after the bytes were written, for the kernel's pages and for times to be durable: a request that were made a second time for that would append twice.
        if ((append || (openFlags & Bytes.O_SYNC) == Bytes.O_SYNC) && !call.mayWait()) {
            throw MustWait.INSTANCE;
        }
        if (fromPageCache && !Fault.WRITE_BACK_WAITS.on()) {
            if (!mappings.tryWriteBack(call, vnode, offset, data)) {
                return (int) n;
            }
            // X is held: as any other write, and it never waits for a token, as dropping pages waits for it.
        }
        // A page that is written back is whole: a recall has to wait for it, and it waits for no token.
        Waiting.Held held = append || fromPageCache || !Bytes.cached(openFlags) ? Waiting.NOTHING : Waiting.pages(vnode, offset, offset + n, true);
        try {
            int placed = place(call, vnode, offset, data, openFlags, fromPageCache, killPrivileges, held, null);
            if (throughPages(openFlags, fromPageCache) && vnode.refills.isSuspect()) {
                node.monitor().with(() -> {
                    vnode.refills.written();
                    return null;
                });
            }
            return placed;
        } catch (FsException e) {
            if (fromPageCache && n > BLOCK && e.errno() == Errno.ENOSPC) {
                placePages(call, vnode, offset, data, openFlags, held);
                return (int) n;
            }
            throw e;
        } finally {
            if (call.mayWait() && !cutShort.isEmpty()) {
                cutShort.remove(call.unique());
            }
        }
    }

    /** Pages of a mapping that have no room all together: those that have blocks, or find some, are not lost for the others. */
    private void placePages(Call call, Vnode vnode, long offset, MemorySegment data, int openFlags, Waiting.Held held) throws FsException {
        FsException noRoom = null;
        for (long at = 0; at < data.byteSize(); at += BLOCK) {
            try {
                place(call, vnode, offset + at, data.asSlice(at, Math.min(BLOCK, data.byteSize() - at)), openFlags, true, false, held, null);
            } catch (FsException e) {
                if (e.errno() != Errno.ENOSPC) {
                    throw e;
                }
                noRoom = e;
            }
        }
        if (noRoom != null) {
            throw noRoom;
        }
    }

    private static boolean appends(int openFlags, boolean fromPageCache) {
        return (openFlags & Bytes.O_APPEND) != 0 && !fromPageCache && !Fault.APPEND_PLACED_BY_KERNEL.on();
    }

    /** The kernel has put the bytes into its pages already, where it has those, and not locked them. */
    private static boolean throughPages(int openFlags, boolean fromPageCache) {
        return Bytes.cached(openFlags) && !fromPageCache && !appends(openFlags, false);
    }

    /**
     * How many of the bytes were written: fewer than all only where the device has no room for the others.
     *
     * @param held what the whole request may hold in the kernel, also while a part of it waits
     * @param kept the token of which this is a step, or null
     */
    private int place(Call call, Vnode vnode, long offset, MemorySegment data, int openFlags, boolean fromPageCache, boolean killPrivileges, Waiting.Held held, KeptToken kept)
            throws FsException {
        long n = data.byteSize();
        boolean append = appends(openFlags, fromPageCache);
        boolean sync = (openFlags & Bytes.O_DSYNC) != 0;
        boolean dataOnly = (openFlags & Bytes.O_SYNC) != Bytes.O_SYNC;
        Where where = sync && !call.mayWait() ? Where.DEVICE_ALONE : sync || (openFlags & Bytes.O_DIRECT) != 0 || n >= DIRECT_BYTES ? Where.DEVICE : Where.BATCH;
        long placedAt;
        long placed;
        boolean bytesOnly;
        List<long[]> refilled;
        long triedInEpoch = cutShort.isEmpty() ? 0 : cutShort.getOrDefault(call.unique(), 0L);
        while (true) {
            long before = triedInEpoch;
            WritePlan plan;
            try {
                plan = node.waiting().run(call, held, a -> {
                    if (kept != null) {
                        kept.require();
                    }
                    List<long[]> unsure = throughPages(openFlags, fromPageCache) ? node.view().refilled(vnode, offset, offset + n) : List.of();
                    if (!unsure.isEmpty() && !call.mayWait()) {
                        throw MustWait.INSTANCE;
                    }
                    WritePlan p = planAgain(before, vnode, append ? -1 : offset, data, where, killPrivileges,
                            fromPageCache && !Fault.WRITE_BACK_WAITS.on() ? Source.MAPPING : Source.CALL, Bytes.cached(openFlags));
                    if (p.vnode != null) {
                        p.refilled = unsure;
                    }
                    return p;
                });
            } catch (MustWait e) {
                if (before != 0) {
                    cutShort.put(call.unique(), before);
                }
                throw e;
            }
            if (plan == WritePlan.SIDE_BUFFERED) {
                return (int) n;
            }
            if (plan == WritePlan.SPLIT) {
                if (!call.mayWait()) {
                    throw MustWait.INSTANCE;
                }
                return placeInParts(call, vnode, offset, data, openFlags, fromPageCache, killPrivileges, held);
            }
            placedAt = plan.offset;
            // Of a mapping, what lies behind the end of the file is not written and not missed.
            placed = fromPageCache ? n : plan.data.byteSize();
            bytesOnly = plan.bytesOnly;
            refilled = plan.refilled;
            try {
                if (plan.complete || carryOut(call, plan)) {
                    break;
                }
            } catch (MustWait e) {
                if (plan.overwrites) {
                    cutShort.put(call.unique(), plan.epoch);
                }
                throw e;
            }
            // Not what it is by now: others may have had the token, and this node has it again.
            triedInEpoch = plan.overwrites ? plan.epoch : triedInEpoch;
        }
        if (!refilled.isEmpty()) {
            node.view().dropRefilled(vnode, refilled);
        }
        if (append && node.monitor().with(() -> vnode.pagesCached)) {
            // The kernel may have placed the bytes elsewhere in its cache than where they are.
            node.view().dropRangeBriefly(vnode, placedAt, placed);
            if (offset != placedAt) {
                node.view().dropRangeBriefly(vnode, offset, placed);
            }
        }
        if (sync && bytesOnly && dataOnly) {
            durability.flush(vnode);
        } else if (sync) {
            durability.makeDurable(call, vnode, dataOnly);
        }
        return (int) placed;
    }

    /** As one write to everybody else, in several steps to the batches. */
    private int placeInParts(Call call, Vnode vnode, long offset, MemorySegment data, int openFlags, boolean fromPageCache, boolean killPrivileges, Waiting.Held held)
            throws FsException {
        long n = data.byteSize();
        boolean append = appends(openFlags, fromPageCache);
        long triedInEpoch = 0;
        while (true) {
            // Write-back never waits for the token: what it can't write goes to the side buffer.
            try (KeptToken kept = fromPageCache ? null : KeptToken.take(node, call, held, vnode)) {
                if (kept != null) {
                    triedInEpoch = kept.againIn(triedInEpoch);
                }
                int done = 0;
                while (done < n) {
                    MemorySegment part = data.asSlice(done, Math.min(n > SPLIT_BYTES ? SPLIT_BYTES : BLOCK, n - done));
                    int placed;
                    try {
                        placed = place(call, vnode, append ? offset : offset + done, part, openFlags, fromPageCache, killPrivileges, held, kept);
                    } catch (KeptToken.Lost e) {
                        if (append && done > 0) {
                            return done;
                        }
                        throw e;
                    } catch (FsException e) {
                        if (done > 0 && !fromPageCache) {
                            // What is there is there, and an append would be made twice.
                            return done;
                        }
                        throw e;
                    }
                    done += placed;
                    if (placed < part.byteSize()) {
                        return done;
                    }
                    if (append && done < n && !kept.unbroken()) {
                        // What follows may not come behind it any more, and can't be made twice.
                        return done;
                    }
                }
                if (append || kept == null || kept.unbroken()) {
                    return done;
                }
            } catch (KeptToken.Lost e) {
                // Again from its beginning.
            }
        }
    }

    /** Where the bytes of whole blocks go: into dirty blocks, as those of others; to the device, by the write itself; there, or the request is handed over. */
    enum Where { BATCH, DEVICE, DEVICE_ALONE }

    /** Who writes: a system call; the kernel, pages of a shared mapping; this node, those from the side buffer. */
    enum Source { CALL, MAPPING, SIDE_BUFFER }

    /**
     * As {@link #planWrite}, after bytes of it may have reached blocks in place, under a session that ended. Others who had the token since may have been shown them, and
     * have written over them: what was done once is not done again. 0: it is the first try.
     */
    private WritePlan planAgain(long triedInEpoch, Vnode v, long wantedOffset, MemorySegment bytes, Where where, boolean killPrivileges, Source source, boolean cached) throws FsException {
        if (triedInEpoch != 0 && source == Source.CALL && !Fault.MADE_AGAIN_AFTER_OTHERS.on() && node.tokens().requireForData(v.home, Mode.EXCLUSIVE).epoch != triedInEpoch) {
            throw new FsException(Errno.EIO);
        }
        return planWrite(v, wantedOffset, bytes, where, killPrivileges, source, cached);
    }

    WritePlan planWrite(Vnode v, long wantedOffset, MemorySegment bytes, Where where, boolean killPrivileges, Source source, boolean cached) throws FsException {
        if (source == Source.MAPPING && (!mappings.holdsExclusive(v) || !v.sideBuffer.isEmpty())) {
            // X went while this waited: the bytes wait for it in the side buffer, behind those that do already.
            mappings.sideBuffer(v, wantedOffset, bytes, Mappings.NONE);
            return WritePlan.SIDE_BUFFERED;
        }
        Domain d = node.tokens().requireForData(v.home, Mode.EXCLUSIVE);
        Inode i = contents.inode(d, v);
        if (v.changing || source == Source.CALL && (d.pagesClosed || !v.sideBuffer.isEmpty())) {
            // What is in the side buffer was written before.
            throw Blocked.INSTANCE;
        }
        long offset = wantedOffset >= 0 ? wantedOffset : i.size;
        // A mapping has no bytes behind the end of the file, whatever end the kernel knew when it wrote them back.
        MemorySegment data = source == Source.CALL ? bytes : bytes.asSlice(0, Math.clamp(i.size - offset, 0, bytes.byteSize()));
        long n = data.byteSize();
        if (n == 0) {
            return WritePlan.NOTHING_LEFT;
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
        if (!node.pipeline().room(room(i, first, end))) {
            throw Blocked.INSTANCE;
        }
        WritePlan p = new WritePlan(v, d, i, offset, data, node.session().revision());
        p.killPrivileges = killPrivileges;
        DirtyBlocks dirty = node.pipeline().dirty();

        // Which whole blocks go to the device at once: only where their bytes lie aligned in memory and none of them is dirty.
        long wholeFrom = (offset + BLOCK - 1) / BLOCK;
        long wholeTo = (offset + n) / BLOCK;
        if (where != Where.BATCH && wholeTo > wholeFrom && (data.address() + (wholeFrom * BLOCK - offset)) % BLOCK == 0) {
            boolean clean = true;
            if (!dirty.isEmpty()) {
                for (long b = wholeFrom; b < wholeTo && clean; b++) {
                    Extent e = Contents.mapped(i, b);
                    clean = e == null || dirty.get(Contents.deviceBlock(e, b)) == null;
                }
            }
            if (clean) {
                p.directFrom = wholeFrom;
                p.directTo = wholeTo;
            }
        }

        p.bytesOnly = p.directFrom == first && p.directTo == end && planInPlace(p);
        p.overwrites = p.bytesOnly;
        // Nothing was done yet. Once it was, it can't be handed over any more: made twice, others could see its bytes, then later ones, then its bytes again.
        if (where == Where.DEVICE_ALONE && !p.bytesOnly) {
            throw MustWait.INSTANCE;
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
            Extent e = Contents.mapped(i, validBlock);
            if (e != null && !e.unwritten()) {
                p.zeroTail = validBlock;
                planFetch(p, i, validBlock, -1, 0, dirty);
            }
        }

        boolean frees = false;
        List<long[]> wanted = new ArrayList<>();
        for (long b = p.zeroTail >= 0 ? p.zeroTail : first; b < end && !p.bytesOnly; b = b == p.zeroTail ? first : b + 1) {
            Extent e = Contents.mapped(i, b);
            boolean inPlace = e != null && d.mayOverwrite(e);
            if (inPlace) {
                p.overwrites |= b >= p.directFrom && b < p.directTo;
            } else {
                frees |= e != null;
                if (!wanted.isEmpty() && wanted.getLast()[1] == b) {
                    wanted.getLast()[1] = b + 1;
                } else {
                    wanted.add(new long[] {b, b + 1});
                }
            }
        }
        if (frees || p.directTo > p.directFrom) {
            contents.requireNoReaders(v);
        }
        try {
            for (long[] w : wanted) {
                Extent before = w[0] == 0 ? null : Contents.mapped(i, w[0] - 1);
                long hint = before == null ? -1 : Contents.deviceBlock(before, w[0] - 1) + 1;
                long at = w[0];
                for (Run run : node.space().allocate((int) (w[1] - w[0]), hint)) {
                    p.newLogical.add(at);
                    p.newRuns.add(run);
                    at += run.length();
                }
            }
        } catch (Blocked e) {
            node.space().abandon(p.newRuns);
            long fits = bytesThatFit(source, wanted, offset, n, end);
            if (fits == 0 || !node.space().contentWithLess()) {
                throw e;
            }
            return planWrite(v, wantedOffset, bytes.asSlice(0, fits), where, killPrivileges, source, cached);
        } catch (FsException e) {
            node.space().abandon(p.newRuns);
            long fits = bytesThatFit(source, wanted, offset, n, end);
            if (fits == 0) {
                throw e;
            }
            return planWrite(v, wantedOffset, bytes.asSlice(0, fits), where, killPrivileges, source, cached);
        }
        if (n > BLOCK && spaceKeys(p, i, first, end) > OpenFiles.maxSpaceKeys()) {
            node.space().abandon(p.newRuns);
            return WritePlan.SPLIT;
        }
        for (long b = p.directFrom; b < p.directTo && !p.bytesOnly; b++) {
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

    /** What a write that there is too little room for can be cut to; 0: it can't. */
    private long bytesThatFit(Source source, List<long[]> wanted, long offset, long n, long end) {
        long fits = source == Source.CALL ? fitting(wanted, end) * BLOCK - offset : 0;
        return fits <= 0 || fits >= n ? 0 : fits;
    }

    /** The block up to which a write goes that needs new blocks in these ranges, as far as there is room. */
    private long fitting(List<long[]> wanted, long end) {
        long free = node.space().freeBlocks();
        for (long[] w : wanted) {
            if (w[1] - w[0] > free) {
                return w[0] + free;
            }
            free -= w[1] - w[0];
        }
        return end;
    }

    /** Whether a write of whole blocks adds nothing that fdatasync has to see, and all that it has to see of before is published. If so, plans its device accesses. */
    private boolean planInPlace(WritePlan p) {
        Inode i = p.inode;
        if (p.vnode.writeBackError != null || p.offset + p.data.byteSize() > Math.min(i.size, i.valid) || !node.pipeline().published(i.lastDataBatch)) {
            return false;
        }
        for (long b = p.directFrom; b < p.directTo; ) {
            Extent e = Contents.mapped(i, b);
            if (e == null || e.unwritten() || !p.domain.mayOverwrite(e)) {
                p.directRuns.clear();
                return false;
            }
            long to = Math.min(p.directTo, e.logicalEnd());
            p.directRuns.add(new long[] {b, Contents.deviceBlock(e, b), to - b});
            b = to;
        }
        return true;
    }

    private static int room(WritePlan p) {
        return room(p.inode, p.offset / BLOCK, (p.offset + p.data.byteSize() + BLOCK - 1) / BLOCK);
    }

    /** Operations that a write to blocks {@code [first, end)} adds to a batch at most, or rather its first part if it is split. */
    private static int room(Inode i, long first, long end) {
        // One more: the block where the bytes of the file ended so far.
        long blocks = end - first + 1;
        if (blocks > (ROOM - SMALL_ROOM) / BLOCK_ROOM || !Journal.staysInline(i, 2 * (int) blocks, end)) {
            return ROOM;
        }
        return SMALL_ROOM + BLOCK_ROOM * (int) blocks;
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
        Extent e = Contents.mapped(i, block);
        long start = block * BLOCK;
        if (e == null || e.unwritten() || start >= i.valid || p.fetch.containsKey(block)) {
            return;
        }
        long device = Contents.deviceBlock(e, block);
        boolean covered = n > 0 && offset <= start && offset + n >= Math.min(i.valid, start + BLOCK);
        if (!covered) {
            (dirty.get(device) == null ? p.fetch : p.dirty).put(block, device);
        }
    }

    /** Device accesses of a planned write, and its end. False: the session went meanwhile, or its time was over; plan again. */
    boolean carryOut(Call call, WritePlan p) throws FsException {
        if (p.fetch.isEmpty()) {
            return carryOut(call, p, null);
        }
        try (Arena arena = Arena.ofConfined()) {
            return carryOut(call, p, arena);
        }
    }

    /** @param arena null if there is nothing to fetch */
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
            if (!e.isLate()) {
                throw Contents.failed("write", p.vnode.ino, e);
            }
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
        if (!accessed) {
            return false;
        }
        boolean completed = false;
        try {
            // A write in place counts only if the session is still trusted, and the token held, after it ended.
            completed = node.waiting().run(call, a -> {
                if (!stillHeld(p)) {
                    return false;
                }
                if (!node.session().trusted() || !node.pipeline().room(room(p))) {
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
        if (p.bytesOnly) {
            written(p, i, false);
            return;
        }
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
            Extent e = Contents.mapped(i, b);
            if (e != null && !e.unwritten() && b * BLOCK < i.valid && !p.domain.mayOverwrite(e)) {
                DirtyBlocks.Block held = dirty.get(Contents.deviceBlock(e, b));
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
        i.size = Math.max(i.size, offset + n);
        i.valid = Math.max(i.valid, offset + n);
        written(p, i, metadata || buffered);
    }

    /** @param data whether fdatasync has to see the change of the inode */
    private void written(WritePlan p, Inode i, boolean data) {
        long nowNs = node.realtimeNs();
        i.mtimeNs = nowNs;
        i.ctimeNs = nowNs;
        if (p.killPrivileges) {
            i.killPrivileges();
        }
        node.journal().changed(p.domain, i, data);
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
        long device = Contents.deviceBlock(i.extents.at(block), block);
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
}
