package io.etcfs.core.pipeline;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class GroupTest {
    private static final long TRANSACTION_NS = 1_000_000;

    private final Group group = new Group();
    private long nowNs = 5_000_000;

    private void committed(int served, int joined) {
        group.committed(served, joined, TRANSACTION_NS, nowNs);
    }

    @Test
    void whoIsAloneWaitsForNobody() {
        assertTrue(group.complete(1, nowNs));
        committed(1, 0);
        assertTrue(group.complete(1, nowNs));
        assertEquals(nowNs, group.untilNs());
    }

    /** Two wait for the next batch as a batch of two others commits: all four go together. */
    @Test
    void thoseWhoWereServedAreWaitedFor() {
        committed(2, 2);
        assertFalse(group.complete(2, nowNs));
        assertFalse(group.complete(3, nowNs));
        assertTrue(group.complete(4, nowNs));
    }

    @Test
    void waitsAsLongAsATransactionTakes() {
        committed(2, 2);
        assertEquals(nowNs + TRANSACTION_NS, group.untilNs());
        assertTrue(group.complete(2, nowNs + TRANSACTION_NS));
        group.committed(4, 0, 1_000 * TRANSACTION_NS, nowNs);
        assertEquals(nowNs + Group.MAX_WAIT_NS, group.untilNs());
    }

    /** Who does not come back costs the others next to nothing. */
    @Test
    void aGroupThatDoesNotComeTogetherIsLeftAlone() {
        int waits = 0;
        for (int i = 0; i < 1_000; i++) {
            committed(1, 1);
            if (!group.complete(1, nowNs)) {
                waits++;
                nowNs = group.untilNs();
            }
            group.closes(1, nowNs);
        }
        assertTrue(waits <= 5 + 1_000 / (Group.MAX_PAUSE + 1), waits + " waits");
        assertTrue(waits > 50, "it is tried again: " + waits);
    }

    @Test
    void aGroupThatComesTogetherAgainIsWaitedForAgain() {
        for (int i = 0; i < 100; i++) {
            committed(1, 1);
            nowNs = Math.max(nowNs, group.untilNs());
            group.closes(1, nowNs);
        }
        for (int i = 0; i <= 2 * Group.MAX_PAUSE; i++) {
            committed(1, 1);
            group.closes(2, nowNs);
        }
        committed(1, 1);
        assertFalse(group.complete(1, nowNs));
        nowNs = group.untilNs();
        group.closes(1, nowNs);
        committed(1, 1);
        assertTrue(group.complete(1, nowNs), "one pause");
        group.closes(1, nowNs);
        committed(1, 1);
        assertFalse(group.complete(1, nowNs), "of one commit");
    }

    /** A batch that is full, or that a recall wants, closes before the group is there. That says nothing of the group. */
    @Test
    void aBatchThatClosesEarlyIsNotHeldAgainstThem() {
        committed(1, 1);
        group.closes(1, nowNs);
        assertTrue(group.complete(1, nowNs));
        committed(1, 1);
        assertFalse(group.complete(1, nowNs));
    }
}
