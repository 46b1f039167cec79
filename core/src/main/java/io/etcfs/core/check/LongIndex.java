package io.etcfs.core.check;

import java.util.Arrays;

/** Where in a row a number is: a hash table of the row's places, four bytes each and half empty. The row is the caller's and only grows. */
final class LongIndex {
    private final LongList row;
    private int[] places = empty(32);

    LongIndex(LongList row) {
        this.row = row;
    }

    private static int[] empty(int size) {
        int[] places = new int[size];
        Arrays.fill(places, -1);
        return places;
    }

    /** The place of the number that was indexed first, or -1. */
    int of(long number) {
        return places[slot(places, number)];
    }

    /** The last number of the row can be found from now on, unless an equal one can. */
    void addLast() {
        if (row.size() * 2 > places.length) {
            int[] wider = empty(places.length * 2);
            for (int place : places) {
                if (place >= 0) {
                    wider[slot(wider, row.get(place))] = place;
                }
            }
            places = wider;
        }
        int slot = slot(places, row.get(row.size() - 1));
        if (places[slot] < 0) {
            places[slot] = row.size() - 1;
        }
    }

    private int slot(int[] table, long number) {
        long mixed = number * 0x9e3779b97f4a7c15L;
        int slot = (int) (mixed >>> 32) & table.length - 1;
        while (table[slot] >= 0 && row.get(table[slot]) != number) {
            slot = slot + 1 & table.length - 1;
        }
        return slot;
    }
}
