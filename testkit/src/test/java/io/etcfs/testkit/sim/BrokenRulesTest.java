package io.etcfs.testkit.sim;

import static org.junit.jupiter.api.Assertions.fail;

import io.etcfs.core.fault.Fault;
import io.etcfs.core.fault.Rare;
import io.etcfs.testkit.sim.Weather.Kind;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Each rule that the simulator guards: without it some seed fails, in the weather that the rule is for. */
class BrokenRulesTest {
    private static final Logger CORE = Logger.getLogger("io.etcfs.core");
    private static final int SEEDS = 1_500;

    @BeforeAll
    static void quiet() {
        CORE.setLevel(Level.OFF);
    }

    /** No weather given: whatever the seed draws. */
    static Stream<Arguments> rules() {
        return Stream.of(
                Arguments.of(Fault.HANDOVER_BEFORE_PUBLISH, Set.of()),
                Arguments.of(Fault.CACHE_KEPT_AFTER_RECALL, Set.of()),
                Arguments.of(Fault.APPEND_PLACED_BY_KERNEL, Set.of(Kind.SLOW_KERNEL)),
                Arguments.of(Fault.NO_SESSION_COMPARE, Set.of(Kind.PAUSE, Kind.ETCD_STOPS)),
                Arguments.of(Fault.NO_GENERATION_COMPARE, Set.of(Kind.FENCED, Kind.SLOW_WATCHES)),
                Arguments.of(Fault.NO_MARKER_COMPARE, Set.of()),
                Arguments.of(Fault.TOKEN_KEPT_PAST_DEADLINE, Set.of(Kind.PARTITION, Kind.LONG_OUTAGES)),
                Arguments.of(Fault.BIRTH_NOT_PUBLISHED, Set.of()),
                Arguments.of(Fault.ACQUIRE_WITHOUT_OWNER, Set.of(Kind.LATE_REQUESTS, Kind.LOST_MESSAGES, Kind.PARTITION)),
                Arguments.of(Fault.PUBLISHED_BEFORE_FLUSH, Set.of(Kind.POWER_LOSS, Kind.SLOW_DEVICE)),
                Arguments.of(Fault.TAKEN_BEFORE_FLUSH, Set.of(Kind.KILL, Kind.SLOW_DEVICE)),
                Arguments.of(Fault.EPOCH_IGNORED, Set.of(Kind.LATE_WRITES)),
                Arguments.of(Fault.SERVED_WITHOUT_COPY, Set.of(Kind.LATE_WRITES)),
                Arguments.of(Fault.FREED_WHILE_SUSPECT, Set.of(Kind.LATE_WRITES, Kind.SLOW_DEVICE)),
                Arguments.of(Fault.SUSPECTS_FORGOTTEN, Set.of(Kind.LATE_WRITES)),
                Arguments.of(Fault.SHARED_FROM_VANISHED, Set.of(Kind.LATE_WRITES)),
                Arguments.of(Fault.SESSION_OVER_WRITES, Set.of(Kind.LATE_WRITES)),
                Arguments.of(Fault.VALID_NOT_LOWERED, Set.of()),
                Arguments.of(Fault.UNFREE_IGNORED, Set.of()),
                Arguments.of(Fault.FILE_LOCK_AS_REMEMBERED, Set.of()),
                Arguments.of(Fault.DEPARTURE_NOT_HONOURED, Set.of(Kind.LEAVES)),
                Arguments.of(Fault.FENCED_UNCONFIRMED, Set.of(Kind.GOES, Kind.FENCER)),
                Arguments.of(Fault.FENCED_AGAIN, Set.of(Kind.GOES, Kind.FENCER)),
                Arguments.of(Fault.ADMITTED_UNRECORDED, Set.of(Kind.GOES, Kind.FENCER)),
                Arguments.of(Fault.FREED_WHILE_OPEN_ELSEWHERE, Set.of()),
                Arguments.of(Fault.OWNERS_LEFT, Set.of()),
                // Of files that are open without a token, as in spec/Orphans.tla.
                Arguments.of(Fault.OPEN_NOT_PINNED, Set.of()),
                Arguments.of(Fault.OPEN_PINNED_LATE, Set.of()),
                Arguments.of(Fault.OPEN_AS_READ_BEFORE, Set.of()),
                Arguments.of(Fault.ORPHAN_NOT_PINNED, Set.of()),
                Arguments.of(Fault.ORPHAN_OF_OTHERS_NOT_PINNED, Set.of()),
                Arguments.of(Fault.TMPFILE_NOT_PINNED, Set.of()),
                Arguments.of(Fault.ORPHAN_KEPT_BY_LINK, Set.of()),
                Arguments.of(Fault.FREED_BLINDLY, Set.of()),
                Arguments.of(Fault.CLOSED_UNSEEN, Set.of()),
                Arguments.of(Fault.CLOSED_AS_READ, Set.of()),
                Arguments.of(Fault.CLOSED_IN_BATCH, Set.of()),
                Arguments.of(Fault.OPENED_LEFT, Set.of(Kind.KILL)),
                Arguments.of(Fault.OPENED_READ_EARLY, Set.of(Kind.KILL, Kind.LATE_REQUESTS, Kind.SLOW_NETWORK)),
                Arguments.of(Fault.REMOVED_NOT_TAKEN, Set.of()),
                Arguments.of(Fault.ACL_KEPT_AFTER_RECALL, Set.of()),
                Arguments.of(Fault.ACL_OUTLIVES_SESSION, Set.of(Kind.PARTITION, Kind.LONG_OUTAGES)));
    }

