package io.etcfs.testkit.store;

import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.OpResult;
import io.etcfs.core.store.RangeResult;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreRejectedException.Reason;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.TxnResult;
import io.etcfs.core.store.WatchEvent;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.NavigableMap;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.LongPredicate;

/**
 * etcd's versioned map: keys, revisions, history, compaction. No leases beyond the number a key carries, no threads, no time.
 * Not safe for concurrent use; {@link MemoryStore} holds its lock around every call.
 *
 * <p>Invariants: {@code compacted <= revision}; {@code log} holds the events of each revision from {@code compacted} on;
 * {@code history} of a key ends with its current state, a tombstone (version 0) if it is absent.
 */
final class KeySpace {
    private static final byte[] NOTHING = {};

    private final NavigableMap<Key, KeyValue> current = new TreeMap<>();
    private final NavigableMap<Key, List<KeyValue>> history = new TreeMap<>();
    private final TreeMap<Long, List<WatchEvent>> log = new TreeMap<>();
    private long revision = 1;
    private long compacted;

    /** As it is now, to go on from by itself. */
    KeySpace copy() {
        KeySpace copy = new KeySpace();
        copy.current.putAll(current);
        history.forEach((key, states) -> copy.history.put(key, new ArrayList<>(states)));
        copy.log.putAll(log);
        copy.revision = revision;
        copy.compacted = compacted;
        return copy;
    }

    long revision() {
        return revision;
    }

    long compacted() {
        return compacted;
    }

    /** Each revision's events from {@code fromRevision} on, in order. */
    SortedMap<Long, List<WatchEvent>> changesSince(long fromRevision) {
        return log.tailMap(fromRevision, true);
    }

    KeyValue get(Key key) {
        return current.get(key);
    }

    Collection<KeyValue> all() {
        return current.values();
    }

    RangeResult range(Interval keys, long limit, boolean keysOnly, long atRevision) throws StoreRejectedException {
        if (atRevision > revision) {
            throw new StoreRejectedException(Reason.FUTURE, "required revision is a future revision");
        }
        if (atRevision > 0 && atRevision < compacted) {
            throw new StoreRejectedException(Reason.COMPACTED, "required revision has been compacted");
        }
        NavigableMap<Key, KeyValue> state = atRevision == 0 || atRevision == revision ? keys.of(current) : past(keys, atRevision);
        OpResult.Ranged ranged = cut(state, limit, keysOnly);
        return new RangeResult(atRevision == 0 ? revision : atRevision, revision, ranged.keyValues(), ranged.more(), ranged.count());
    }

    private NavigableMap<Key, KeyValue> past(Interval keys, long atRevision) {
        NavigableMap<Key, KeyValue> state = new TreeMap<>();
        keys.of(history).forEach((key, states) -> {
            for (int i = states.size() - 1; i >= 0; i--) {
                KeyValue then = states.get(i);
                if (then.modRevision() <= atRevision) {
                    if (then.version() != 0) {
                        state.put(key, then);
                    }
                    return;
                }
            }
        });
        return state;
    }

    private static OpResult.Ranged cut(NavigableMap<Key, KeyValue> state, long limit, boolean keysOnly) {
        List<KeyValue> out = new ArrayList<>();
        for (KeyValue kv : state.values()) {
            if (limit > 0 && out.size() == limit) {
                break;
            }
            out.add(keysOnly
                ? new KeyValue(kv.key(), NOTHING, kv.createRevision(), kv.modRevision(), kv.version(), kv.leaseId())
                : copy(kv));
        }
        return new OpResult.Ranged(List.copyOf(out), out.size() < state.size(), state.size());
    }

    /** Callers own the arrays they get, as they do over a network. */
    private static KeyValue copy(KeyValue kv) {
        return new KeyValue(kv.key(), kv.value().clone(), kv.createRevision(), kv.modRevision(), kv.version(), kv.leaseId());
    }

    /** What a transaction is going to do: chosen from the state before it, the nested ones included. */
    private record Path(boolean succeeded, List<Op> branch, List<Path> nested) {}

    /** What one transaction did. */
    record Applied(TxnResult result, List<WatchEvent> events) {}

    /** @throws StoreRejectedException a put of the branch that would be taken names a lease that does not live; nothing was changed */
    Applied apply(Txn txn, LongPredicate leaseLives) throws StoreRejectedException {
        Path path = path(txn);
        checkLeases(path, leaseLives);
        List<WatchEvent> events = new ArrayList<>();
        List<OpResult> results = execute(path, revision + 1, events);
        commit(events);
        return new Applied(withRevision(new TxnResult(revision, path.succeeded, results), revision), List.copyOf(events));
    }

    /** Deletes keys as one change, as the end of a lease does. */
    List<WatchEvent> delete(Iterable<Key> keys) {
        List<WatchEvent> events = new ArrayList<>();
        for (Key key : keys) {
            delete(new Interval(key, null), revision + 1, events);
        }
        commit(events);
        return List.copyOf(events);
    }

