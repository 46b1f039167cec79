package io.etcfs.bench;

import java.util.Collection;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;
import org.openjdk.jmh.util.Statistics;

/**
 * Runs the benchmarks whose names match and prints a line for each: ns of the fastest of five iterations, their mean, and allocated bytes, an operation. On a
 * busy machine only the fastest says something of the code. One JVM each, and short: differences below 10 % say nothing.
 */
public final class Micro {
    private static final String ALLOCATED = "gc.alloc.rate.norm";

    private Micro() {}

    public static void main(String[] args) throws RunnerException {
        Collection<RunResult> results = new Runner(new OptionsBuilder()
                .include(args.length == 0 ? "." : args[0])
                .mode(Mode.AverageTime).timeUnit(TimeUnit.NANOSECONDS)
                .forks(1).warmupIterations(3).warmupTime(TimeValue.milliseconds(400)).measurementIterations(5).measurementTime(TimeValue.milliseconds(400))
                .jvmArgsAppend("-Xms512m", "-Xmx512m", "-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow")
                .addProfiler(GCProfiler.class).verbosity(VerboseMode.SILENT).shouldFailOnError(true)
                .build()).run();
        System.out.printf("%-34s %12s %12s %10s%n", "benchmark", "ns/op", "mean", "B/op");
        for (RunResult r : results) {
            Statistics time = r.getPrimaryResult().getStatistics();
            Result<?> allocated = r.getSecondaryResults().entrySet().stream().filter(e -> e.getKey().endsWith(ALLOCATED)).findFirst().orElseThrow().getValue();
            System.out.printf("%-34s %12.1f %12.1f %10.0f%n", name(r.getParams().getBenchmark()), time.getMin(), time.getMean(), allocated.getScore());
        }
    }

    /** Class and method, without the package and what all class names end in. */
    private static String name(String benchmark) {
        int method = benchmark.lastIndexOf('.');
        int type = benchmark.lastIndexOf('.', method - 1);
        return benchmark.substring(type + 1).replace("Benchmark.", ".");
    }
}
