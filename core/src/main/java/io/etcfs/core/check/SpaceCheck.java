package io.etcfs.core.check;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.file.ExtentMap;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Unfree;
import io.etcfs.core.space.Arena;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Whose the device's blocks are: {@code arena:}, {@code free_arena:}, {@code blocks:}, {@code unfree:}, against what the extents refer to. */
final class SpaceCheck {
    private record Claim(Key key, long freeBlocks) {}

    private final Keys keys;
    private final Geometry geometry;
    private final Findings findings;
    private final NodeCheck nodes;
    private final Runs runs;
    private final InodeCheck inodes;
    private final ExtentCheck extents;
    private final Map<Long, Claim> claims = new TreeMap<>();
    /** Bitmaps in the order of blocks; a segment's number is that of its first block by its size. */
    private final LongList segments = new LongList();
    private final List<byte[]> bitmaps = new ArrayList<>();
    private final Map<Long, Long> allocatedIn = new TreeMap<>();
    private final List<Key> unfrees = new ArrayList<>();
    private long allocated;
    /** The runs without what overlaps: from, to, and the run. */
    private final LongList from = new LongList();
    private final LongList to = new LongList();
    private final IntList run = new IntList();

    SpaceCheck(Keys keys, Geometry geometry, Findings findings, NodeCheck nodes, Runs runs, InodeCheck inodes, ExtentCheck extents) {
        this.keys = keys;
        this.geometry = geometry;
        this.findings = findings;
        this.nodes = nodes;
        this.runs = runs;
        this.inodes = inodes;
        this.extents = extents;
    }

    void arena(KeyValue kv) throws InvalidProtocolBufferException {
        Keys.ArenaKey key = keys.parseArena(kv.key());
        nodes.hasArena(key.node(), kv.key());
        claim(key.id(), kv);
    }

    void freeArena(KeyValue kv) throws InvalidProtocolBufferException {
        claim(keys.parseFreeArena(kv.key()), kv);
    }

    private void claim(long id, KeyValue kv) throws InvalidProtocolBufferException {
        Claim claim = new Claim(kv.key(), Integer.toUnsignedLong(io.etcfs.core.record.proto.Arena.parseFrom(kv.value()).getFreeBlocks()));
        Claim other = claims.putIfAbsent(id, claim);
        if (other != null) {
            findings.add(Kind.ARENA_TWICE, "arena " + id + " has two places", kv.key(), other.key);
        }
    }

    void blocks(KeyValue kv) {
        Keys.BlocksKey key = keys.parseBlocks(kv.key());
        if (!known(key.arena()) || key.segment() >= geometry.segmentsOfArena()) {
            findings.add(Kind.ARENA_UNKNOWN, "the device has " + geometry.arenaCount() + " arenas of " + geometry.segmentsOfArena() + " segments", kv.key());
        } else if (kv.value().length != Arena.SEGMENT_BYTES) {
            findings.add(Kind.UNREADABLE_RECORD, "a bitmap of " + kv.value().length + " bytes instead of " + Arena.SEGMENT_BYTES, kv.key());
        } else {
            segments.add(key.arena() * geometry.segmentsOfArena() + key.segment());
            bitmaps.add(kv.value());
        }
    }

    private boolean known(long arena) {
        return arena >= 0 && arena < geometry.arenaCount();
    }

    void unfree(KeyValue kv) throws InvalidProtocolBufferException {
        Keys.UnfreeKey key = keys.parseUnfree(kv.key());
        Unfree record = Unfree.parseFrom(kv.value());
        for (Unfree.Run r : record.getRunsList()) {
            long length = Integer.toUnsignedLong(r.getLength());
            boolean within = known(key.arena()) && length > 0 && length <= geometry.arenaBlocks() && geometry.usable(r.getDeviceBlock()) && r.getDeviceBlock() <= geometry.deviceBlocks() - length
                    && r.getDeviceBlock() / geometry.arenaBlocks() == key.arena() && (r.getDeviceBlock() + length - 1) / geometry.arenaBlocks() == key.arena();
            if (within) {
                runs.addUnfree(r.getDeviceBlock(), (int) length, unfrees.size());
            } else {
                findings.add(Kind.UNFREE_OUTSIDE, "the run of " + length + " blocks at " + Long.toUnsignedString(r.getDeviceBlock()) + " is not in arena " + key.arena(), kv.key());
            }
        }
        unfrees.add(kv.key());
    }

    /** Blocks marked in the bitmaps; after {@link #finish}. */
    long allocated() {
        return allocated;
    }

    /** @param nextArena {@code arena_alloc_log}, or -1 if there is none */
    void finish(long nextArena) {
        runs.sort();
        separate();
        compare();
        finishArenas(nextArena);
    }

    // ---- no block twice

    private void separate() {
        int last = -1;
        for (int i = 0; i < runs.size(); i++) {
            long start = runs.first(i);
            if (last >= 0 && start < runs.end(last)) {
                long end = Math.min(runs.end(i), runs.end(last));
                findings.add(Kind.BLOCK_TWICE, "device blocks [" + start + ", " + end + ") belong to " + holder(last) + " and to " + holder(i), key(last), key(i));
                start = runs.end(last);
            }
            if (start < runs.end(i)) {
                from.add(start);
                to.add(runs.end(i));
                run.add(i);
                last = i;
            }
        }
    }

