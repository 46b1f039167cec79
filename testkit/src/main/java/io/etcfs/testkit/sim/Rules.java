package io.etcfs.testkit.sim;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.BatchMarker;
import io.etcfs.core.record.proto.Owner;
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
import java.util.function.LongSupplier;

/**
 * What must hold at every revision of the store: an exclusive token is alone; a batch is published by a process that has its node's session and was not fenced, each
 * once and in order; what a holder that vanished has written is durable before anybody takes its token.
 */
final class Rules implements WatchListener {
    private final Keys keys;
    private final SimDisk disk;
    private final Consumer<String> broken;
    private final Exclusion exclusion;
    /** By session key: the incarnation of the process whose session it is. */
    private final Map<String, String> sessions = new HashMap<>();
    private final Map<String, Long> sessionRevisions = new HashMap<>();
    private final Map<String, Long> lastBatch = new HashMap<>();
    private final Map<String, Set<String>> incarnations = new HashMap<>();
    private final Set<String> fenced = new HashSet<>();
    private final Map<String, Owner> owners = new HashMap<>();
    /** By the revision that is its identity. */
    private final Map<Long, Ended> ended = new HashMap<>();

    /** A session that is gone: whose it was, and how many writes of blocks had taken effect then. */
    private record Ended(String incarnation, long writes) {}

    /** When another node took a domain, by its number, from a process that vanished and has not held it since. */
    private final Map<String, Map<Long, Long>> takenFrom = new HashMap<>();
    /** When a process was followed by the next one of its node. */
    private final Map<String, Long> replaced = new HashMap<>();
    private final LongSupplier time;

    /** @param time what {@link Op#called} is drawn from */
    Rules(Keys keys, SimDisk disk, LongSupplier time, Consumer<String> broken) {
        this.keys = keys;
        this.time = time;
        this.disk = disk;
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
                        incarnations.getOrDefault(node, Set.of()).stream().filter(before -> !before.equals(incarnation)).forEach(before -> replaced.putIfAbsent(before, time.getAsLong()));
                        sessions.put(node, incarnation);
                        sessionRevisions.put(node, kv.createRevision());
                        incarnations.computeIfAbsent(node, n -> new HashSet<>()).add(incarnation);
                    } else {
                        disk.sessionEnded(sessions.get(node));
                        ended.put(sessionRevisions.get(node), new Ended(sessions.remove(node), disk.writes()));
                    }
                } else if ((node = node(kv, "gen:")) != null && put && kv.version() > 1) {
                    fenced.addAll(incarnations.getOrDefault(node, Set.of()));
                } else if ((node = node(kv, "batch:")) != null && put) {
                    batch(revision, node, BatchMarker.parseFrom(kv.value()));
                } else if ((node = node(kv, "owner:")) != null) {
                    owner(revision, node, put ? Owner.parseFrom(kv.value()) : null);
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

    private void owner(long revision, String resource, Owner owner) {
        Owner before = owner == null ? owners.remove(resource) : owners.put(resource, owner);
        Ended vanished = before == null || before.getGivenUp() ? null : ended.get(before.getSession());
        if (owner != null) {
            long domain = keys.parseOwner(keys.prefix().plus("owner:" + resource));
            takenFrom.getOrDefault(sessions.getOrDefault(owner.getNode(), ""), new HashMap<>()).remove(domain);
            if (vanished != null && !owner.getNode().equals(before.getNode())) {
                takenFrom.computeIfAbsent(vanished.incarnation, p -> new HashMap<>()).put(domain, time.getAsLong());
            }
        }
        // Taken back by the process itself: it knows what it has to flush.
        if (owner != null && vanished != null && !vanished.incarnation.equals(sessions.get(owner.getNode())) && disk.unflushed(vanished.incarnation, vanished.writes)) {
            broken.accept("revision " + revision + ": token " + resource + " is taken from " + vanished.incarnation + " while bytes that it wrote are not durable");
        }
    }

    /** From when on the process, which has ended, can change nothing of the domain any more that anybody has looked at. */
    long settledFrom(String process, long domain) {
        return Math.min(takenFrom.getOrDefault(process, Map.of()).getOrDefault(domain, Long.MAX_VALUE), replaced.getOrDefault(process, Long.MAX_VALUE));
    }

    @Override
    public void resynced(long revision) {}
}
