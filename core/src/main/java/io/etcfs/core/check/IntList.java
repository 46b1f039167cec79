package io.etcfs.core.check;

import java.util.Arrays;

/** Numbers in a row, four bytes each. */
final class IntList {
    private int[] values = new int[16];
    private int size;

    void add(int value) {
        if (size == values.length) {
            values = Arrays.copyOf(values, size + (size >> 1));
        }
        values[size++] = value;
    }

    int get(int i) {
        return values[i];
    }

    void set(int i, int value) {
        values[i] = value;
    }

    void increment(int i) {
        values[i]++;
    }

    int size() {
        return size;
    }
}
