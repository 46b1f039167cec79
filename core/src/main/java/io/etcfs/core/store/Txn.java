package io.etcfs.core.store;

import java.util.List;

/** If all {@code compares} hold, {@code success} is applied, else {@code failure}; in both cases as one step. */
public record Txn(List<Compare> compares, List<Op> success, List<Op> failure) {
    public Txn {
        compares = List.copyOf(compares);
        success = List.copyOf(success);
        failure = List.copyOf(failure);
    }
}
