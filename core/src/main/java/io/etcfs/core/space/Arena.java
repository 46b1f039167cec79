package io.etcfs.core.space;

import io.etcfs.core.fault.Rare;
import java.util.BitSet;

/**
 * A part of the device whose free blocks only one node, its owner, hands out. Units: blocks of 4 KiB; block numbers in the interface are the
 * device's.
 *
 * <p>Two bitmaps. <em>Reserved</em>: not to be handed out, because the block was handed out before and not released since; only in memory.
 * <em>Journal</em>: an extent refers to the block in this node's own view, so this is what etcd says once the open batch is in. A block
 * goes
 * <pre>
 *     free --allocate--> reserved --reference--> reserved, referenced --dereference--> reserved --release--> free
 *                        reserved --release--> free                    (handed out, never published)
 * </pre>
 * The caller releases a dereferenced block when the batch that freed it has committed and no device access to it is left.
 * Referenced implies reserved, always. A call that would break the order changes nothing and throws {@link IllegalStateException}: somebody
 * lost track of a block, and to go on could give it to two files.
 *
 * <p>Blocks behind the device's end, and the first {@value #RESERVED_BLOCKS} of the device (its label and marks), count as referenced in both bitmaps, are never free and can be
 * neither dereferenced nor released.
 */
public final class Arena {
    /** Size of a block. */
    public static final int BLOCK_BYTES = 4096;

    /** Blocks of one bitmap record: 16 MiB. */
    /** At the beginning of the device, which are no arena's: the label, and how far etcd's history had come. */
    public static final int RESERVED_BLOCKS = 16;
    public static final int SEGMENT_BLOCKS = 4096;

    /** Size of one bitmap record. */
    public static final int SEGMENT_BYTES = SEGMENT_BLOCKS / 8;

    /** An allocation looks at this many free runs that are too short before it takes the longest of them. */
    private static final int RUNS_LOOKED_AT = 512;

    private final long id;
    private final long firstBlock;
    private final int blocks;
    private final int usableFrom;
    private int usableTo;
    private final Bitmap reserved;
    private final Bitmap journal;
    private final BitSet dirtySegments = new BitSet();
    private int freeBlocks;
    private int journalFreeBlocks;
    private int cursor;
    private boolean closed;

    /**
     * An arena in which every block is free that can be.
     *
     * @param id the arena's number
     * @param firstBlock its first device block
     * @param blocks its size, a multiple of {@link #SEGMENT_BLOCKS}
     * @param unusableFrom how many of its blocks are on the device: {@code blocks}, or less for the last arena
     */
    public Arena(long id, long firstBlock, int blocks, int unusableFrom) {
        if (id < 0 || firstBlock < 0 || blocks <= 0 || blocks % SEGMENT_BLOCKS != 0 || unusableFrom < 0 || unusableFrom > blocks
                || firstBlock > Long.MAX_VALUE - blocks) {
            throw new IllegalArgumentException(
                    "no arena: " + id + " of " + blocks + " blocks at " + firstBlock + ", usable up to " + unusableFrom);
        }
        this.id = id;
        this.firstBlock = firstBlock;
        this.blocks = blocks;
        usableFrom = firstBlock == 0 ? Math.min(RESERVED_BLOCKS, unusableFrom) : 0;
        usableTo = unusableFrom;
        reserved = new Bitmap(blocks);
        journal = new Bitmap(blocks);
        setUnusable(reserved);
        setUnusable(journal);
        freeBlocks = usableBlocks();
        journalFreeBlocks = usableBlocks();
        cursor = usableFrom;
    }

    private void setUnusable(Bitmap bits) {
        bits.set(0, usableFrom);
        bits.set(usableTo, blocks);
    }

    public long id() {
        return id;
    }

    public long firstBlock() {
        return firstBlock;
    }

    public int blocks() {
        return blocks;
    }

    /** Blocks that can be used at all. */
    public int usableBlocks() {
        return usableTo - usableFrom;
    }

