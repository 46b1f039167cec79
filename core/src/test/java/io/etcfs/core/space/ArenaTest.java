package io.etcfs.core.space;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.BitSet;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ArenaTest {
    private static final int BLOCKS = 3 * Arena.SEGMENT_BLOCKS;

    private enum State { FREE, RESERVED, REFERENCED, UNUSABLE }

    /** An arena as an array of states, which does or refuses what the contract says. */
    private static final class Model {
        final State[] states = new State[BLOCKS];
        final BitSet dirty = new BitSet();

        Model(int unusableFrom, boolean label) {
            for (int i = 0; i < BLOCKS; i++) {
                states[i] = i >= unusableFrom || label && i < Arena.RESERVED_BLOCKS ? State.UNUSABLE : State.FREE;
            }
        }

        boolean all(int from, int to, State state) {
            for (int i = from; i < to; i++) {
                if (states[i] != state) {
                    return false;
                }
            }
            return true;
        }

        void set(int from, int to, State state) {
            for (int i = from; i < to; i++) {
                if (states[i] == State.REFERENCED || state == State.REFERENCED) {
                    dirty.set(i / Arena.SEGMENT_BLOCKS);
                }
                states[i] = state;
            }
        }

        int count(State... wanted) {
            int count = 0;
            for (State state : states) {
                for (State w : wanted) {
                    count += state == w ? 1 : 0;
                }
            }
            return count;
        }

        boolean hasFreeRun(int wanted) {
            int run = 0;
            for (State state : states) {
                run = state == State.FREE ? run + 1 : 0;
                if (run == wanted) {
                    return true;
                }
            }
            return false;
        }

        byte[] segment(int segment) {
            byte[] bytes = new byte[Arena.SEGMENT_BYTES];
            for (int i = 0; i < Arena.SEGMENT_BLOCKS; i++) {
                State state = states[segment * Arena.SEGMENT_BLOCKS + i];
                if (state == State.REFERENCED || state == State.UNUSABLE) {
                    bytes[i / 8] |= (byte) (1 << i % 8);
                }
            }
            return bytes;
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6})
    void agreesWithAnArrayOfStates(long seed) {
        Random random = new Random(seed);
        boolean label = seed % 2 == 0;
        long id = label ? 0 : 5;
        long first = id * BLOCKS;
        int unusableFrom = seed % 3 == 0 ? BLOCKS : BLOCKS - 1 - random.nextInt(Arena.SEGMENT_BLOCKS + 50);
        Arena arena = new Arena(id, first, BLOCKS, unusableFrom);
        Model model = new Model(unusableFrom, label);
        for (int step = 0; step < 20_000; step++) {
            String where = "seed " + seed + ", step " + step;
            int from = random.nextInt(BLOCKS);
            int to = from + 1 + random.nextInt(Math.min(random.nextBoolean() ? 4 : 300, BLOCKS - from));
            Run run = new Run(first + from, to - from);
            switch (random.nextInt(8)) {
                case 0, 1, 2, 3 -> {
                    boolean whole = model.hasFreeRun(to - from);
                    Run got = arena.allocate(random.nextBoolean() ? -1 : run.firstBlock(), run.length());
                    if (got == null) {
                        assertEquals(0, model.count(State.FREE), where);
                    } else {
                        int at = (int) (got.firstBlock() - first);
                        assertTrue(got.length() <= run.length(), where);
                        assertTrue(model.all(at, at + got.length(), State.FREE), where);
                        // With at most 512 free runs, the search is complete.
                        assertTrue(got.length() == run.length() || !whole || freeRuns(model) > 512, where);
                        model.set(at, at + got.length(), State.RESERVED);
                        if (random.nextInt(3) > 0) {
                            arena.reference(got);
                            model.set(at, at + got.length(), State.REFERENCED);
                        }
                    }
                }
                case 4 -> attempt(model.all(from, to, State.RESERVED), () -> arena.reference(run), () -> model.set(from, to, State.REFERENCED), where);
                case 5 -> {
                    attempt(model.all(from, to, State.REFERENCED), () -> arena.dereference(run), () -> model.set(from, to, State.RESERVED), where);
                    dereferenceAround(arena, model, first, from, random);
                }
                case 6 -> {
                    attempt(model.all(from, to, State.RESERVED), () -> arena.release(run), () -> model.set(from, to, State.FREE), where);
                    for (int i = from; i < Math.min(BLOCKS, from + 500); i++) {
                        if (model.states[i] == State.RESERVED) {
                            arena.release(new Run(first + i, 1));
                            model.set(i, i + 1, State.FREE);
                        }
                    }
                }
                default -> {
                    if (random.nextInt(50) == 0) {
                        int segment = random.nextInt(arena.segmentCount());
                        arena.loadSegment(segment, arena.journalSegment(segment));
                        for (int i = segment * Arena.SEGMENT_BLOCKS; i < (segment + 1) * Arena.SEGMENT_BLOCKS; i++) {
                            if (model.states[i] == State.RESERVED) {
                                model.states[i] = State.FREE;
                            }
                        }
                    } else if (random.nextInt(20) == 0) {
                        assertArrayEquals(model.dirty.stream().toArray(), arena.takeDirtySegments(), where);
                        model.dirty.clear();
                    }
                }
            }
            if (step % 16 == 0) {
                assertEquals(model.count(State.FREE), arena.freeBlocks(), where);
                assertEquals(model.count(State.FREE, State.RESERVED), arena.journalFreeBlocks(), where);
                assertEquals(model.count(State.REFERENCED) == 0, arena.isJournalEmpty(), where);
                int segment = random.nextInt(arena.segmentCount());
                assertArrayEquals(model.segment(segment), arena.journalSegment(segment), where);
            }
        }
    }

    private static void dereferenceAround(Arena arena, Model model, long first, int at, Random random) {
        int from = at;
        while (from < BLOCKS && model.states[from] != State.REFERENCED) {
            from++;
        }
        int to = from;
        int most = 1 + random.nextInt(400);
        while (to < BLOCKS && to - from < most && model.states[to] == State.REFERENCED) {
            to++;
        }
        if (from < to) {
            arena.dereference(new Run(first + from, to - from));
            model.set(from, to, State.RESERVED);
        }
    }

    private static void attempt(boolean allowed, Runnable call, Runnable inModel, String where) {
        if (allowed) {
            call.run();
            inModel.run();
        } else {
            assertThrows(IllegalStateException.class, call::run, where);
        }
    }

    private static int freeRuns(Model model) {
        int runs = 0;
        for (int i = 0; i < BLOCKS; i++) {
            runs += model.states[i] == State.FREE && (i == 0 || model.states[i - 1] != State.FREE) ? 1 : 0;
        }
        return runs;
    }

    @Test
    void neverHandsOutTheLabelNorWhatIsBehindTheDevicesEnd() {
        Arena arena = new Arena(0, 0, BLOCKS, 26);
        assertEquals(10, arena.freeBlocks());
        assertEquals(new Run(16, 10), arena.allocate(0, 100));
        assertNull(arena.allocate(-1, 1));
        assertTrue(arena.isJournalEmpty());
        assertEquals((byte) 0xff, arena.journalSegment(0)[1]);
        assertEquals(0, arena.journalSegment(0)[2]);
        assertEquals((byte) 0xfc, arena.journalSegment(0)[3]);
        assertEquals((byte) 0xff, arena.journalSegment(2)[Arena.SEGMENT_BYTES - 1]);
        assertThrows(IllegalStateException.class, () -> arena.dereference(new Run(0, 1)));
        assertThrows(IllegalStateException.class, () -> arena.release(new Run(0, 1)));
        assertThrows(IllegalStateException.class, () -> arena.dereference(new Run(26, 1)));
        assertThrows(IllegalStateException.class, () -> arena.release(new Run(26, 1)));
        arena.loadSegment(0, new byte[Arena.SEGMENT_BYTES]);
        assertEquals(10, arena.freeBlocks());
    }

    @Test
    void anArenaThatIsNotOnTheDeviceHasNothing() {
        Arena arena = new Arena(0, 0, BLOCKS, 0);
        assertEquals(0, arena.freeBlocks());
        assertNull(arena.allocate(-1, 1));
        assertTrue(arena.isJournalEmpty());
    }

    @Test
    void goesOnBehindTheHintAndRoundTheEnd() {
        long first = 7L * BLOCKS;
        Arena arena = new Arena(7, first, BLOCKS, BLOCKS);
        assertEquals(new Run(first + 100, 50), arena.allocate(first + 100, 50));
        assertEquals(new Run(first + 150, 50), arena.allocate(first + 120, 50));
        assertEquals(new Run(first, 10), arena.allocate(-1, 10), "the cursor is not moved by hints");
        assertEquals(new Run(first + 10, 90), arena.allocate(-1, 90));
        assertEquals(new Run(first + 200, 20), arena.allocate(-1, 20));
        assertEquals(new Run(first + BLOCKS - 5, 5), arena.allocate(first + BLOCKS - 5, 5));
        arena.release(new Run(first + 100, 100));
        assertEquals(new Run(first + 100, 100), arena.allocate(first + BLOCKS - 3, 100));
    }

    @Test
    void findsARunThatLiesAcrossTheHint() {
        Arena arena = new Arena(1, BLOCKS, BLOCKS, BLOCKS);
        arena.allocate(-1, BLOCKS);
        arena.release(new Run(BLOCKS + 1_000, 20));
        assertEquals(new Run(BLOCKS + 1_000, 20), arena.allocate(BLOCKS + 1_010, 20));
    }

    @Test
    void takesTheLongestIfNoneIsLongEnough() {
        Arena arena = new Arena(1, BLOCKS, BLOCKS, BLOCKS);
        arena.allocate(-1, BLOCKS);
        arena.release(new Run(BLOCKS + 10, 5));
        arena.release(new Run(BLOCKS + 30, 8));
        arena.release(new Run(BLOCKS + 50, 7));
        arena.release(new Run(BLOCKS + 70, 8));
        assertEquals(new Run(BLOCKS + 30, 8), arena.allocate(BLOCKS + 10, 20));
    }

    @Test
    void handsOutEveryBlockHoweverFragmentedItIs() {
        Arena arena = new Arena(1, BLOCKS, BLOCKS, BLOCKS);
        arena.allocate(-1, BLOCKS);
        for (int i = 0; i < BLOCKS; i += 2) {
            arena.release(new Run(BLOCKS + i, 1));
        }
        for (int i = 0; i < BLOCKS / 2; i++) {
            assertNotNull(arena.allocate(i % 2 == 0 ? -1 : BLOCKS + 77, 9));
        }
        assertEquals(0, arena.freeBlocks());
        assertNull(arena.allocate(-1, 1));
    }

    @Test
    void changesNothingWhenItRefuses() {
        Arena arena = new Arena(1, BLOCKS, BLOCKS, BLOCKS);
        Run run = arena.allocate(-1, 10);
        arena.reference(new Run(run.firstBlock(), 5));
        arena.takeDirtySegments();
        assertThrows(IllegalStateException.class, () -> arena.reference(run));
        assertThrows(IllegalStateException.class, () -> arena.dereference(run));
        assertThrows(IllegalStateException.class, () -> arena.release(run));
        assertEquals(BLOCKS - 10, arena.freeBlocks());
        assertEquals(BLOCKS - 5, arena.journalFreeBlocks());
        assertEquals(0, arena.takeDirtySegments().length);
    }
}