    private Key key(int i) {
        if (runs.isUnfree(i)) {
            return unfrees.get((int) runs.holder(i));
        }
        long ino = runs.holder(i);
        int place = inodes.place(ino);
        return extents.hasRecords(ino) || place < 0 ? keys.extents(ino, runs.logical(i) / ExtentMap.RANGE_BLOCKS) : inodes.key(place);
    }

    private String holder(int i) {
        return runs.isUnfree(i) ? "an unfree record" : "inode " + runs.holder(i) + " at its block " + runs.logical(i);
    }

    // ---- what is used is what is marked

    private void compare() {
        int nextBitmap = 0;
        int nextRun = 0;
        while (nextBitmap < bitmaps.size() || nextRun < from.size()) {
            long segment = nextBitmap < bitmaps.size() ? segments.get(nextBitmap) : Long.MAX_VALUE;
            if (nextRun < from.size()) {
                segment = Math.min(segment, from.get(nextRun) / Arena.SEGMENT_BLOCKS);
            }
            long start = segment * Arena.SEGMENT_BLOCKS;
            long end = start + Arena.SEGMENT_BLOCKS;
            BitSet marked = new BitSet();
            if (nextBitmap < bitmaps.size() && segments.get(nextBitmap) == segment) {
                marked = BitSet.valueOf(bitmaps.get(nextBitmap++));
                count(marked, segment, start);
            }
            while (nextRun < from.size() && from.get(nextRun) < end) {
                long until = Math.min(to.get(nextRun), end);
                requireMarked(marked, start, (int) (from.get(nextRun) - start), (int) (until - start), run.get(nextRun));
                if (until < to.get(nextRun)) {
                    // The rest of it is in the next segment.
                    from.set(nextRun, until);
                    break;
                }
                nextRun++;
            }
            reportLeaked(marked, segment, start);
        }
    }

    /** What is not on the device, and what is reserved, is not looked at. */
    private void count(BitSet marked, long segment, long start) {
        if (start == 0) {
            marked.clear(0, Arena.RESERVED_BLOCKS);
        }
        marked.clear((int) Math.clamp(geometry.deviceBlocks() - start, 0, Arena.SEGMENT_BLOCKS), Arena.SEGMENT_BLOCKS);
        allocated += marked.cardinality();
        allocatedIn.merge(segment / geometry.segmentsOfArena(), (long) marked.cardinality(), Long::sum);
    }

    /** Clears what is used. */
    private void requireMarked(BitSet marked, long start, int fromBit, int toBit, int i) {
        for (int bit = marked.nextClearBit(fromBit); bit < toBit; ) {
            int end = marked.nextSetBit(bit);
            end = end < 0 || end > toBit ? toBit : end;
            String blocks = "device blocks [" + (start + bit) + ", " + (start + end) + ") of " + holder(i);
            long arena = start / geometry.arenaBlocks();
            if (claims.containsKey(arena)) {
                findings.add(Kind.BLOCK_NOT_ALLOCATED, blocks + " are free in the bitmap", key(i), bitmapKey(start / Arena.SEGMENT_BLOCKS));
            } else {
                findings.add(Kind.EXTENT_OUTSIDE, blocks + " are in arena " + arena + ", which nobody has claimed", key(i));
            }
            bit = marked.nextClearBit(end);
        }
        marked.clear(fromBit, toBit);
    }

    private void reportLeaked(BitSet left, long segment, long start) {
        if (!left.isEmpty()) {
            int first = left.nextSetBit(0);
            findings.add(Kind.BLOCK_LEAKED, left.cardinality() + " blocks are marked that nothing refers to, the first ones [" + (start + first) + ", " + (start + left.nextClearBit(first)) + ")", bitmapKey(segment));
        }
    }

    private Key bitmapKey(long segment) {
        return keys.blocks(segment / geometry.segmentsOfArena(), (int) (segment % geometry.segmentsOfArena()));
    }

    // ---- arenas

    private void finishArenas(long nextArena) {
        if (nextArena > geometry.arenaCount()) {
            findings.add(Kind.ARENA_UNKNOWN, "the next arena would be " + nextArena + ", the device has " + geometry.arenaCount(), keys.arenaAllocLog());
        }
        claims.forEach((id, claim) -> {
            if (!known(id) || nextArena >= 0 && id >= nextArena) {
                findings.add(Kind.ARENA_UNKNOWN, "arena " + id + " was never claimed: the next is " + nextArena + ", the device has " + geometry.arenaCount(), claim.key, keys.arenaAllocLog());
                return;
            }
            long free = geometry.usableBlocks(id) - allocatedIn.getOrDefault(id, 0L);
            if (claim.freeBlocks != free) {
                findings.add(Kind.ARENA_FREE_COUNT, "it counts " + claim.freeBlocks + " free blocks, its bitmaps have " + free, claim.key);
            }
        });
        for (long id = 0; id < Math.min(nextArena, geometry.arenaCount()); id++) {
            if (!claims.containsKey(id)) {
                findings.add(Kind.ARENA_MISSING, "arena " + id + " was claimed, and has neither an owner nor a place in the free pool", keys.freeArena(id));
            }
        }
        for (long id : allocatedIn.keySet()) {
            if (!claims.containsKey(id) && (nextArena < 0 || id >= nextArena)) {
                findings.add(Kind.ARENA_UNKNOWN, "a bitmap of arena " + id + ", which nobody has claimed", bitmapKey(id * geometry.segmentsOfArena()));
            }
        }
    }
}
