package io.etcfs.it.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;

import java.util.Map;
import java.util.TreeSet;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;

/**
 * How the tests of a program ended on a local filesystem, and how on ours. What fails there, too, is no failure of ours; what is skipped only here is one.
 *
 * @param locally result by test
 * @param here the same
 * @param different tests that may end differently, and why
 */
record Compared(Map<String, Result> locally, Map<String, Result> here, Map<String, String> different) {
    enum Result { PASSED, FAILED, SKIPPED }

    Stream<DynamicTest> tests(int atLeast) {
        Set<String> all = new TreeSet<>(locally.keySet());
        all.addAll(here.keySet());
        return Stream.concat(Stream.of(DynamicTest.dynamicTest("all", () -> assertTrue(passed(locally) >= atLeast, passed(locally) + " pass on the local filesystem"))),
                all.stream().map(name -> DynamicTest.dynamicTest(name, () -> {
                    Result before = locally.get(name);
                    Result now = here.get(name);
                    if (before == Result.FAILED || before == Result.SKIPPED && now == before) {
                        abort("locally, too: " + before);
                    }
                    if (now != before && different.containsKey(name)) {
                        abort(different.get(name));
                    }
                    assertEquals(before, now, name);
                })));
    }

    String counts() {
        return passed(here) + " of " + here.size() + " pass, locally " + passed(locally) + " of " + locally.size();
    }

    private static long passed(Map<String, Result> results) {
        return results.values().stream().filter(r -> r == Result.PASSED).count();
    }
}
