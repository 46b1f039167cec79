package io.etcfs.core.space;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Arrays;
import java.util.BitSet;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class BitmapTest {
    private static final int BITS = 4 * 64;

    @Test
    void answersAsASetOfBits() {
        for (long seed = 0; seed < 50; seed++) {
            SplittableRandom random = new SplittableRandom(seed);
            Bitmap bitmap = new Bitmap(BITS);
            BitSet model = new BitSet(BITS);
            for (int step = 0; step < 200; step++) {
                int from = random.nextInt(BITS + 1);
                int to = from + random.nextInt(BITS - from + 1);
                if (random.nextBoolean()) {
                    bitmap.set(from, to);
                    model.set(from, to);
                } else {
                    bitmap.clear(from, to);
                    model.clear(from, to);
                }
                int a = random.nextInt(BITS + 1);
                int b = a + random.nextInt(BITS - a + 1);
                String where = "seed " + seed + " step " + step + " [" + a + ", " + b + ")";
                int set = model.nextSetBit(a);
                assertEquals(set < 0 ? b : Math.min(b, set), bitmap.nextSet(a, b), where);
                assertEquals(Math.min(b, model.nextClearBit(a)), bitmap.nextClear(a, b), where);
                assertEquals(model.get(a, b).cardinality(), bitmap.count(a, b), where);
                assertEquals(model.get(a, b).cardinality() == b - a, bitmap.allSet(a, b), where);
                assertEquals(model.get(a, b).isEmpty(), bitmap.noneSet(a, b), where);
            }
            assertArrayEquals(Arrays.copyOf(model.toByteArray(), BITS / 8), bitmap.bytes(0, BITS / 8));
            Bitmap loaded = new Bitmap(BITS);
            loaded.load(64, bitmap.bytes(64, 16));
            assertEquals(0, loaded.count(0, 64) + loaded.count(192, BITS));
            assertArrayEquals(bitmap.bytes(64, 16), loaded.bytes(64, 16));
        }
    }
}
