package io.etcfs.core.check;

import java.util.Arrays;

/** Numbers in a row, eight bytes each. */
final class LongList {
    private long[] values = new long[16];
    private int size;

    void add(long value) {
        if (size == values.length) {
            values = Arrays.copyOf(values, size + (size >> 1));
        }
        values[size++] = value;
    }

    long get(int i) {
        return values[i];
    }

    void set(int i, long value) {
        values[i] = value;
    }

    int size() {
        return size;
    }
}
