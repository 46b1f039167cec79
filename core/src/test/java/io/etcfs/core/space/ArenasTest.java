package io.etcfs.core.space;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ArenasTest {
    private static final int ARENA = 2 * Arena.SEGMENT_BLOCKS;

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6})
    void givesAllOrNothingAndNoBlockTwice(long seed) {
        Random random = new Random(seed);
        long deviceBlocks = 9L * ARENA + 777;
        Arenas arenas = new Arenas(ARENA, deviceBlocks);
        BitSet free = new BitSet();
        for (long id : new long[] {0, 2, 3, 7, 9}) {
            arenas.add(arenas.newArena(id));
            free.set((int) id * ARENA, (int) Math.min(deviceBlocks, (id + 1) * ARENA));
        }
        free.clear(0, Arena.RESERVED_BLOCKS);
        List<Run> held = new ArrayList<>();
        for (int step = 0; step < 20_000; step++) {
            String where = "seed " + seed + ", step " + step;
            // Phases of filling and of emptying.
            if (random.nextInt(10) < (step / 2_000 % 2 == 0 ? 7 : 3)) {
                int wanted = 1 + random.nextInt(random.nextInt(20) == 0 ? 3 * ARENA : 64);
                List<Run> runs = arenas.allocate(wanted, random.nextInt(3) == 0 ? -1 : random.nextLong(deviceBlocks + ARENA));
                assertEquals(runs.isEmpty(), free.cardinality() < wanted, where);
                for (Run run : runs) {
                    assertEquals(Arenas.idOf(run.firstBlock(), ARENA), Arenas.idOf(run.end() - 1, ARENA), where);
                    assertTrue(free.nextClearBit((int) run.firstBlock()) >= run.end(), where);
                    free.clear((int) run.firstBlock(), (int) run.end());
                    arenas.reference(run);
                    held.add(run);
                }
                assertEquals(runs.isEmpty() ? 0 : wanted, runs.stream().mapToLong(Run::length).sum(), where);
            } else if (!held.isEmpty()) {
                int which = random.nextInt(held.size());
                Run run = held.get(which);
                held.set(which, held.getLast());
                held.removeLast();
                arenas.dereference(run);
                arenas.release(run);
                free.set((int) run.firstBlock(), (int) run.end());
            }
            assertEquals(free.cardinality(), arenas.freeBlocks(), where);
        }
    }

    @Test
    void staysBehindTheHintWhileThatArenaHasALongRun() {
        Arenas arenas = new Arenas(ARENA, 10L * ARENA);
        arenas.add(arenas.newArena(2));
        arenas.add(arenas.newArena(4));
        assertEquals(List.of(new Run(4L * ARENA + 100, 50)), arenas.allocate(50, 4L * ARENA + 100));
        assertEquals(List.of(new Run(2L * ARENA, 50)), arenas.allocate(50, -1));
        assertEquals(List.of(new Run(2L * ARENA + 50, 50)), arenas.allocate(50, 3L * ARENA), "a hint in another node's arena");
        arenas.allocate(ARENA - 160, 4L * ARENA + 150);
        // Arena 4 has 10 blocks at its end and 100 at its start.
        assertEquals(List.of(new Run(4L * ARENA, 100)), arenas.allocate(100, 5L * ARENA - 10));
        assertEquals(List.of(new Run(2L * ARENA + 100, 20)), arenas.allocate(20, 5L * ARENA - 10));
    }

    @Test
    void staysInTheHintsArenaIfNoOtherHasALongerRun() {
        Arenas arenas = new Arenas(ARENA, 10L * ARENA);
        arenas.add(arenas.newArena(2));
        arenas.add(arenas.newArena(4));
        arenas.allocate(2 * ARENA, -1);
        arenas.release(new Run(2L * ARENA, 10));
        arenas.release(new Run(4L * ARENA + 100, 10));
        assertEquals(List.of(new Run(4L * ARENA + 100, 10), new Run(2L * ARENA, 5)), arenas.allocate(15, 4L * ARENA + 100));
        arenas.release(new Run(4L * ARENA + 100, 3));
        assertEquals(List.of(new Run(2L * ARENA + 5, 5), new Run(4L * ARENA + 100, 1)), arenas.allocate(6, 4L * ARENA + 100));
    }

    @Test
    void takesSeveralArenasForWhatNoneHas() {
        Arenas arenas = new Arenas(ARENA, 10L * ARENA);
        arenas.add(arenas.newArena(2));
        arenas.add(arenas.newArena(4));
        assertEquals(List.of(), arenas.allocate(2 * ARENA + 1, -1));
        assertEquals(2 * ARENA, arenas.freeBlocks());
        assertEquals(List.of(new Run(2L * ARENA, ARENA), new Run(4L * ARENA, ARENA)), arenas.allocate(2 * ARENA, -1));
    }

    @Test
    void knowsWhatIsItsOwn() {
        Arenas arenas = new Arenas(ARENA, 2L * ARENA + 5);
        assertEquals(3, arenas.arenaCount());
        Arena last = arenas.newArena(2);
        assertEquals(5, last.freeBlocks());
        arenas.add(last);
        assertSame(last, arenas.owning(2L * ARENA + 1));
        assertNull(arenas.owning(2L * ARENA - 1));
        assertThrows(IllegalStateException.class, () -> arenas.dereference(new Run(5, 1)));
        assertThrows(IllegalStateException.class, () -> arenas.add(arenas.newArena(2)));
        assertThrows(IllegalArgumentException.class, () -> arenas.newArena(3));
        assertThrows(IllegalArgumentException.class, () -> arenas.add(new Arena(1, 0, ARENA, ARENA)));
        assertSame(last, arenas.remove(2));
        assertFalse(arenas.all().contains(last));
        assertNull(arenas.remove(2));
        assertEquals(List.of(), arenas.allocate(1, -1));
    }

    @Test
    void splitsARunWhereArenasMeet() {
        Arenas arenas = new Arenas(ARENA, 10L * ARENA);
        assertEquals(List.of(new Run(3, 4)), arenas.split(new Run(3, 4)));
        assertEquals(List.of(new Run(0, ARENA)), arenas.split(new Run(0, ARENA)));
        assertEquals(List.of(new Run(ARENA - 1, 1), new Run(ARENA, ARENA), new Run(2L * ARENA, 1)), arenas.split(new Run(ARENA - 1, ARENA + 2)));
        arenas.add(arenas.newArena(1));
        arenas.add(arenas.newArena(2));
        assertThrows(IllegalArgumentException.class, () -> arenas.reference(new Run(2L * ARENA - 1, 2)));
    }

    @Test
    void largeDevicesHaveArenasOfOneGiB() {
        long mib = 1L << 20;
        assertEquals(16 * mib, ArenaSize.forDevice(1));
        assertEquals(16 * mib, ArenaSize.forDevice(1024 * mib));
        assertEquals(16 * mib, ArenaSize.forDevice(2047 * mib));
        assertEquals(32 * mib, ArenaSize.forDevice(2048 * mib));
        assertEquals(512 * mib, ArenaSize.forDevice(65535 * mib));
        assertEquals(1024 * mib, ArenaSize.forDevice(65536 * mib));
        assertEquals(1024 * mib, ArenaSize.forDevice(Long.MAX_VALUE));
        assertThrows(IllegalArgumentException.class, () -> ArenaSize.forDevice(0));
    }
}
