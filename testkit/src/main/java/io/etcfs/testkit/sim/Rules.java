package io.etcfs.testkit.sim;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.BatchMarker;
import io.etcfs.core.record.proto.Session;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.WatchEvent;
import io.etcfs.core.store.WatchListener;
import io.etcfs.testkit.cluster.Exclusion;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

/**
 * What must hold at every revision of the store: an exclusive token is alone; a batch is published by a process that has its node's session and was not fenced, each
 * once and in order.
 */
final class Rules implements WatchListener {
    private final Keys keys;
    private final Consumer<String> broken;
    private final Exclusion exclusion;
    /** By session key: the incarnation of the process whose session it is. */
    private final Map<String, String> sessions = new HashMap<>();
    private final Map<String, Long> lastBatch = new HashMap<>();
    private final Map<String, Set<String>> incarnations = new HashMap<>();
    private final Set<String> fenced = new HashSet<>();

    Rules(Keys keys, Consumer<String> broken) {
        this.keys = keys;
        this.broken = broken;
        this.exclusion = new Exclusion(keys, broken);
    }

    void watch(MetadataStore store) {
        store.watch(keys.prefix(), keys.prefix().prefixEnd(), 1, this);
    }

    private String node(KeyValue kv, String kind) {
        String key = kv.key().toString();
        String prefix = keys.prefix() + kind;
        return key.startsWith(prefix) ? key.substring(prefix.length()) : null;
    }

    @Override
    public void changed(long revision, List<WatchEvent> events) {
        exclusion.changed(revision, events);
        try {
            for (WatchEvent e : events) {
                KeyValue kv = e.keyValue();
                boolean put = e.kind() == WatchEvent.Kind.PUT;
                String node;
                if ((node = node(kv, "session:")) != null) {
                    if (put) {
                        String incarnation = Session.parseFrom(kv.value()).getIncarnation();
                        sessions.put(node, incarnation);
                        incarnations.computeIfAbsent(node, n -> new HashSet<>()).add(incarnation);
                    } else {
                        sessions.remove(node);
                    }
                } else if ((node = node(kv, "gen:")) != null && put && kv.version() > 1) {
                    fenced.addAll(incarnations.getOrDefault(node, Set.of()));
                } else if ((node = node(kv, "batch:")) != null && put) {
                    batch(revision, node, BatchMarker.parseFrom(kv.value()));
                }
            }
        } catch (InvalidProtocolBufferException e) {
            throw new IllegalStateException(e);
        }
    }

    private void batch(long revision, String node, BatchMarker marker) {
        String incarnation = marker.getIncarnation();
        if (fenced.contains(incarnation)) {
            broken.accept("revision " + revision + ": " + incarnation + " was fenced and publishes batch " + marker.getNumber());
        }
        if (!incarnation.equals(sessions.get(node))) {
            broken.accept("revision " + revision + ": " + incarnation + " has no session and publishes batch " + marker.getNumber());
        }
        long before = lastBatch.getOrDefault(incarnation, 0L);
        if (marker.getNumber() != before + 1) {
            broken.accept("revision " + revision + ": " + incarnation + " publishes batch " + marker.getNumber() + " after " + before);
        }
        lastBatch.put(incarnation, marker.getNumber());
    }

    @Override
    public void resynced(long revision) {}
}
