package io.etcfs.core.pipeline;

import io.etcfs.core.domain.Domain;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.Op;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;

/**
 * Changes that become visible together. Open: coalesces, one entry a key. Closed: its operations, data and riders never change, but for what goes with a
 * session ({@link #sessionGone}). Under the monitor, but
 * {@link #operations} and {@link #data} of a closed batch may be read without.
 */
final class Batch {
    /** {@code beneath}: what this replaced, if it is bound to the session and may have to go again. */
    private record Change(Supplier<byte[]> value, boolean existed, int bytes, boolean bound, Change beneath) {
        Op operation(Key key) {
            return value == null ? Op.delete(key) : Op.put(key, value.get());
        }
    }

    private static final byte[] NOTHING = {};

    final long number;
    final long openedAtNs;
    private final Map<Key, Change> changes = new LinkedHashMap<>();
    final List<DirtyBlocks.Block> data = new ArrayList<>();
    final List<Rider> riders = new ArrayList<>();
    final Set<Domain> domains = new LinkedHashSet<>();
    final List<Runnable> onCommitted = new ArrayList<>();
    private final List<Runnable> onSessionGone = new ArrayList<>();
    /** Of a closed batch: operations that are bound to the session, and those to be made in their place without it, or null. */
    private final Map<Op, Op> boundOperations = new IdentityHashMap<>();
    /** How many calls of fsync wait for it. */
    int syncs;
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
        changes.put(key, new Change(value, before == null ? existed : before.existed, before == null ? bytes : Math.max(bytes, before.bytes), false, null));
        bytesEstimate += before == null ? key.length() + bytes : Math.max(0, bytes - before.bytes);
    }

    void delete(Key key, boolean existed) {
        Change before = changes.get(key);
        boolean existedBefore = before == null ? existed : before.existed;
        if (existedBefore) {
            changes.put(key, new Change(null, true, before == null ? 0 : before.bytes, false, null));
            bytesEstimate += key.length();
        } else {
            changes.remove(key);
        }
    }

    /** A key without a value that is right only while the session lasts: unless it has committed by then, it goes with the session. */
    void putBound(Key key, boolean existed) {
        Change before = changes.get(key);
        if (before == null || before.value == null) {
            changes.put(key, new Change(() -> NOTHING, before == null ? existed : before.existed, 0, true, before));
            bytesEstimate += key.length();
        }
    }

    void onSessionGone(Runnable action) {
        onSessionGone.add(action);
    }

    /** The session is gone, and nothing of this has committed or can. */
    void sessionGone() {
        onSessionGone.forEach(Runnable::run);
        onSessionGone.clear();
        if (operations == null) {
            List.copyOf(changes.entrySet()).stream().filter(e -> e.getValue().bound).forEach(e -> {
                if (e.getValue().beneath == null) {
                    changes.remove(e.getKey());
                } else {
                    changes.put(e.getKey(), e.getValue().beneath);
                }
            });
        } else if (!boundOperations.isEmpty()) {
            List<Op> left = new ArrayList<>();
            for (Op op : operations) {
                Op instead = boundOperations.containsKey(op) ? boundOperations.get(op) : op;
                if (instead != null) {
                    left.add(instead);
                }
            }
            operations = List.copyOf(left);
            boundOperations.clear();
        }
    }

    void ride(Rider rider) {
        riders.add(rider);
        riderOperations += rider.operations();
    }

    void close() {
        List<Op> ops = new ArrayList<>(changes.size());
        changes.forEach((key, change) -> {
            Op op = change.operation(key);
            ops.add(op);
            if (change.bound) {
                boundOperations.put(op, change.beneath == null ? null : change.beneath.operation(key));
            }
        });
        operations = List.copyOf(ops);
    }
}
