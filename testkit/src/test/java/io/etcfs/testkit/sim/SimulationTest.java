package io.etcfs.testkit.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import io.etcfs.core.fault.Fault;
import java.util.List;
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

    /**
     * Seeds that have failed: pins of open files published after their session; holes and writes of two nodes that mingled; answers that were believed after
     * the session; sizes that the kernel refused; attributes that crossed a change. What a seed plays changes with the code: the rule is what the test beside it in docs/VERIFICATION.md is for.
     */
    @ParameterizedTest
    @ValueSource(longs = {5170, 25337, 48583, 53800, 61421, 77881, 83574, 85184, 5494, 71176, 87928, 91106, 18081, 33052, 44068, 58683, 99856, 77592, 73494, 46891, 629,
            11756, 11879, 11963, 13003, 26660, 28577, 35965, 42840, 56087, 77716, 79669, 96751, 150050, 112856, 135453, 179621, 315412, 345244, 391072})
    void aSeedThatFailedOnceShowsOneFilesystem(long seed) {
        World.Result result = World.run(World.Plan.of(seed));
        assertNull(result.failure(), () -> result.plan() + ": " + result.failure());
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
        World.Result failed = World.run(World.Plan.of(1).breaking(Fault.HANDOVER_BEFORE_PUBLISH));
        for (long seed = 2; failed.failure() == null && seed < 100; seed++) {
            failed = World.run(World.Plan.of(seed).breaking(Fault.HANDOVER_BEFORE_PUBLISH));
        }
        assertNotEquals(null, failed.failure());
        World.Result small = Shrinker.shrink(failed);
        assertNotEquals(null, small.failure());
        assertTrue(small.plan().weather().size() <= failed.plan().weather().size());
        assertTrue(small.story().size() <= failed.story().size());
        assertEquals(List.of(), small.story().stream().filter(String::isBlank).toList());
    }
}
