package io.etcfs.core.file;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class IntervalSetTest {
    private static final int SPACE = 200;

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void agreesWithAnArrayOfBooleans(long seed) {
        Random random = new Random(seed);
        IntervalSet set = new IntervalSet();
        boolean[] model = new boolean[SPACE];
        for (int step = 0; step < 5_000; step++) {
            String where = "seed " + seed + ", step " + step;
            int from = random.nextInt(SPACE + 1);
            int to = from + random.nextInt(Math.min(SPACE - from, random.nextBoolean() ? 8 : SPACE) + 1);
            int kind = random.nextInt(100);
            if (kind < 50) {
                set.add(from, to);
                Arrays.fill(model, from, to, true);
            } else if (kind < 99) {
                set.remove(from, to);
                Arrays.fill(model, from, to, false);
            } else {
                set.clear();
                Arrays.fill(model, false);
            }
            assertEquals(text(runs(model, 0, SPACE, true)), text(set.intervals()), where);
            assertEquals(set.intervals().isEmpty(), set.isEmpty(), where);
            int a = random.nextInt(SPACE + 1);
            int b = a + random.nextInt(SPACE - a + 1);
            List<long[]> gaps = runs(model, a, b, false);
            assertEquals(text(gaps), text(set.missing(a, b)), where);
            assertEquals(gaps.isEmpty(), set.contains(a, b), where);
            assertEquals(!runs(model, a, b, true).isEmpty(), set.intersects(a, b), where);
        }
    }

    @Test
    void takesTheWholeRangeOfLong() {
        IntervalSet set = new IntervalSet();
        set.add(Long.MIN_VALUE, Long.MAX_VALUE);
        set.remove(0, 1);
        assertEquals("[" + Long.MIN_VALUE + ", 0][1, " + Long.MAX_VALUE + "]", text(set.intervals()));
        assertEquals("[0, 1]", text(set.missing(Long.MIN_VALUE, Long.MAX_VALUE)));
    }

    @Test
    void anEmptyIntervalIsAlwaysContainedAndAReversedOneRefused() {
        IntervalSet set = new IntervalSet();
        set.add(3, 3);
        assertTrue(set.isEmpty());
        assertTrue(set.contains(5, 5));
        assertThrows(IllegalArgumentException.class, () -> set.add(4, 3));
        assertThrows(IllegalArgumentException.class, () -> set.missing(4, 3));
    }

    private static List<long[]> runs(boolean[] model, int from, int to, boolean value) {
        List<long[]> runs = new ArrayList<>();
        for (int i = from; i < to; i++) {
            if (model[i] == value) {
                if (!runs.isEmpty() && runs.getLast()[1] == i) {
                    runs.getLast()[1]++;
                } else {
                    runs.add(new long[] {i, i + 1});
                }
            }
        }
        return runs;
    }

    private static String text(List<long[]> runs) {
        StringBuilder text = new StringBuilder();
        runs.forEach(run -> text.append(Arrays.toString(run)));
        return text.toString();
    }
}
