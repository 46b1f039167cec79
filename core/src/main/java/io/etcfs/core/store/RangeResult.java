package io.etcfs.core.store;

import java.util.List;

/**
 * Keys of a range in key order.
 *
 * @param revision      at which they are as told: the newest, or the one asked for
 * @param storeRevision the newest when it was read
 */
public record RangeResult(long revision, long storeRevision, List<KeyValue> keyValues, boolean more, long count) {
    public KeyValue only() {
        return keyValues.isEmpty() ? null : keyValues.getFirst();
    }
}
