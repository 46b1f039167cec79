package io.etcfs.core.file;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.NavigableSet;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * The extents of one file, by logical block. Blocks that no extent has are holes. Units: blocks of 4 KiB; ranges are {@code [from, to)}.
 *
 * <p>Extents never overlap. Neighbours that continue each other in the file and on the device, with equal epoch and flags, are one
 * extent as long as that has at most {@link #MAX_EXTENT_BLOCKS} blocks: no two neighbours are left that could be joined.
 *
 * <p>The map remembers which ranges of {@link #RANGE_BLOCKS} blocks changed since they were last asked for: those are the records that
 * have to be written. A joined extent can lie in many ranges, and on the device it can lie in more than one arena.
 */
public final class ExtentMap {
    /** A record in etcd has the extents of this many logical blocks: 32 MiB. */
    public static final int RANGE_BLOCKS = 8192;

    /** Extents are not joined beyond this length: 4 GiB. */
    public static final int MAX_EXTENT_BLOCKS = 1 << 20;

    /** With more extents than this it is remembered how many there are in each range. */
    private static final int FEW = 32;

    private static final long[] NONE = {};

    /** Most files have one extent or none: nothing is made before it is needed. */
    private NavigableMap<Long, Extent> extents = Collections.emptyNavigableMap();
    private NavigableSet<Long> dirty = Collections.emptyNavigableSet();
    /** The range that became dirty last, -1 if none is; alone it is not in {@link #dirty}. */
    private long lastDirty = -1;
    /** How many extents begin in each range, or null while there are few. */
    private Map<Long, int[]> beginning;
    private long blocks;

    /** All extents in order. */
    public List<Extent> all() {
        return new ArrayList<>(extents.values());
    }

    public int count() {
        return extents.size();
    }

    /** Device blocks in use, unwritten ones too. */
    public long blocks() {
        return blocks;
    }

    /** The extent with this block, or null if it is in a hole. */
    public Extent at(long logicalBlock) {
        Map.Entry<Long, Extent> floor = extents.floorEntry(logicalBlock);
        return floor != null && floor.getValue().logicalEnd() > logicalBlock ? floor.getValue() : null;
    }

    /** The extent with this block, else the next one behind it, else null. */
    public Extent atOrAfter(long logicalBlock) {
        Extent at = at(logicalBlock);
        if (at != null) {
            return at;
        }
        Map.Entry<Long, Extent> next = extents.ceilingEntry(logicalBlock);
        return next == null ? null : next.getValue();
    }

    /** The extents of a range in order, those at its edges cut to it. */
    public List<Extent> within(long fromLogical, long toLogical) {
        requireRange(fromLogical, toLogical);
        List<Extent> found = new ArrayList<>();
        Extent e = fromLogical < toLogical ? atOrAfter(fromLogical) : null;
        while (e != null && e.logicalBlock() < toLogical) {
            found.add(e.clip(fromLogical, toLogical));
            Map.Entry<Long, Extent> next = extents.higherEntry(e.logicalBlock());
            e = next == null ? null : next.getValue();
        }
        return found;
    }

    /**
     * Maps the extent's blocks, in place of what they were mapped to before.
     *
     * @return the pieces that were replaced, cut to the new extent's range, in order
     */
    public List<Extent> put(Extent e) {
        List<Extent> replaced = end() <= e.logicalBlock() ? List.of() : cut(e.logicalBlock(), e.logicalEnd());
        insert(e);
        // A cut beside the new extent can have left a piece short enough to be joined with its other neighbour.
        if (!replaced.isEmpty()) {
            joinAround(e.logicalBlock(), e.logicalEnd());
        }
        markDirty(e.logicalBlock(), e.logicalEnd());
        return replaced;
    }

    /** Makes a hole of a range. Returns the pieces that were in it, in order. */
    public List<Extent> remove(long fromLogical, long toLogical) {
        requireRange(fromLogical, toLogical);
        List<Extent> removed = cut(fromLogical, toLogical);
        for (Extent e : removed) {
            markDirty(e.logicalBlock(), e.logicalEnd());
        }
        if (!removed.isEmpty()) {
            joinAround(fromLogical, toLogical);
        }
        return removed;
    }

    /** The first block behind the last extent; 0 if there is none. */
    public long end() {
        Map.Entry<Long, Extent> last = extents.lastEntry();
        return last == null ? 0 : last.getValue().logicalEnd();
    }

    /**
     * Replaces the whole content by what was read, in any order and cut in any way; nothing is dirty afterwards.
     *
     * @throws IllegalArgumentException if two of them overlap: the record is damaged. The map is as before
     */
    public void load(List<Extent> read) {
        TreeMap<Long, Extent> sorted = new TreeMap<>();
        for (Extent e : read) {
            Map.Entry<Long, Extent> before = sorted.floorEntry(e.logicalBlock());
            Map.Entry<Long, Extent> after = sorted.ceilingEntry(e.logicalBlock());
            if (before != null && before.getValue().logicalEnd() > e.logicalBlock()) {
                throw new IllegalArgumentException("extents overlap: " + before.getValue() + " and " + e);
            }
            if (after != null && after.getKey() < e.logicalEnd()) {
                throw new IllegalArgumentException("extents overlap: " + e + " and " + after.getValue());
            }
            sorted.put(e.logicalBlock(), e);
        }
        extents = Collections.emptyNavigableMap();
        beginning = null;
        blocks = 0;
        clearDirty();
        sorted.values().forEach(this::insert);
    }

    /** Clears {@link Extent#FLAG_UNWRITTEN} of what is mapped in a range. Only ranges in which a flag did change become dirty. */
    public void setWritten(long fromLogical, long toLogical) {
        for (Extent e : within(fromLogical, toLogical)) {
            if (e.unwritten()) {
                put(e.withFlags(e.flags() & ~Extent.FLAG_UNWRITTEN));
            }
        }
    }

    /** The ranges that changed since the last call, in order; block {@code b} is in range {@code b / RANGE_BLOCKS}. */
    public long[] takeDirtyRanges() {
        if (lastDirty < 0) {
            return NONE;
        }
        long[] ranges = dirty.isEmpty() ? new long[] {lastDirty} : dirty.stream().mapToLong(Long::longValue).toArray();
        clearDirty();
        return ranges;
    }

    /** Whether a range changed since {@link #takeDirtyRanges()}. */
    public boolean isDirty() {
        return lastDirty >= 0;
    }

    /** The extents of a range in order, cut to it. */
    public List<Extent> ofRange(long range) {
        long from = Math.multiplyExact(range, (long) RANGE_BLOCKS);
        return within(from, Math.addExact(from, RANGE_BLOCKS));
    }

    /** Whether any extent has a block of the range. */
    public boolean hasAny(long range) {
        Extent first = atOrAfter(range * RANGE_BLOCKS);
        return first != null && first.logicalBlock() < (range + 1) * RANGE_BLOCKS;
    }

    /** About how many extents have blocks in the range: one more at most. Takes no longer where there are many. */
    public int about(long range) {
        if (beginning == null) {
            return extents.size();
        }
        int[] count = beginning.get(range);
        return 1 + (count == null ? 0 : count[0]);
    }

    private void set(Extent e) {
        if (extents.put(e.logicalBlock(), e) == null) {
            if (beginning != null) {
                counted(e.logicalBlock(), 1);
            } else if (extents.size() > FEW) {
                beginning = new HashMap<>();
                extents.keySet().forEach(block -> counted(block, 1));
            }
        }
    }

    private void drop(long logicalBlock) {
        if (extents.remove(logicalBlock) != null && beginning != null) {
            counted(logicalBlock, -1);
        }
    }

    private void counted(long logicalBlock, int change) {
        int[] count = beginning.computeIfAbsent(logicalBlock / RANGE_BLOCKS, r -> new int[1]);
        count[0] += change;
        if (count[0] == 0) {
            beginning.remove(logicalBlock / RANGE_BLOCKS);
        }
    }

    /** Takes out what is in the range, without joining what is left beside it. */
    private List<Extent> cut(long from, long to) {
        List<Extent> pieces = within(from, to);
        for (Extent piece : pieces) {
            Extent whole = at(piece.logicalBlock());
            drop(whole.logicalBlock());
            if (whole.logicalBlock() < piece.logicalBlock()) {
                set(whole.slice(whole.logicalBlock(), piece.logicalBlock()));
            }
            if (whole.logicalEnd() > piece.logicalEnd()) {
                set(whole.slice(piece.logicalEnd(), whole.logicalEnd()));
            }
            blocks -= piece.length();
        }
        return pieces;
    }

    /** Adds an extent where nothing is mapped, joined with its neighbours. */
    private void insert(Extent e) {
        if (extents.isEmpty()) {
            extents = new TreeMap<>();
        }
        blocks += e.length();
        Map.Entry<Long, Extent> before = extents.lowerEntry(e.logicalBlock());
        if (before != null && joinable(before.getValue(), e)) {
            e = join(before.getValue(), e);
        }
        Map.Entry<Long, Extent> after = extents.higherEntry(e.logicalBlock());
        if (after != null && joinable(e, after.getValue())) {
            drop(after.getKey());
            e = join(e, after.getValue());
        }
        set(e);
    }

    /** Joins what can be joined among the extents that touch the range and one neighbour on each side. */
    private void joinAround(long from, long to) {
        Map.Entry<Long, Extent> left = extents.lowerEntry(from);
        Map.Entry<Long, Extent> first = left == null ? null : extents.lowerEntry(left.getKey());
        Map.Entry<Long, Extent> at = first != null ? first : left != null ? left : extents.ceilingEntry(from);
        while (at != null && at.getKey() <= to) {
            Map.Entry<Long, Extent> next = extents.higherEntry(at.getKey());
            if (next != null && joinable(at.getValue(), next.getValue())) {
                drop(next.getKey());
                set(join(at.getValue(), next.getValue()));
                at = extents.floorEntry(at.getKey());
            } else {
                at = next;
            }
        }
    }

    private static boolean joinable(Extent left, Extent right) {
        return left.continuedBy(right) && (long) left.length() + right.length() <= MAX_EXTENT_BLOCKS;
    }

    private static Extent join(Extent left, Extent right) {
        return new Extent(left.logicalBlock(), left.deviceBlock(), left.length() + right.length(), left.epoch(), left.flags());
    }

    private void markDirty(long from, long to) {
        long last = (to - 1) / RANGE_BLOCKS;
        for (long range = from / RANGE_BLOCKS; range <= last; range++) {
            // Appends stay in one range for long.
            if (range != lastDirty) {
                if (lastDirty >= 0) {
                    if (dirty.isEmpty()) {
                        dirty = new TreeSet<>();
                        dirty.add(lastDirty);
                    }
                    dirty.add(range);
                }
                lastDirty = range;
            }
        }
    }

    private void clearDirty() {
        dirty = Collections.emptyNavigableSet();
        lastDirty = -1;
    }

    private static void requireRange(long from, long to) {
        if (from < 0 || from > to) {
            throw new IllegalArgumentException("no range: [" + from + ", " + to + ")");
        }
    }

    @Override
    public String toString() {
        return extents.values().toString();
    }
}
