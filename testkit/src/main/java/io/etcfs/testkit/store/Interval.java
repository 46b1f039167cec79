package io.etcfs.testkit.store;

import io.etcfs.core.store.Key;
import java.util.NavigableMap;

/** Keys {@code from <= key < end}; {@code end} null: the one key; an end of one zero byte: no end, as etcd has it. */
record Interval(Key from, Key end) {
    boolean contains(Key key) {
        if (end == null) {
            return key.equals(from);
        }
        return key.compareTo(from) >= 0 && (unbounded() || key.compareTo(end) < 0);
    }

    <V> NavigableMap<Key, V> of(NavigableMap<Key, V> map) {
        if (end == null) {
            return map.subMap(from, true, from, true);
        }
        if (unbounded()) {
            return map.tailMap(from, true);
        }
        return from.compareTo(end) < 0 ? map.subMap(from, true, end, false) : map.subMap(from, true, from, false);
    }

    private boolean unbounded() {
        return end.length() == 1 && end.bytes()[0] == 0;
    }
}
