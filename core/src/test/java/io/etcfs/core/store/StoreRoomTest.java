package io.etcfs.core.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

class StoreRoomTest {
    private static final long MIB = 1L << 20;

    private static StoreStatus status(long sizeMib, long inUseMib, long quotaMib, boolean alarm) {
        return new StoreStatus(1, 1, sizeMib * MIB, inUseMib * MIB, quotaMib * MIB, alarm, List.of());
    }

    @Test
    void itIsFullOfRecords() {
        assertEquals(StoreRoom.ENOUGH, StoreRoom.of(status(1638, 1638, 2048, false)));
        assertEquals(StoreRoom.LITTLE, StoreRoom.of(status(1639, 1434, 2048, false)));
        assertEquals(StoreRoom.ENOUGH, StoreRoom.of(status(1639, 1433, 2048, false)));
        // Less of a small one: what removing needs on the way does not become less with the quota.
        assertEquals(StoreRoom.ENOUGH, StoreRoom.of(status(38, 38, 64, false)));
        assertEquals(StoreRoom.LITTLE, StoreRoom.of(status(39, 33, 64, false)));
        assertEquals(StoreRoom.ENOUGH, StoreRoom.of(status(39, 31, 64, false)));
    }

    /** Then the file does not have to grow any more, but does where free pages do not lie in a row. */
    @Test
    void theFileHasGrownToItsQuotaThoughFewRecordsAreInIt() {
        assertEquals(StoreRoom.ENOUGH, StoreRoom.of(status(60, 1, 64, false)));
        assertEquals(StoreRoom.LITTLE, StoreRoom.of(status(61, 1, 64, false)));
        assertEquals(StoreRoom.ENOUGH, StoreRoom.of(status(1983, 1, 2048, false)));
        assertEquals(StoreRoom.LITTLE, StoreRoom.of(status(1984, 1, 2048, false)));
        assertTrue(StoreRoom.worthDefragmenting(status(2040, 1, 2048, false)));
        assertFalse(StoreRoom.worthDefragmenting(status(2040, 1500, 2048, false)));
    }

    @Test
    void theAlarmCountsWhateverTheSizes() {
        assertEquals(StoreRoom.NONE, StoreRoom.of(status(1, 1, 64, true)));
    }

    @Test
    void withoutAWordOnTheQuotaItIsEtcdsDefault() {
        assertEquals(StoreRoom.ENOUGH, StoreRoom.of(status(1600, 1600, 0, false)));
        assertEquals(StoreRoom.LITTLE, StoreRoom.of(status(1700, 1600, 0, false)));
    }
}