    public int segmentCount() {
        return blocks / SEGMENT_BLOCKS;
    }

    /** The journal's bitmap of a segment, {@link #SEGMENT_BYTES} bytes: block {@code i} of the segment is bit {@code i % 8} of byte {@code i / 8}. */
    public byte[] journalSegment(int segment) {
        int from = segmentStart(segment);
        return journal.bytes(from, SEGMENT_BYTES);
    }

    /**
     * Sets a segment of both bitmaps to what etcd has, for an arena that was just taken: what was reserved in it is forgotten, and it is not
     * dirty by this.
     */
    public void loadSegment(int segment, byte[] bitmap) {
        if (bitmap.length != SEGMENT_BYTES) {
            throw new IllegalArgumentException(
                    "the bitmap of segment " + segment + " of arena " + id + " has " + bitmap.length + " bytes, not " + SEGMENT_BYTES);
        }
        int from = segmentStart(segment);
        journal.load(from, bitmap);
        setUnusable(journal);
        reserved.copy(journal, from, from + SEGMENT_BLOCKS);
        freeBlocks = blocks - reserved.count(0, blocks);
        journalFreeBlocks = blocks - journal.count(0, blocks);
    }

    private int segmentStart(int segment) {
        if (segment < 0 || segment >= segmentCount()) {
            throw new IllegalArgumentException("arena " + id + " has no segment " + segment);
        }
        return segment * SEGMENT_BLOCKS;
    }

    /**
     * Reserves free blocks: the first run of {@code wanted} blocks at or behind the hint, round the arena's end; if there is none, or not
     * among the first few hundred runs, the longest of those seen. Not null while there is a free block.
     *
     * @param hintBlock the device block to start at, in this arena; negative: where the last such call ended
     * @return at most {@code wanted} blocks, or null if none is free
     */
    public Run allocate(long hintBlock, int wanted) {
        Run found = find(hintBlock, wanted);
        if (found != null) {
            take(found, hintBlock < 0);
        }
        return found;
    }

    /** What {@link #allocate} would reserve. */
    Run find(long hintBlock, int wanted) {
        if (wanted <= 0) {
            throw new IllegalArgumentException(wanted + " blocks wanted");
        }
        if (freeBlocks() == 0) {
            return null;
        }
        int start = Rare.BLOCKS_REUSED_FIRST.on() ? 0 : hintBlock < 0 ? cursor : index(hintBlock);
        int bestAt = -1;
        int bestLength = 0;
        boolean wrapped = false;
        int at = start;
        for (int looked = 0; looked < RUNS_LOOKED_AT; looked++) {
            at = reserved.nextClear(at, blocks);
            if (at >= blocks && !wrapped) {
                wrapped = true;
                at = reserved.nextClear(0, blocks);
            }
            if (at >= blocks || wrapped && at >= start) {
                break;
            }
            int length = runLength(at, wanted);
            if (length > bestLength) {
                bestAt = at;
                bestLength = length;
            }
            if (bestLength == wanted) {
                break;
            }
            at += length;
        }
        return new Run(firstBlock + bestAt, bestLength);
    }

    private int runLength(int at, int wanted) {
        return reserved.nextSet(at, Math.min(blocks, at + Math.min(wanted, blocks))) - at;
    }

    /** Reserves a run that {@link #find} returned. */
    void take(Run found, boolean moveCursor) {
        int from = index(found);
        reserved.set(from, from + found.length());
        freeBlocks -= found.length();
        if (moveCursor) {
            cursor = from + found.length();
        }
    }

    /** An extent refers to these blocks now: reserved, not referenced before. */
    public void reference(Run run) {
        int from = index(run);
        int to = from + run.length();
        if (!reserved.allSet(from, to) || !journal.noneSet(from, to)) {
            throw broken("reference", run);
        }
        journal.set(from, to);
        journalFreeBlocks -= run.length();
        markDirty(from, to);
    }

