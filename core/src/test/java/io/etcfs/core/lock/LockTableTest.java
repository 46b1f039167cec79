package io.etcfs.core.lock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

class LockTableTest {
    private static final LockOwner A = new LockOwner(false, 1);
    private static final LockOwner B = new LockOwner(false, 2);
    private static final LockOwner A_FLOCK = new LockOwner(true, 1);

    private final LockTable table = new LockTable();

    private static HeldLock write(LockOwner owner, long start, long end) {
        return new HeldLock(owner, start, end, true, 7);
    }

    private static HeldLock read(LockOwner owner, long start, long end) {
        return new HeldLock(owner, start, end, false, 7);
    }

    @Test
    void anUnlockInTheMiddleSplits() {
        table.set(write(A, 0, 99));
        table.clear(A, 40, 59);
        assertEquals(List.of(write(A, 0, 39), write(A, 60, 99)), table.all());
        assertNull(table.conflict(write(B, 40, 59)));
        assertEquals(write(A, 0, 39), table.conflict(write(B, 39, 60)));
        assertEquals(write(A, 60, 99), table.conflict(read(B, 59, 60)));
    }

    @Test
    void neighboursOfOneKindGrowTogether() {
        table.set(write(A, 10, 19));
        table.set(write(A, 30, 39));
        table.set(read(A, 0, 9));
        table.set(write(A, 20, 29));
        assertEquals(List.of(read(A, 0, 9), write(A, 10, 39)), table.all());
    }

    @Test
    void aDowngradeOfAPartSplits() {
        table.set(write(A, 0, Long.MAX_VALUE));
        table.set(read(A, 5, 5));
        assertEquals(List.of(write(A, 0, 4), read(A, 5, 5), write(A, 6, Long.MAX_VALUE)), table.all());
        assertNull(table.conflict(read(B, 5, 5)));
        table.set(write(A, 5, 5));
        assertEquals(List.of(write(A, 0, Long.MAX_VALUE)), table.all());
    }

    @Test
    void theLastByteIsALockOfItsOwn() {
        table.set(write(A, Long.MAX_VALUE, Long.MAX_VALUE));
        table.set(write(A, 0, Long.MAX_VALUE - 1));
        assertEquals(List.of(write(A, 0, Long.MAX_VALUE)), table.all());
        table.clear(A, Long.MAX_VALUE, Long.MAX_VALUE);
        assertNull(table.conflict(write(B, Long.MAX_VALUE, Long.MAX_VALUE)));
    }

    @Test
    void flockAndFcntlDoNotSeeEachOther() {
        table.set(write(A_FLOCK, 0, Long.MAX_VALUE));
        assertNull(table.conflict(write(B, 0, 9)));
        assertEquals(A_FLOCK, table.conflict(write(new LockOwner(true, 2), 0, Long.MAX_VALUE)).owner());
    }

    /** Against an array of bytes for each owner. */
    @Test
    void everyByteIsAsAModelByBytesSays() {
        int bytes = 24;
        LockOwner[] owners = {A, B, A_FLOCK, new LockOwner(true, 2), new LockOwner(false, 3)};
        for (int seed = 0; seed < 3_000; seed++) {
            Random random = new Random(seed);
            LockTable t = new LockTable();
            Map<LockOwner, char[]> model = new HashMap<>();
            for (LockOwner o : owners) {
                model.put(o, " ".repeat(bytes).toCharArray());
            }
            for (int step = 0; step < 40; step++) {
                LockOwner owner = owners[random.nextInt(owners.length)];
                int start = random.nextInt(bytes);
                int end = start + random.nextInt(bytes - start);
                boolean exclusive = random.nextBoolean();
                if (random.nextInt(3) == 0) {
                    t.clear(owner, start, end);
                    java.util.Arrays.fill(model.get(owner), start, end + 1, ' ');
                } else {
                    HeldLock wanted = new HeldLock(owner, start, end, exclusive, step);
                    int first = firstConflict(model, wanted);
                    HeldLock conflict = t.conflict(wanted);
                    String where = "seed " + seed + " step " + step;
                    assertEquals(first >= 0, conflict != null, where);
                    if (conflict == null) {
                        t.set(wanted);
                        java.util.Arrays.fill(model.get(owner), start, end + 1, exclusive ? 'w' : 'r');
                    } else {
                        assertTrue(conflict.conflictsWith(wanted) && Math.max(conflict.start(), start) == first, where);
                    }
                }
                for (LockOwner o : owners) {
                    assertEquals(new String(model.get(o)), drawn(t, o, bytes), "seed " + seed + " step " + step);
                }
            }
        }
    }

    private static int firstConflict(Map<LockOwner, char[]> model, HeldLock wanted) {
        for (int at = (int) wanted.start(); at <= wanted.end(); at++) {
            for (Map.Entry<LockOwner, char[]> e : model.entrySet()) {
                char c = e.getValue()[at];
                if (!e.getKey().equals(wanted.owner()) && e.getKey().flock() == wanted.owner().flock() && (c == 'w' || c == 'r' && wanted.exclusive())) {
                    return at;
                }
            }
        }
        return -1;
    }

    /** Also that its ranges are in order, apart, and grown together. */
    private static String drawn(LockTable t, LockOwner owner, int bytes) {
        char[] drawn = " ".repeat(bytes).toCharArray();
        HeldLock before = null;
        for (HeldLock l : t.of(owner)) {
            assertTrue(before == null || before.end() < l.start());
            assertTrue(before == null || before.end() + 1 < l.start() || before.exclusive() != l.exclusive());
            java.util.Arrays.fill(drawn, (int) l.start(), (int) l.end() + 1, l.exclusive() ? 'w' : 'r');
            before = l;
        }
        return new String(drawn);
    }
}
