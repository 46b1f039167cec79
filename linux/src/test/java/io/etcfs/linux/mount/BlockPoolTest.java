package io.etcfs.linux.mount;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.linux.call.Native;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class BlockPoolTest {
    private final BlockPool pool = new BlockPool();

    @Test
    void blocksAreAlignedAndLargeEnough() {
        for (int capacity : new int[] {0, 1, 4096, 12_288, 12_289, 131_072 + 8192, (1 << 20) + 8192}) {
            Block block = pool.take(capacity);
            assertTrue(block.capacity >= capacity);
            assertEquals(0, block.payload % 4096);
            assertEquals(block.payload, block.request() + 80);
            assertEquals(block.payload, block.reply() + 16);
            pool.giveBack(block);
        }
        assertThrows(IllegalArgumentException.class, () -> pool.take((1 << 20) + 8193));
        assertEquals(0, pool.takenBytes());
        pool.close();
    }

    @Test
    void whatIsTakenIsCountedAndReused() {
        Block small = pool.take(100);
        Block large = pool.takeLargest();
        assertEquals(small.bytes() + large.bytes(), pool.takenBytes());
        pool.giveBack(small);
        assertSame(small, pool.take(4096));
        assertNotSame(small, pool.take(4096));
    }

    @Test
    void keepsNoMoreThanItsBound() {
        List<Block> taken = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            taken.add(pool.takeLargest());
        }
        taken.forEach(pool::giveBack);
        assertEquals(0, pool.takenBytes());
        int reused = 0;
        for (int i = 0; i < 40; i++) {
            Block block = pool.takeLargest();
            if (taken.contains(block)) {
                reused++;
            }
        }
        assertEquals((32 << 20) / taken.getFirst().bytes(), reused);
    }

    /** The kernel moves what is there to a huge page, if it has one: the request that is in the block by then must not notice. */
    @Test
    void bytesStayWhenALargeRequestMakesABlockUseAHugePage() {
        for (Block block : List.of(pool.takeLargest(), pool.take(128 << 10))) {
            long end = block.payload + block.capacity;
            for (long at = block.request(); at < end; at += 97) {
                Native.MEMORY.set(ValueLayout.JAVA_BYTE, at, (byte) at);
            }
            block.prepareFor(block.capacity);
            for (long at = block.request(); at < end; at += 97) {
                assertEquals((byte) at, Native.MEMORY.get(ValueLayout.JAVA_BYTE, at));
            }
            block.prepareFor(block.capacity);
            pool.giveBack(block);
        }
        pool.close();
    }
}