    /** Of what takes programs that do little else. */
    static Stream<Arguments> rulesOfWorkloads() {
        return Stream.of(
                Arguments.of(Fault.CLOSED_BLINDLY, Set.of(Kind.LATE_REQUESTS), Workload.OPENS),
                Arguments.of(Fault.OPEN_PINNED_ONCE, Set.of(Kind.LATE_REQUESTS), Workload.OPENS),
                Arguments.of(Fault.OPENED_WHILE_GIVEN, Set.of(Kind.LATE_REQUESTS), Workload.OPENS),
                Arguments.of(Fault.REFILLED_PAGES_KEPT, Set.of(Kind.SLOW_KERNEL, Kind.SLOW_NETWORK), Workload.PAGES),
                Arguments.of(Fault.CUT_PAGES_KEPT, Set.of(Kind.SLOW_KERNEL, Kind.SLOW_NETWORK), Workload.PAGES));
    }

    /** Of directories that are cached in part: in a network in which an answer can be overtaken by what happens to the directory. */
    static Stream<Arguments> rulesOfParts() {
        return Stream.of(
                Arguments.of(Fault.DELETED_NAME_READ_BACK, Set.of(Kind.SLOW_NETWORK)),
                Arguments.of(Fault.READ_WITHOUT_TOKEN, Set.of(Kind.SLOW_NETWORK)),
                Arguments.of(Fault.DROPPED_UNPUBLISHED, Set.of()));
    }

    @ParameterizedTest
    @MethodSource("rules")
    void someSeedFailsWithoutTheRule(Fault fault, Set<Kind> weather) {
        someSeedFails(fault, plan -> weather.isEmpty() ? plan.in(plan.weather(), plan.rare()) : plan.in(weather, Set.of()));
    }

    @ParameterizedTest
    @MethodSource("rulesOfWorkloads")
    void someSeedFailsWithoutTheRuleOfAWorkload(Fault fault, Set<Kind> weather, Workload workload) {
        someSeedFails(fault, plan -> plan.in(weather, Set.of()).doing(workload));
    }

    @ParameterizedTest
    @MethodSource("rulesOfParts")
    void someSeedFailsWithoutTheRuleOfParts(Fault fault, Set<Kind> weather) {
        someSeedFails(fault, plan -> weather.isEmpty() ? plan.in(plan.weather(), plan.rare()) : plan.in(weather, Set.of(Rare.DIRECTORIES_IN_PART)));
    }

    private static void someSeedFails(Fault fault, UnaryOperator<World.Plan> narrowed) {
        for (long seed = 1; seed <= SEEDS; seed++) {
            World.Result result = World.run(narrowed.apply(World.Plan.of(seed)).breaking(fault));
            if (result.failure() != null) {
                System.out.println(fault + ": seed " + seed + ": " + result.failure().lines().findFirst().orElse(""));
                return;
            }
        }
        fail(fault + " is not seen within " + SEEDS + " seeds");
    }
}
