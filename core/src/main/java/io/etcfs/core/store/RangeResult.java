package io.etcfs.core.store;

import java.util.List;

/** Keys of a range in key order; {@code revision} is the store's when it was read (or the one asked for). */
public record RangeResult(long revision, List<KeyValue> keyValues, boolean more, long count) {
    public KeyValue only() {
        return keyValues.isEmpty() ? null : keyValues.getFirst();
    }
}
