package io.etcfs.core.space;

import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** The life of blocks in an arena of 1 GiB: allocated, referenced, dereferenced, released. */
@State(Scope.Thread)
public class ArenaBenchmark {
    private static final int BLOCKS = 1 << 18;

    private Arena empty;
    private Arena fragmented;

    @Setup
    public void fill() {
        empty = new Arena(1, BLOCKS, BLOCKS, BLOCKS);
        fragmented = new Arena(1, BLOCKS, BLOCKS, BLOCKS);
        fragmented.reference(fragmented.allocate(-1, BLOCKS));
        for (long b = 0; b < BLOCKS; b += 8) {
            Run hole = new Run(BLOCKS + b, 2);
            fragmented.dereference(hole);
            fragmented.release(hole);
        }
    }

    @Benchmark
    public int oneBlock() {
        return live(empty, 1);
    }

    @Benchmark
    public int megabyte() {
        return live(empty, 256);
    }

    /** Free runs of two blocks only: the longest of those looked at is taken. */
    @Benchmark
    public int megabyteFragmented() {
        return live(fragmented, 256);
    }

    private static int live(Arena arena, int wanted) {
        Run run = arena.allocate(-1, wanted);
        arena.reference(run);
        arena.dereference(run);
        arena.release(run);
        return run.length();
    }

    @Benchmark
    public byte[] encodeSegment() {
        return fragmented.journalSegment(0);
    }
}
