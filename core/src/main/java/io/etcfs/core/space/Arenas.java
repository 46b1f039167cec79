package io.etcfs.core.space;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The arenas that this node owns, by number. Arena {@code i} has the device blocks from {@code i * arenaBlocks} on. Units: blocks of 4 KiB.
 *
 * <p>A run that is handed out never crosses an arena, but extents that are joined can: {@link #split} cuts a run for the calls here that
 * take one, which refuse any other.
 */
public final class Arenas {
    /** For a run, this many arenas with free blocks are looked at, besides the hint's, before the longest run of them is taken. */
    private static final int ARENAS_LOOKED_AT = 8;

    private final long arenaBlocks;
    private long deviceBlocks;
    private final TreeMap<Long, Arena> arenas = new TreeMap<>();
    /** Those whose bitmaps were changed since {@link #takeDirty}. */
    private final TreeMap<Long, Arena> dirty = new TreeMap<>();
    /** Where the last run without a usable hint came from: the next one is looked for from there on. */
    private long current;

    /**
     * @param arenaBlocks size of an arena, a multiple of {@link Arena#SEGMENT_BLOCKS}
     * @param deviceBlocks size of the device; the last arena can reach beyond it
     */
    public Arenas(long arenaBlocks, long deviceBlocks) {
        if (arenaBlocks <= 0 || arenaBlocks > Integer.MAX_VALUE || arenaBlocks % Arena.SEGMENT_BLOCKS != 0 || deviceBlocks <= 0) {
            throw new IllegalArgumentException("arenas of " + arenaBlocks + " blocks on a device of " + deviceBlocks);
        }
        this.arenaBlocks = arenaBlocks;
        this.deviceBlocks = deviceBlocks;
    }

    public static long idOf(long deviceBlock, long arenaBlocks) {
        return deviceBlock / arenaBlocks;
    }

    /** The arenas that the device has room for, the last one perhaps in part: numbers from 0 up to this. */
    public long arenaCount() {
        return (deviceBlocks + arenaBlocks - 1) / arenaBlocks;
    }

    long deviceBlocks() {
        return deviceBlocks;
    }

    /** The device has so many blocks now, not less than before. Of our arenas the last one was grown before. */
    void grow(long blocks) {
        if (blocks < deviceBlocks) {
            throw new IllegalArgumentException(blocks + " blocks, there were " + deviceBlocks);
        }
        deviceBlocks = blocks;
    }

    /** Blocks of an arena that can be used at all; 0 behind the end of the device. */
    long usableBlocks(long id) {
        return Math.clamp(deviceBlocks - id * arenaBlocks, 0, arenaBlocks) - (id == 0 ? Arena.RESERVED_BLOCKS : 0);
    }

    /** An arena of this device with all its blocks free; it is not added. */
    public Arena newArena(long id) {
        if (id < 0 || id >= arenaCount()) {
            throw new IllegalArgumentException("the device has no arena " + id + ", only " + arenaCount());
        }
        long first = id * arenaBlocks;
        return new Arena(id, first, (int) arenaBlocks, (int) Math.min(arenaBlocks, deviceBlocks - first));
    }

    public void add(Arena arena) {
        if (arena.blocks() != arenaBlocks || arena.firstBlock() != arena.id() * arenaBlocks) {
            throw new IllegalArgumentException(arena + " has another place or size than the arenas of this device");
        }
        if (arenas.putIfAbsent(arena.id(), arena) != null) {
            throw new IllegalStateException("arena " + arena.id() + " is ours already");
        }
    }

    /** The arena that was removed, or null if it was not ours. */
    public Arena remove(long id) {
        dirty.remove(id);
        return arenas.remove(id);
    }

    /** Our arena with this number, or null. */
    public Arena get(long id) {
        return arenas.get(id);
    }

    /** Our arena with this block, or null if it is not ours. */
    public Arena owning(long deviceBlock) {
        return arenas.get(idOf(deviceBlock, arenaBlocks));
    }

    /**
     * Reserves {@code wanted} blocks, in as few runs as can be found with bounded effort: one run behind the hint in its arena, else one
     * run elsewhere, else the longest runs. All or nothing.
     *
     * @param hintBlock the device block that would be best, as the one behind the file's last; negative: none. May be in nobody's arena
     * @return the runs in the order in which they are best used, or nothing if our arenas have too few free blocks
     */
    public List<Run> allocate(int wanted, long hintBlock) {
        if (wanted <= 0) {
            throw new IllegalArgumentException(wanted + " blocks wanted");
        }
        List<Run> runs = new ArrayList<>(1);
        for (int left = wanted; left > 0; ) {
            Run run = find(left, hintBlock);
            // Whether there is room for all needs to be asked only once, and only if the first run is not all.
            if (run == null || runs.isEmpty() && run.length() < wanted && freeBlocks() < wanted) {
                return List.of();
            }
            Arena arena = owning(run.firstBlock());
            boolean hinted = hintBlock >= 0 && arena == owning(hintBlock);
            arena.take(run, !hinted);
            if (!hinted) {
                current = arena.id();
            }
            runs.add(run);
            left -= run.length();
            hintBlock = run.end();
        }
        return runs;
    }

    private Run find(int wanted, long hintBlock) {
        Arena hinted = hintBlock < 0 ? null : owning(hintBlock);
        Run atHint = hinted == null ? null : hinted.find(hintBlock, wanted);
        if (atHint != null && atHint.length() == wanted) {
            return atHint;
        }
        Run elsewhere = longestElsewhere(wanted, hinted);
        return atHint == null || elsewhere != null && elsewhere.length() > atHint.length() ? elsewhere : atHint;
    }

    private Run longestElsewhere(int wanted, Arena except) {
        Run longest = null;
        int looked = 0;
        // From the current arena to the last one, then from the first one up to it.
        for (Map<Long, Arena> part : List.of(arenas.tailMap(current, true), arenas.headMap(current, false))) {
            for (Arena arena : part.values()) {
                if (arena == except || arena.freeBlocks() == 0) {
                    continue;
                }
                Run run = arena.find(-1, wanted);
                if (longest == null || run.length() > longest.length()) {
                    longest = run;
                }
                if (longest.length() == wanted || ++looked == ARENAS_LOOKED_AT) {
                    return longest;
                }
            }
        }
        return longest;
    }

    /**
     * The arena to give away to a node that has no room: the one with most free blocks, but the one that we are taking blocks from only if no other
     * has any. Null: no block is free.
     */
    Arena mostFree() {
        Arena most = null;
        for (Arena arena : arenas.values()) {
            if (arena.freeBlocks() > 0 && (most == null || most.id() == current || arena.id() != current && arena.freeBlocks() > most.freeBlocks())) {
                most = arena;
            }
        }
        return most;
    }

    /** Whether its blocks are freed by itself: it is ours, and not about to be given away. */
    boolean freesIn(long deviceBlock) {
        Arena arena = owning(deviceBlock);
        return arena != null && !arena.isClosed();
    }

    /** As {@link Arena#reference}. */
    public void reference(Run run) {
        Arena arena = ours(run);
        arena.reference(run);
        dirty.put(arena.id(), arena);
    }

    /** As {@link Arena#dereference}. */
    public void dereference(Run run) {
        Arena arena = ours(run);
        arena.dereference(run);
        dirty.put(arena.id(), arena);
    }

    /** As {@link Arena#release}. */
    public void release(Run run) {
        ours(run).release(run);
    }

    private Arena ours(Run run) {
        Arena arena = owning(run.firstBlock());
        if (arena == null) {
            throw new IllegalStateException(run + " is not in an arena of this node");
        }
        return arena;
    }

    /** The parts of a run by arena, in order, whoever owns them. */
    public List<Run> split(Run run) {
        List<Run> parts = new ArrayList<>(1);
        for (long from = run.firstBlock(); from < run.end(); ) {
            long to = Math.min(run.end(), (idOf(from, arenaBlocks) + 1) * arenaBlocks);
            parts.add(new Run(from, (int) (to - from)));
            from = to;
        }
        return parts;
    }

    /** Blocks that can be handed out, in all our arenas. */
    public long freeBlocks() {
        long sum = 0;
        for (Arena arena : arenas.values()) {
            sum += arena.freeBlocks();
        }
        return sum;
    }

    /** Our arenas with {@link Arena#takeDirtySegments dirty segments}, each once, in order. */
    public List<Arena> takeDirty() {
        if (dirty.isEmpty()) {
            return List.of();
        }
        List<Arena> taken = List.copyOf(dirty.values());
        dirty.clear();
        return taken;
    }

    /** Our arenas by number. */
    public Collection<Arena> all() {
        return Collections.unmodifiableCollection(arenas.values());
    }
}
