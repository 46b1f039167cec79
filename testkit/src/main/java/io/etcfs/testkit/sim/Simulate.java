package io.etcfs.testkit.sim;

import io.etcfs.core.fault.Fault;
import java.util.Arrays;
import java.util.Locale;

/**
 * Runs seeds from a shell: {@code FROM COUNT [FAULT...]}, and {@code story SEED [FAULT...]} for one, told in full. Of a run that fails it tells the
 * shrunk story. Ends with 1 if any failed.
 */
public final class Simulate {
    private Simulate() {}

    public static void main(String[] arguments) {
        boolean story = arguments.length > 0 && arguments[0].equals("story");
        if (arguments.length < 2) {
            System.err.println("usage: FROM COUNT [FAULT...]\n       story SEED [FAULT...]");
            System.exit(2);
        }
        long from = Long.parseLong(arguments[story ? 1 : 0]);
        long count = story ? 1 : Long.parseLong(arguments[1]);
        Fault[] faults = Arrays.stream(arguments).skip(2).map(Fault::valueOf).toArray(Fault[]::new);
        long begin = System.nanoTime();
        long failed = 0;
        long operations = 0;
        double virtualSeconds = 0;
        for (long seed = from; seed < from + count; seed++) {
            World.Result result = World.run(World.Plan.of(seed).breaking(faults));
            operations += result.operations();
            virtualSeconds += result.virtualNs() / 1e9;
            if (story) {
                result.story().forEach(System.out::println);
            }
            if (result.failure() != null) {
                failed++;
                System.out.println("FAILED " + result.plan() + ": " + result.failure());
                if (!story) {
                    World.Result small = Shrinker.shrink(result);
                    System.out.println("shrunk to " + small.plan() + ": " + small.failure());
                    small.story().forEach(System.out::println);
                }
            }
            if ((seed - from + 1) % 10_000 == 0) {
                System.out.println(seed - from + 1 + " seeds, " + failed + " failed");
            }
        }
        double seconds = (System.nanoTime() - begin) / 1e9;
        System.out.printf(Locale.ROOT, "seeds %d to %d: %d failed; %d operations, %.0f s of virtual time, %.1f s, %.0f seeds/s%n", from, from + count - 1, failed, operations,
                virtualSeconds, seconds, count / seconds);
        System.exit(failed == 0 ? 0 : 1);
    }
}
