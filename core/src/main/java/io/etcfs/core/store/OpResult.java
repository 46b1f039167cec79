package io.etcfs.core.store;

import java.util.List;

/** The result of one operation of a branch. */
public sealed interface OpResult {
    record Put() implements OpResult {}

    record Deleted(long count) implements OpResult {}

    /** {@code more}: the limit cut the answer; {@code count}: all keys of the range, whatever the limit. */
    record Ranged(List<KeyValue> keyValues, boolean more, long count) implements OpResult {
        /** The one key that was asked for, or null. */
        public KeyValue only() {
            return keyValues.isEmpty() ? null : keyValues.getFirst();
        }
    }

    record Nested(TxnResult result) implements OpResult {}
}
