package io.etcfs.core.store;

/** One operation of a transaction's branch. */
public sealed interface Op {
    /** {@code leaseId} 0: no lease. */
    record Put(Key key, byte[] value, long leaseId) implements Op {}

    /** Deletes one key, or with {@code end} every key of {@code [key, end)}. */
    record Delete(Key key, Key end) implements Op {}

    /** Reads one key, or with {@code end} up to {@code limit} keys (0: all) of {@code [key, end)} in key order. */
    record Range(Key key, Key end, long limit, boolean keysOnly) implements Op {}

    /**
     * A transaction inside a branch. Its comparisons see the state before the whole outer transaction; one key put in both
     * is refused by etcd, and so is a range delete over a key that is put.
     */
    record Nested(Txn txn) implements Op {}

    static Op put(Key key, byte[] value) {
        return new Put(key, value, 0);
    }

    static Op put(Key key, byte[] value, long leaseId) {
        return new Put(key, value, leaseId);
    }

    static Op delete(Key key) {
        return new Delete(key, null);
    }

    static Op get(Key key) {
        return new Range(key, null, 0, false);
    }

    static Op prefix(Key prefix, long limit) {
        return new Range(prefix, prefix.prefixEnd(), limit, false);
    }
}