    void compact(long upTo) throws StoreRejectedException {
        if (upTo > revision) {
            throw new StoreRejectedException(Reason.FUTURE, "required revision is a future revision");
        }
        if (upTo <= compacted) {
            throw new StoreRejectedException(Reason.COMPACTED, "required revision has been compacted");
        }
        compacted = upTo;
        log.headMap(upTo, false).clear();
        history.values().removeIf(states -> {
            int keep = 0;
            for (int i = 0; i < states.size(); i++) {
                if (states.get(i).modRevision() <= upTo) {
                    keep = i;
                }
            }
            states.subList(0, keep).clear();
            return states.size() == 1 && states.getFirst().version() == 0 && states.getFirst().modRevision() <= upTo;
        });
    }

    private void commit(List<WatchEvent> events) {
        if (!events.isEmpty()) {
            revision++;
            log.put(revision, List.copyOf(events));
        }
    }

    private Path path(Txn txn) {
        boolean succeeded = true;
        for (Compare compare : txn.compares()) {
            succeeded &= holds(compare);
        }
        List<Op> branch = succeeded ? txn.success() : txn.failure();
        List<Path> nested = new ArrayList<>();
        for (Op op : branch) {
            if (op instanceof Op.Nested n) {
                nested.add(path(n.txn()));
            }
        }
        return new Path(succeeded, branch, nested);
    }

    private boolean holds(Compare compare) {
        NavigableMap<Key, KeyValue> keys = new Interval(compare.key(), compare.rangeEnd()).of(current);
        if (keys.isEmpty()) {
            return compare.target() != Compare.Target.VALUE && holds(compare, new KeyValue(compare.key(), NOTHING, 0, 0, 0, 0));
        }
        return keys.values().stream().allMatch(kv -> holds(compare, kv));
    }

    private static boolean holds(Compare compare, KeyValue kv) {
        int order = switch (compare.target()) {
            case CREATE_REVISION -> Long.compare(kv.createRevision(), compare.number());
            case MOD_REVISION -> Long.compare(kv.modRevision(), compare.number());
            case VERSION -> Long.compare(kv.version(), compare.number());
            case LEASE -> Long.compare(kv.leaseId(), compare.number());
            case VALUE -> Arrays.compareUnsigned(kv.value(), compare.value());
        };
        return switch (compare.relation()) {
            case EQUAL -> order == 0;
            case NOT_EQUAL -> order != 0;
            case GREATER -> order > 0;
            case LESS -> order < 0;
        };
    }

    private static void checkLeases(Path path, LongPredicate leaseLives) throws StoreRejectedException {
        for (Op op : path.branch) {
            if (op instanceof Op.Put put && put.leaseId() != 0 && !leaseLives.test(put.leaseId())) {
                throw new StoreRejectedException(Reason.LEASE_NOT_FOUND, "requested lease not found");
            }
        }
        for (Path nested : path.nested) {
            checkLeases(nested, leaseLives);
        }
    }

    private List<OpResult> execute(Path path, long newRevision, List<WatchEvent> events) {
        List<OpResult> results = new ArrayList<>();
        int nested = 0;
        for (Op op : path.branch) {
            results.add(switch (op) {
                case Op.Put put -> put(put, newRevision, events);
                case Op.Delete delete -> new OpResult.Deleted(delete(new Interval(delete.key(), delete.end()), newRevision, events));
                case Op.Range range -> cut(new Interval(range.key(), range.end()).of(current), range.limit(), range.keysOnly());
                case Op.Nested ignored -> {
                    Path inner = path.nested.get(nested++);
                    yield new OpResult.Nested(new TxnResult(0, inner.succeeded, execute(inner, newRevision, events)));
                }
            });
        }
        return results;
    }

    private OpResult put(Op.Put put, long newRevision, List<WatchEvent> events) {
        KeyValue old = current.get(put.key());
        KeyValue kv = new KeyValue(put.key(), put.value().clone(), old == null ? newRevision : old.createRevision(), newRevision,
            old == null ? 1 : old.version() + 1, put.leaseId());
        current.put(put.key(), kv);
        remember(kv);
        events.add(new WatchEvent(WatchEvent.Kind.PUT, copy(kv)));
        return new OpResult.Put();
    }

    private long delete(Interval keys, long newRevision, List<WatchEvent> events) {
        List<Key> doomed = List.copyOf(keys.of(current).keySet());
        for (Key key : doomed) {
            current.remove(key);
            KeyValue tombstone = new KeyValue(key, NOTHING, 0, newRevision, 0, 0);
            remember(tombstone);
            events.add(new WatchEvent(WatchEvent.Kind.DELETE, tombstone));
        }
        return doomed.size();
    }

    private void remember(KeyValue state) {
        history.computeIfAbsent(state.key(), key -> new ArrayList<>()).add(state);
    }

    /** Fills in the revision of nested results; it is known only at the end. */
    private static TxnResult withRevision(TxnResult result, long revision) {
        List<OpResult> results = new ArrayList<>();
        for (OpResult r : result.results()) {
            results.add(r instanceof OpResult.Nested n ? new OpResult.Nested(withRevision(n.result(), revision)) : r);
        }
        return new TxnResult(revision, result.succeeded(), List.copyOf(results));
    }
}
