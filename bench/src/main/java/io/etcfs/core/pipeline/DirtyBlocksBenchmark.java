package io.etcfs.core.pipeline;

import java.util.ArrayList;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/** With 100 dirty blocks in the node, none of which is the file's. */
@State(Scope.Thread)
public class DirtyBlocksBenchmark {
    private static final int FREED = 1 << 16;

    private final DirtyBlocks dirty = new DirtyBlocks();

    public DirtyBlocksBenchmark() {
        for (int i = 0; i < 100; i++) {
            dirty.forWrite(FREED + 7L * i, 1, new ArrayList<>());
        }
    }

    /** 256 MiB of a file: what is freed at once. */
    @Benchmark
    public boolean forgetFreed() {
        dirty.forget(0, FREED, 1);
        return dirty.isEmpty();
    }

    @Benchmark
    public boolean forgetOneBlock() {
        dirty.forget(5, 1, 1);
        return dirty.isEmpty();
    }
}