    /** No extent refers to these referenced blocks any more. They stay reserved. */
    public void dereference(Run run) {
        int from = index(run);
        int to = from + run.length();
        if (from < usableFrom || to > usableTo || !journal.allSet(from, to)) {
            throw broken("dereference", run);
        }
        journal.clear(from, to);
        journalFreeBlocks += run.length();
        markDirty(from, to);
    }

    /** These reserved blocks, not referenced, can be handed out again. */
    public void release(Run run) {
        int from = index(run);
        int to = from + run.length();
        if (!reserved.allSet(from, to) || !journal.noneSet(from, to)) {
            throw broken("release", run);
        }
        reserved.clear(from, to);
        freeBlocks += run.length();
    }

    /** Blocks that can be handed out. */
    public int freeBlocks() {
        return closed ? 0 : freeBlocks;
    }

    /** More of it is on the device now: {@code to} blocks, which is not less than before. The new ones are free. */
    void grow(int to) {
        if (to < usableTo || to > blocks) {
            throw new IllegalArgumentException(to + " blocks of " + this + " on the device, of " + blocks);
        }
        reserved.clear(usableTo, to);
        journal.clear(usableTo, to);
        freeBlocks += to - usableTo;
        journalFreeBlocks += to - usableTo;
        usableTo = to;
    }

    /** While it is closed no block of it is handed out, and nobody should begin to free any in it: so it becomes {@link #isQuiet quiet}. */
    void closed(boolean now) {
        closed = now;
    }

    boolean isClosed() {
        return closed;
    }

    /** Whether every block that is reserved is referenced: nobody is about to publish or to hand out any, and the journal says all. */
    boolean isQuiet() {
        return freeBlocks == journalFreeBlocks;
    }

    /** Usable blocks that no extent refers to in this node's view. */
    public int journalFreeBlocks() {
        return journalFreeBlocks;
    }

    /** What its record says of it: {@link #journalFreeBlocks}. */
    byte[] record() {
        return io.etcfs.core.record.proto.Arena.newBuilder().setFreeBlocks(journalFreeBlocks).build().toByteArray();
    }

    /** Whether no extent refers to any block, in this node's view. Blocks may still be reserved. */
    public boolean isJournalEmpty() {
        return journalFreeBlocks == usableBlocks();
    }

    /** The segments whose journal was changed since the last call, in order; one that was changed back is among them. */
    public int[] takeDirtySegments() {
        int[] segments = new int[dirtySegments.cardinality()];
        for (int i = 0, s = dirtySegments.nextSetBit(0); s >= 0; s = dirtySegments.nextSetBit(s + 1)) {
            segments[i++] = s;
        }
        dirtySegments.clear();
        return segments;
    }

    private void markDirty(int from, int to) {
        dirtySegments.set(from / SEGMENT_BLOCKS, (to - 1) / SEGMENT_BLOCKS + 1);
    }

    private int index(long deviceBlock) {
        if (deviceBlock < firstBlock || deviceBlock - firstBlock >= blocks) {
            throw new IllegalArgumentException("block " + deviceBlock + " is not in arena " + id);
        }
        return (int) (deviceBlock - firstBlock);
    }

    private int index(Run run) {
        int from = index(run.firstBlock());
        if (run.length() > blocks - from) {
            throw new IllegalArgumentException(run + " leaves arena " + id);
        }
        return from;
    }

    private IllegalStateException broken(String call, Run run) {
        int from = index(run);
        int to = from + run.length();
        return new IllegalStateException("can't " + call + " " + run + " of arena " + id + ": of its blocks "
                + reserved.count(from, to) + " are reserved, " + journal.count(from, to) + " referenced");
    }

    @Override
    public String toString() {
        return "Arena[" + id + ": " + freeBlocks + " of " + usableBlocks() + " blocks free, " + journalFreeBlocks + " not referenced]";
    }
}
