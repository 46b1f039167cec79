package io.etcfs.testkit.store;

import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreRejectedException.Reason;
import io.etcfs.core.store.Txn;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** What etcd refuses before it looks at any key: empty keys, too many operations, keys written twice, requests too large. */
final class TxnChecks {
    /** Roughly what a key-value pair or a comparison costs on the wire beside its bytes. */
    private static final long FIELD_OVERHEAD_BYTES = 16;

    private TxnChecks() {}

    static void check(Txn txn, int maxTxnOps, long maxRequestBytes) throws StoreRejectedException {
        checkCounts(txn, maxTxnOps);
        writes(txn.success());
        writes(txn.failure());
        if (sizeBytes(txn) > maxRequestBytes) {
            throw new StoreRejectedException(Reason.TOO_LARGE, "request is too large");
        }
    }

    /** The limit holds for the longest of the three lists, plus the longest of any transaction inside. */
    private static void checkCounts(Txn txn, int maxTxnOps) throws StoreRejectedException {
        int longest = Math.max(txn.compares().size(), Math.max(txn.success().size(), txn.failure().size()));
        if (longest > maxTxnOps) {
            throw new StoreRejectedException(Reason.TOO_LARGE, "too many operations in txn request");
        }
        for (Compare compare : txn.compares()) {
            checkKey(compare.key());
        }
        for (List<Op> branch : List.of(txn.success(), txn.failure())) {
            for (Op op : branch) {
                switch (op) {
                    case Op.Put put -> checkKey(put.key());
                    case Op.Delete delete -> checkKey(delete.key());
                    case Op.Range range -> checkKey(range.key());
                    case Op.Nested nested -> checkCounts(nested.txn(), maxTxnOps - longest);
                }
            }
        }
    }

    static void checkKey(Key key) throws StoreRejectedException {
        if (key.length() == 0) {
            throw new StoreRejectedException(Reason.INVALID, "key is not provided");
        }
    }

    private record Writes(Set<Key> puts, List<Interval> deletes) {
        boolean deletes(Key key) {
            return deletes.stream().anyMatch(interval -> interval.contains(key));
        }
    }

    /** Follows etcd step by step, its order included: a nested put is refused after, not before, a sibling's nested delete of its key. */
    private static Writes writes(List<Op> branch) throws StoreRejectedException {
        Writes writes = new Writes(new HashSet<>(), new ArrayList<>());
        for (Op op : branch) {
            if (op instanceof Op.Delete delete) {
                writes.deletes.add(new Interval(delete.key(), delete.end()));
            }
        }
        for (Op op : branch) {
            if (op instanceof Op.Nested nested) {
                Writes success = writes(nested.txn().success());
                Writes failure = writes(nested.txn().failure());
                for (Key key : success.puts) {
                    add(writes, key);
                }
                for (Key key : failure.puts) {
                    if (!success.puts.contains(key)) {
                        add(writes, key);
                    }
                }
                writes.deletes.addAll(success.deletes);
                writes.deletes.addAll(failure.deletes);
            }
        }
        for (Op op : branch) {
            if (op instanceof Op.Put put) {
                add(writes, put.key());
            }
        }
        return writes;
    }

    private static void add(Writes writes, Key key) throws StoreRejectedException {
        if (writes.deletes(key) || !writes.puts.add(key)) {
            throw new StoreRejectedException(Reason.INVALID, "duplicate key given in txn request");
        }
    }

    private static long sizeBytes(Txn txn) {
        long size = 0;
        for (Compare compare : txn.compares()) {
            size += FIELD_OVERHEAD_BYTES + length(compare.key()) + length(compare.rangeEnd()) + (compare.value() == null ? 0 : compare.value().length);
        }
        for (List<Op> branch : List.of(txn.success(), txn.failure())) {
            for (Op op : branch) {
                size += FIELD_OVERHEAD_BYTES + switch (op) {
                    case Op.Put put -> length(put.key()) + put.value().length;
                    case Op.Delete delete -> length(delete.key()) + length(delete.end());
                    case Op.Range range -> length(range.key()) + length(range.end());
                    case Op.Nested nested -> sizeBytes(nested.txn());
                };
            }
        }
        return size;
    }

    private static long length(Key key) {
        return key == null ? 0 : key.length();
    }
}
