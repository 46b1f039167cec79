package io.etcfs.testkit.sim;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;

class OffHeapTest {
    /** What earlier runs have left is not in the way of the next one. */
    @Test
    void thereIsRoomWhenARunBegins() {
        for (long bytes = 0; bytes <= OffHeap.ENOUGH_USED_BYTES; bytes += 1 << 20) {
            Arena.ofAuto().allocate(1 << 20);
        }
        World.Result result = World.run(World.Plan.of(1));
        assertNull(result.failure());
        assertTrue(OffHeap.usedBytes() < OffHeap.ENOUGH_USED_BYTES, OffHeap.usedBytes() + " bytes are still in use");
    }
}
