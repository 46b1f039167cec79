package io.etcfs.core.space;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Bits of which ranges {@code [from, to)} are asked and set. No call looks beyond its range, so that what is done to a few blocks takes as long in a large
 * arena as in a small one ({@link java.util.BitSet} looks for the next bit however far it is).
 */
final class Bitmap {
    private final long[] words;

    /** @param bits a multiple of 64 */
    Bitmap(int bits) {
        words = new long[bits / Long.SIZE];
    }

    /** The first set bit of the range, or {@code to}. */
    int nextSet(int from, int to) {
        return next(from, to, 0);
    }

    /** The first clear bit of the range, or {@code to}. */
    int nextClear(int from, int to) {
        return next(from, to, -1L);
    }

    private int next(int from, int to, long flip) {
        if (from >= to) {
            return to;
        }
        int w = from >> 6;
        int last = (to - 1) >> 6;
        long found = (words[w] ^ flip) & -1L << from;
        while (found == 0) {
            if (w == last) {
                return to;
            }
            found = words[++w] ^ flip;
        }
        return Math.min(to, (w << 6) + Long.numberOfTrailingZeros(found));
    }

    boolean allSet(int from, int to) {
        return nextClear(from, to) == to;
    }

    boolean noneSet(int from, int to) {
        return nextSet(from, to) == to;
    }

    void set(int from, int to) {
        for (int w = from / Long.SIZE; w * Long.SIZE < to; w++) {
            words[w] |= mask(w, from, to);
        }
    }

    void clear(int from, int to) {
        for (int w = from / Long.SIZE; w * Long.SIZE < to; w++) {
            words[w] &= ~mask(w, from, to);
        }
    }

    int count(int from, int to) {
        int count = 0;
        for (int w = from / Long.SIZE; w * Long.SIZE < to; w++) {
            count += Long.bitCount(words[w] & mask(w, from, to));
        }
        return count;
    }

    /** Of the word's bits those in the range, which has some of them. */
    private static long mask(int word, int from, int to) {
        int start = word * Long.SIZE;
        long mask = from > start ? -1L << from : -1L;
        return to < start + Long.SIZE ? mask & ~(-1L << to) : mask;
    }

    /** Bit {@code from + i} as bit {@code i % 8} of byte {@code i / 8}; {@code from} is a multiple of 64. */
    byte[] bytes(int from, int byteCount) {
        ByteBuffer bytes = ByteBuffer.allocate(byteCount).order(ByteOrder.LITTLE_ENDIAN);
        bytes.asLongBuffer().put(words, from / Long.SIZE, byteCount / Long.BYTES);
        return bytes.array();
    }

    /** The other way round. */
    void load(int from, byte[] bytes) {
        ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(words, from / Long.SIZE, bytes.length / Long.BYTES);
    }

    /** Takes a range over; {@code from} and {@code to} are multiples of 64. */
    void copy(Bitmap other, int from, int to) {
        System.arraycopy(other.words, from / Long.SIZE, words, from / Long.SIZE, (to - from) / Long.SIZE);
    }
}
