package io.etcfs.core.store;

import java.util.List;

/**
 * What a transaction did.
 *
 * @param revision  the header's revision: the store's revision after the transaction
 * @param succeeded which branch was taken
 * @param results   one for each operation of that branch, in order
 */
public record TxnResult(long revision, boolean succeeded, List<OpResult> results) {
    public OpResult.Ranged ranged(int index) {
        return (OpResult.Ranged) results.get(index);
    }

    public TxnResult nested(int index) {
        return ((OpResult.Nested) results.get(index)).result();
    }
}
