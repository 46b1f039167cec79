package io.etcfs.core.file;

import java.util.List;
import java.util.SplittableRandom;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** A file of 10,000 extents that can not be joined, and one that is appended to. */
@State(Scope.Thread)
public class ExtentMapBenchmark {
    private static final int EXTENTS = 10_000;
    private static final int LENGTH = 8;

    private final SplittableRandom random = new SplittableRandom(1);
    private ExtentMap scattered;
    private ExtentMap appended;
    private long end;
    private long epoch;

    @Setup(Level.Iteration)
    public void fill() {
        scattered = new ExtentMap();
        for (int i = 0; i < EXTENTS; i++) {
            scattered.put(new Extent((long) i * LENGTH, 2L * i * LENGTH, LENGTH, 7, 0));
        }
        scattered.takeDirtyRanges();
        appended = new ExtentMap();
        end = 0;
    }

    @Benchmark
    public Extent lookup() {
        return scattered.at(random.nextInt(EXTENTS * LENGTH));
    }

    /** A whole extent by one of another epoch, so that nothing is joined. */
    @Benchmark
    public List<Extent> replace() {
        int i = random.nextInt(EXTENTS);
        return scattered.put(new Extent((long) i * LENGTH, 2L * i * LENGTH, LENGTH, ++epoch, 0));
    }

    /** One block behind the last one, in the file and on the device: joined. */
    @Benchmark
    public List<Extent> append() {
        return appended.put(new Extent(end, end++, 1, 7, 0));
    }

    /** What each change of an inode asks for, mostly with nothing dirty. */
    @Benchmark
    public long[] takeDirtyRanges() {
        return appended.takeDirtyRanges();
    }
}
