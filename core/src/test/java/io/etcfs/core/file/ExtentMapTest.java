package io.etcfs.core.file;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ExtentMapTest {
    private static final int UNWRITTEN = Extent.FLAG_UNWRITTEN;

    /** What one block is mapped to; null in the model is a hole. */
    private record Block(long device, long epoch, int flags) {}

    /** A file as an array of blocks. It lies across the border of two ranges. */
    private static final class Model {
        static final long FIRST = ExtentMap.RANGE_BLOCKS - 100;
        static final int SPACE = 200;
        final Block[] blocks = new Block[SPACE];
        final TreeSet<Long> dirty = new TreeSet<>();

        Block get(long logical) {
            return logical < FIRST || logical >= FIRST + SPACE ? null : blocks[(int) (logical - FIRST)];
        }

        void set(long logical, Block block) {
            blocks[(int) (logical - FIRST)] = block;
            dirty.add(logical / ExtentMap.RANGE_BLOCKS);
        }

        /** The extents of a range, joined as far as the lengths here allow: always. */
        List<Extent> extents(long from, long to) {
            List<Extent> extents = new ArrayList<>();
            for (long i = from; i < to; i++) {
                Block b = get(i);
                if (b != null) {
                    Extent one = new Extent(i, b.device(), 1, b.epoch(), b.flags());
                    Extent last = extents.isEmpty() ? null : extents.getLast();
                    if (last != null && last.logicalEnd() == i && last.deviceBlock() + last.length() == b.device()
                            && last.epoch() == b.epoch() && last.flags() == b.flags()) {
                        extents.set(extents.size() - 1,
                                new Extent(last.logicalBlock(), last.deviceBlock(), last.length() + 1, b.epoch(), b.flags()));
                    } else {
                        extents.add(one);
                    }
                }
            }
            return extents;
        }

        List<Extent> extents() {
            return extents(FIRST, FIRST + SPACE);
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
    void agreesWithAnArrayOfBlocks(long seed) {
        Random random = new Random(seed);
        ExtentMap map = new ExtentMap();
        Model model = new Model();
        for (int step = 0; step < 4_000; step++) {
            String where = "seed " + seed + ", step " + step;
            long from = Model.FIRST + random.nextInt(Model.SPACE);
            long to = from + 1 + random.nextInt((int) Math.min(random.nextInt(10) == 0 ? Model.SPACE : 12, Model.FIRST + Model.SPACE - from));
            switch (random.nextInt(6)) {
                case 0, 1, 2 -> {
                    // Device blocks in parallel with logical ones, so that neighbours often continue each other.
                    long device = from + 1_000 * random.nextInt(1, 3);
                    Extent e = new Extent(from, device, (int) (to - from), random.nextInt(8) == 0 ? 2 : 1, random.nextInt(3) == 0 ? UNWRITTEN : 0);
                    assertEquals(model.extents(from, to), map.put(e), where);
                    for (int i = 0; i < e.length(); i++) {
                        model.set(from + i, new Block(device + i, e.epoch(), e.flags()));
                    }
                }
                case 3 -> {
                    assertEquals(model.extents(from, to), map.remove(from, to), where);
                    for (long i = from; i < to; i++) {
                        if (model.get(i) != null) {
                            model.set(i, null);
                        }
                    }
                }
                case 4 -> {
                    map.setWritten(from, to);
                    for (long i = from; i < to; i++) {
                        Block b = model.get(i);
                        if (b != null && b.flags() != 0) {
                            model.set(i, new Block(b.device(), b.epoch(), 0));
                        }
                    }
                }
                case 5 -> {
                    if (random.nextInt(20) == 0) {
                        assertArrayEquals(model.dirty.stream().mapToLong(Long::longValue).toArray(), map.takeDirtyRanges(), where);
                        model.dirty.clear();
                        List<Extent> records = new ArrayList<>(map.ofRange(0));
                        records.addAll(map.ofRange(1));
                        Collections.shuffle(records, random);
                        map.load(records);
                    }
                }
            }
            check(map, model, random, where);
        }
    }

    private static void check(ExtentMap map, Model model, Random random, String where) {
        List<Extent> all = model.extents();
        assertEquals(all, map.all(), where);
        assertEquals(all.size(), map.count(), where);
        assertEquals(all.stream().mapToLong(Extent::length).sum(), map.blocks(), where);
        assertEquals(all.isEmpty() ? 0 : all.getLast().logicalEnd(), map.end(), where);
        assertEquals(!model.dirty.isEmpty(), map.isDirty(), where);
        long at = Model.FIRST - 5 + random.nextInt(Model.SPACE + 10);
        assertEquals(all.stream().filter(e -> e.logicalBlock() <= at && at < e.logicalEnd()).findFirst().orElse(null), map.at(at), where);
        assertEquals(all.stream().filter(e -> at < e.logicalEnd()).findFirst().orElse(null), map.atOrAfter(at), where);
        long to = at + random.nextInt(50);
        assertEquals(model.extents(at, to), map.within(at, to), where);
        assertEquals(model.extents(0, ExtentMap.RANGE_BLOCKS), map.ofRange(0), where);
        assertEquals(model.extents(ExtentMap.RANGE_BLOCKS, 2 * ExtentMap.RANGE_BLOCKS), map.ofRange(1), where);
        assertEquals(List.of(), map.ofRange(2), where);
        for (long range = 0; range < 3; range++) {
            int count = map.ofRange(range).size();
            assertEquals(count > 0, map.hasAny(range), where);
            assertTrue(map.about(range) >= count && map.about(range) <= Math.max(count + 1, 32), where);
        }
    }

    /** Long extents, where the limit on joined ones matters: compared by lengths, and no two that could be joined may be left. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4})
    void joinsUpToTheLimitAndLeavesNothingJoinable(long seed) {
        Random random = new Random(seed);
        ExtentMap map = new ExtentMap();
        IntervalSet mapped = new IntervalSet();
        long space = 8L * ExtentMap.MAX_EXTENT_BLOCKS;
        for (int step = 0; step < 4_000; step++) {
            String where = "seed " + seed + ", step " + step;
            int length = 1 + random.nextInt(ExtentMap.MAX_EXTENT_BLOCKS);
            long from = random.nextLong(space - length);
            if (random.nextInt(5) < 3) {
                map.put(new Extent(from, from, length, 1, 0));
                mapped.add(from, from + length);
            } else {
                map.remove(from, from + length);
                mapped.remove(from, from + length);
            }
            IntervalSet found = new IntervalSet();
            Extent last = null;
            for (Extent e : map.all()) {
                assertFalse(e.length() > ExtentMap.MAX_EXTENT_BLOCKS, where);
                assertFalse(last != null && last.logicalEnd() > e.logicalBlock(), where);
                assertFalse(last != null && last.logicalEnd() == e.logicalBlock()
                        && (long) last.length() + e.length() <= ExtentMap.MAX_EXTENT_BLOCKS, where + ": " + last + " and " + e);
                found.add(e.logicalBlock(), e.logicalEnd());
                last = e;
            }
            assertEquals(mapped.toString(), found.toString(), where);
        }
    }

    @Test
    void anAppendedFileIsOneExtent() {
        ExtentMap map = new ExtentMap();
        for (int i = 0; i < 100_000; i++) {
            assertEquals(List.of(), map.put(new Extent(i, 7 + i, 1, 3, 0)));
        }
        assertEquals(List.of(new Extent(0, 7, 100_000, 3, 0)), map.all());
        assertEquals(100_000 / ExtentMap.RANGE_BLOCKS + 1, map.takeDirtyRanges().length);
        assertEquals(0, map.takeDirtyRanges().length);
        map.put(new Extent(100_000, 100_007, 1, 3, 0));
        assertArrayEquals(new long[] {100_000 / ExtentMap.RANGE_BLOCKS}, map.takeDirtyRanges());
    }

    @Test
    void whatDoesNotChangeIsNotDirty() {
        ExtentMap map = new ExtentMap();
        map.put(new Extent(0, 0, 20_000, 1, 0));
        map.takeDirtyRanges();
        map.setWritten(0, 20_000);
        map.remove(20_000, Long.MAX_VALUE);
        assertArrayEquals(new long[0], map.takeDirtyRanges());
        map.remove(16_000, Long.MAX_VALUE);
        assertArrayEquals(new long[] {1, 2}, map.takeDirtyRanges());
    }

    @Test
    void anExtentThatFillsARangeDoesNotTouchTheNext() {
        ExtentMap map = new ExtentMap();
        map.put(new Extent(ExtentMap.RANGE_BLOCKS, 0, ExtentMap.RANGE_BLOCKS, 1, 0));
        assertArrayEquals(new long[] {1}, map.takeDirtyRanges());
    }

    @Test
    void refusesRecordsThatOverlapAndKeepsWhatItHad() {
        ExtentMap map = new ExtentMap();
        Extent kept = new Extent(5, 5, 5, 1, 0);
        map.put(kept);
        assertThrows(IllegalArgumentException.class, () -> map.load(List.of(new Extent(0, 0, 10, 1, 0), new Extent(9, 100, 1, 1, 0))));
        assertThrows(IllegalArgumentException.class, () -> map.load(List.of(new Extent(9, 100, 1, 1, 0), new Extent(0, 0, 10, 1, 0))));
        assertThrows(IllegalArgumentException.class, () -> map.load(List.of(kept, kept)));
        assertEquals(List.of(kept), map.all());
    }

    @Test
    void slicesAnExtentOnTheDeviceToo() {
        Extent e = new Extent(10, 100, 10, 4, UNWRITTEN | 0x80);
        assertEquals(new Extent(12, 102, 3, 4, UNWRITTEN | 0x80), e.slice(12, 15));
        assertThrows(IllegalArgumentException.class, () -> e.slice(9, 15));
        assertThrows(IllegalArgumentException.class, () -> e.slice(12, 21));
        assertThrows(IllegalArgumentException.class, () -> e.slice(12, 12));
    }

    @Test
    void keepsUnknownFlagsWhenBlocksAreWritten() {
        ExtentMap map = new ExtentMap();
        map.put(new Extent(0, 0, 3, 1, UNWRITTEN | 0x80));
        map.setWritten(1, 2);
        assertEquals(List.of(new Extent(0, 0, 1, 1, UNWRITTEN | 0x80), new Extent(1, 1, 1, 1, 0x80), new Extent(2, 2, 1, 1, UNWRITTEN | 0x80)),
                map.all());
        assertNull(map.at(3));
    }
}
