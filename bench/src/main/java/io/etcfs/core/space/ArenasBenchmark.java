package io.etcfs.core.space;

import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/** A node that owns a whole device, which has 64 to 128 arenas. */
@State(Scope.Thread)
public class ArenasBenchmark {
    private static final int ARENAS = 100;

    private final Arenas arenas = new Arenas(Arena.SEGMENT_BLOCKS, (long) ARENAS * Arena.SEGMENT_BLOCKS);
    private final Run block;

    public ArenasBenchmark() {
        for (int id = 0; id < ARENAS; id++) {
            arenas.add(arenas.newArena(id));
        }
        block = arenas.allocate(1, ARENAS / 2 * Arena.SEGMENT_BLOCKS).getFirst();
    }

    /** What each change of an inode asks for: which bitmaps changed. */
    @Benchmark
    public int takeDirty() {
        arenas.reference(block);
        arenas.dereference(block);
        int segments = 0;
        for (Arena arena : arenas.takeDirty()) {
            segments += arena.takeDirtySegments().length;
        }
        return segments;
    }
}
