package io.etcfs.testkit.cluster;

import io.etcfs.core.check.Checker;
import io.etcfs.core.check.Finding;
import io.etcfs.core.check.Kind;
import io.etcfs.core.clock.Monitor;
import io.etcfs.core.record.Keys;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.WatchEvent;
import io.etcfs.core.store.WatchListener;
import java.util.List;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.stream.Stream;

/** Every revision of a filesystem's keys since it began to listen, so that each can be looked at afterwards. */
public final class History {
    /** What there can be after a node went without leaving, until it comes back. */
    public static final Set<Kind> LEFT_BY_A_CRASH = Set.of(Kind.NODE_GONE, Kind.NODE_VANISHED, Kind.ORPHAN_WAITS);

    private static final long PATIENCE_NS = 10_000_000_000L;

    /** What a revision has. The keys are the same map for all: to be looked at, not kept. */
    public interface Visitor {
        void visit(long revision, NavigableMap<Key, KeyValue> keys);
    }

    /** Findings of one revision. */
    public record Found(long revision, List<Finding> findings) {}

    private final Keys keys;
    private final MetadataStore store;
    private final NavigableMap<Long, List<WatchEvent>> changes = new ConcurrentSkipListMap<>();

    /** To be made before the filesystem has any key. */
    public History(MetadataStore store, Keys keys) {
        this.store = store;
        this.keys = keys;
        store.watch(keys.prefix(), keys.prefix().prefixEnd(), 1, new WatchListener() {
            @Override
            public void changed(long revision, List<WatchEvent> events) {
                changes.merge(revision, events, (a, b) -> Stream.concat(a.stream(), b.stream()).toList());
            }

            @Override
            public void resynced(long revision) {}
        });
    }

    /** Waits until all is heard that the store has committed, then goes through the revisions in order. */
    public void replay(Visitor visitor) {
        awaitAll();
        NavigableMap<Key, KeyValue> now = new TreeMap<>();
        for (var change : changes.entrySet()) {
            for (WatchEvent e : change.getValue()) {
                if (e.kind() == WatchEvent.Kind.PUT) {
                    now.put(e.keyValue().key(), e.keyValue());
                } else {
                    now.remove(e.keyValue().key());
                }
            }
            visitor.visit(change.getKey(), now);
        }
    }

    private void awaitAll() {
        try {
            long revision = store.range(keys.prefix(), null, 1, true, 0, PATIENCE_NS).revision();
            long until = System.nanoTime() + PATIENCE_NS;
            while (changes.isEmpty() || changes.lastKey() < revision) {
                if (System.nanoTime() > until) {
                    throw new AssertionError("the watch has not heard of revision " + revision);
                }
                Thread.sleep(1);
            }
        } catch (StoreUnavailableException | StoreRejectedException e) {
            throw new IllegalStateException(e);
        } catch (InterruptedException e) {
            throw new Monitor.Stopped();
        }
    }

    /** What the checker finds at the first revision at which it finds anything of another kind than these, or null. */
    public Found firstFound(Set<Kind> allowed) {
        Found[] first = {null};
        replay((revision, now) -> {
            if (first[0] == null) {
                List<Finding> findings = Checker.check(keys, now.values(), revision).stream().filter(f -> !allowed.contains(f.kind())).toList();
                first[0] = findings.isEmpty() ? null : new Found(revision, findings);
            }
        });
        return first[0];
    }

    public int revisions() {
        return changes.size();
    }
}
