package io.etcfs.core.pipeline;

import io.etcfs.core.domain.Domain;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.Op;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;

/**
 * Changes that become visible together. Open: coalesces, one entry a key. Closed: its operations, data and riders never change. Under the monitor, but
 * {@link #operations} and {@link #data} of a closed batch may be read without.
 */
final class Batch {
    private record Change(Supplier<byte[]> value, boolean existed, int bytes) {}

    final long number;
    final long openedAtNs;
    private final Map<Key, Change> changes = new LinkedHashMap<>();
    final List<DirtyBlocks.Block> data = new ArrayList<>();
    final List<Rider> riders = new ArrayList<>();
    final Set<Domain> domains = new LinkedHashSet<>();
    final List<Runnable> onCommitted = new ArrayList<>();
    private int riderOperations;
    private int bytesEstimate;
    /** Set when it is closed. */
    List<Op> operations;

    Batch(long number, long openedAtNs) {
        this.number = number;
        this.openedAtNs = openedAtNs;
    }

    boolean isEmpty() {
        return changes.isEmpty() && riders.isEmpty() && data.isEmpty() && onCommitted.isEmpty();
    }

    /** Operations of the transaction so far, the marker's included. */
    int size() {
        return changes.size() + riderOperations + 1;
    }

    int bytesEstimate() {
        return bytesEstimate;
    }

    void put(Key key, Supplier<byte[]> value, boolean existed, int bytes) {
        Change before = changes.get(key);
        changes.put(key, new Change(value, before == null ? existed : before.existed, before == null ? bytes : Math.max(bytes, before.bytes)));
        bytesEstimate += before == null ? key.length() + bytes : Math.max(0, bytes - before.bytes);
    }

    void delete(Key key, boolean existed) {
        Change before = changes.get(key);
        boolean existedBefore = before == null ? existed : before.existed;
        if (existedBefore) {
            changes.put(key, new Change(null, true, before == null ? 0 : before.bytes));
            bytesEstimate += key.length();
        } else {
            changes.remove(key);
        }
    }

    void ride(Rider rider) {
        riders.add(rider);
        riderOperations += rider.operations();
    }

    void close() {
        List<Op> ops = new ArrayList<>(changes.size());
        changes.forEach((key, change) -> ops.add(change.value == null ? Op.delete(key) : Op.put(key, change.value.get())));
        operations = List.copyOf(ops);
    }
}
