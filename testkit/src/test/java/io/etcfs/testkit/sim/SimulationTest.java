package io.etcfs.testkit.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import io.etcfs.core.fault.Fault;
import java.util.List;
import java.util.stream.LongStream;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code -Detcfs.sim.from=N -Detcfs.sim.seeds=N}: other seeds than the usual ones. */
class SimulationTest {
    private static final Logger CORE = Logger.getLogger("io.etcfs.core");

    @BeforeAll
    static void quiet() {
        CORE.setLevel(Level.OFF);
    }

    @Test
    void seedsShowOneFilesystem() {
        long from = Long.getLong("etcfs.sim.from", 1);
        long count = Long.getLong("etcfs.sim.seeds", 600);
        int operations = 0;
        for (long seed = from; seed < from + count; seed++) {
            World.Result result = World.run(World.Plan.of(seed));
            operations += result.operations();
            if (result.failure() != null) {
                World.Result small = Shrinker.shrink(result);
                fail(result.plan() + ": " + result.failure() + "\nshrunk to " + small.plan() + ": " + small.failure() + "\n" + String.join("\n", small.story()));
            }
        }
        System.out.println("simulated: seeds " + from + " to " + (from + count - 1) + ", " + operations + " operations");
        assertTrue(operations > 20 * count, "the programs do next to nothing");
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 7, 46, 129, 307, 922, 1583, 2159})
    void oneSeedReplaysARun(long seed) {
        World.Result first = World.run(World.Plan.of(seed));
        World.Result second = World.run(World.Plan.of(seed));
        assertEquals(first.story(), second.story());
        assertEquals(first.steps(), second.steps());
        assertEquals(first.digest(), second.digest());
        assertNotEquals(first.digest(), World.run(World.Plan.of(seed + 1)).digest());
    }

    /** A failing run gets no larger, still fails, and tells how. */
    @Test
    void aFailureIsShrunk() {
        World.Result failed = LongStream.rangeClosed(1, 20).mapToObj(seed -> World.run(World.Plan.of(seed).breaking(Fault.HANDOVER_BEFORE_PUBLISH))).filter(r -> r.failure() != null)
                .findFirst().orElseThrow();
        World.Result small = Shrinker.shrink(failed);
        assertNotEquals(null, small.failure());
        assertTrue(small.plan().weather().size() <= failed.plan().weather().size());
        assertTrue(small.story().size() <= failed.story().size());
        assertEquals(List.of(), small.story().stream().filter(String::isBlank).toList());
    }
}
