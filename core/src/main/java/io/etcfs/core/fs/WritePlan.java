package io.etcfs.core.fs;

import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Vnode;
import io.etcfs.core.space.Run;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** What a write does, in steps. Blocks are logical; {@code target} gives each block's device block once it is known. */
final class WritePlan {
    /** Answers of {@link Writes#planWrite}: the write has to be made in parts; the bytes are in the side buffer; there is nothing to write. */
    static final WritePlan SPLIT = new WritePlan(null, null, null, 0, null, 0);
    static final WritePlan SIDE_BUFFERED = new WritePlan(null, null, null, 0, null, 0);
    static final WritePlan NOTHING_LEFT = new WritePlan(null, null, null, 0, null, 0);

    static {
        NOTHING_LEFT.complete = true;
    }

    final Vnode vnode;
    final Domain domain;
    final Inode inode;
    final long offset;
    final MemorySegment data;
    final long sessionRevision;
    /** The domain's when this was planned. */
    final long epoch;
    boolean complete;
    boolean killPrivileges;
    /** All of it goes into blocks that the file has, in place, and nothing that they need is unpublished: durable once the device has it. */
    boolean bytesOnly;
    /** The device accesses go to blocks that the file has, too. */
    boolean overwrites;
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
    /** Pages that the kernel may have without these bytes. */
    List<long[]> refilled = List.of();

    WritePlan(Vnode vnode, Domain domain, Inode inode, long offset, MemorySegment data, long sessionRevision) {
        this.vnode = vnode;
        this.domain = domain;
        this.inode = inode;
        this.offset = offset;
        this.data = data;
        this.sessionRevision = sessionRevision;
        this.epoch = domain == null ? 0 : domain.epoch;
    }

    long target(long block, Inode i) {
        for (int k = 0; k < newRuns.size(); k++) {
            long at = newLogical.get(k);
            if (block >= at && block < at + newRuns.get(k).length()) {
                return newRuns.get(k).firstBlock() + (block - at);
            }
        }
        return Contents.deviceBlock(i.extents.at(block), block);
    }
}
