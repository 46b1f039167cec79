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
 * once and in order; what a holder that vanished has written is durable before anybody takes its token; nobody is fenced that left in order, nobody twice,
 * nobody unconfirmed, and only who was gives up arenas by it.
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
    /** Nodes that have lost a session. */
    private final Set<String> lost = new HashSet<>();
    /** By the revision that is its identity. */
    private final Map<Long, Ended> ended = new HashMap<>();

    /** A session that is gone: whose it was, when that was, and how many writes of blocks had taken effect then. */
    private record Ended(String incarnation, long at, long writes) {}

    /** When another node took a domain, by its number, from a process that vanished and has not held it since. */
    private final Map<String, Map<Long, Long>> takenFrom = new HashMap<>();
    /** When a process was followed by the next one of its node. */
    private final Map<String, Long> replaced = new HashMap<>();
    private final LongSupplier time;
    private final SimFencer fencer;
    /** By process: create revision of the newest session it had. */
    private final Map<String, Long> sessionOf = new HashMap<>();
    /** By node: the intent's create revision. */
    private final Map<String, Long> intents = new HashMap<>();
    private final Set<String> left = new HashSet<>();
    /** By arena: the keys that say whose it is. */
    private final Map<String, Set<String>> arenaPlaces = new HashMap<>();
    private final Map<String, Integer> fencedSinceJoined = new HashMap<>();

    /** @param time what {@link Op#called} is drawn from */
    Rules(Keys keys, SimDisk disk, SimFencer fencer, LongSupplier time, Consumer<String> broken) {
        this.keys = keys;
        this.time = time;
        this.disk = disk;
        this.fencer = fencer;
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
                        sessionOf.put(incarnation, kv.createRevision());
                        incarnations.computeIfAbsent(node, n -> new HashSet<>()).add(incarnation);
                    } else {
                        disk.sessionEnded(sessions.get(node));
                        lost.add(node);
                        ended.put(sessionRevisions.get(node), new Ended(sessions.remove(node), time.getAsLong(), disk.writes()));
                    }
                } else if ((node = node(kv, "gen:")) != null && put && kv.version() > 1) {
                    fenced.addAll(incarnations.getOrDefault(node, Set.of()));
                } else if ((node = node(kv, "batch:")) != null && put) {
                    batch(revision, node, BatchMarker.parseFrom(kv.value()));
                } else if ((node = node(kv, "owner:")) != null) {
                    owner(revision, node, put ? Owner.parseFrom(kv.value()) : null);
                }
            }
            fences(revision, events);
        } catch (InvalidProtocolBufferException e) {
            throw new IllegalStateException(e);
        }
    }

    /** By process: the create revision of the newest session it had, 0 if none. */
    long session(String process) {
        return sessionOf.getOrDefault(process, 0L);
    }

    /** By node: create revision of the intent to fence it, 0 if there is none. */
    long intent(String node) {
        return intents.getOrDefault(node, 0L);
    }

    private void fences(long revision, List<WatchEvent> events) {
        Set<String> memberGone = new HashSet<>();
        Set<String> raised = new HashSet<>();
        Set<String> intentPut = new HashSet<>();
        Set<String> marked = new HashSet<>();
        for (WatchEvent e : events) {
            KeyValue kv = e.keyValue();
            boolean put = e.kind() == WatchEvent.Kind.PUT;
            String node;
            if ((node = node(kv, "membership:")) != null) {
                if (put) {
                    left.remove(node);
                    fencedSinceJoined.remove(node);
                } else {
                    memberGone.add(node);
                }
            } else if ((node = node(kv, "departed:")) != null && put) {
                marked.add(node);
            } else if ((node = node(kv, "gen:")) != null && put && kv.version() > 1) {
                raised.add(node);
            } else if ((node = node(kv, "fence_pending:")) != null && put) {
                intentPut.add(node);
                intents.put(node, kv.createRevision());
                if (left.contains(node)) {
                    broken.accept("revision " + revision + ": " + node + " left in order and is to be fenced");
                }
            }
        }
        marked.stream().filter(memberGone::contains).forEach(left::add);
        for (String node : raised) {
            // Else it is the run itself that raises it.
            if (intentPut.contains(node)) {
                if (fencedSinceJoined.merge(node, 1, Integer::sum) > 1) {
                    broken.accept("revision " + revision + ": " + node + " is fenced twice");
                }
                requireConfirmed(revision, node, "its generation is raised");
            }
        }
        arenas(revision, events);
        for (WatchEvent e : events) {
            String arena = node(e.keyValue(), "arena:");
            if (arena != null && e.kind() == WatchEvent.Kind.DELETE) {
                String node = arena.substring(0, arena.indexOf('/'));
                if (intents.containsKey(node)) {
                    requireConfirmed(revision, node, "arena " + arena + " is given away");
                }
            }
        }
        for (WatchEvent e : events) {
            String node = node(e.keyValue(), "fence_pending:");
            if (node != null && e.kind() == WatchEvent.Kind.DELETE) {
                intents.remove(node);
            }
        }
    }

    private void arenas(long revision, List<WatchEvent> events) {
        Set<String> changed = new HashSet<>();
        for (WatchEvent e : events) {
            String owned = node(e.keyValue(), "arena:");
            String free = node(e.keyValue(), "free_arena:");
            if (owned != null || free != null) {
                String id = owned != null ? owned.substring(owned.indexOf('/') + 1) : free;
                Set<String> places = arenaPlaces.computeIfAbsent(id, i -> new HashSet<>());
                changed.add(id);
                if (e.kind() == WatchEvent.Kind.PUT) {
                    places.add(e.keyValue().key().toString());
                } else {
                    places.remove(e.keyValue().key().toString());
                }
            }
        }
        for (String id : changed) {
            if (arenaPlaces.get(id).size() != 1) {
                broken.accept("revision " + revision + ": arena " + id + " is " + arenaPlaces.get(id));
            }
        }
    }

    private void requireConfirmed(long revision, String node, String what) {
        if (!fencer.confirmedSince(node, intents.getOrDefault(node, Long.MAX_VALUE))) {
            broken.accept("revision " + revision + ": " + what + ", and nobody has confirmed that it is severed");
        }
        for (String process : incarnations.getOrDefault(node, Set.of())) {
            if (!fencer.severed(process)) {
                broken.accept("revision " + revision + ": " + what + ", and " + process + " is not severed");
            }
        }
    }

    private void batch(long revision, String node, BatchMarker marker) {
        String incarnation = marker.getIncarnation();
        if (marker.getNumber() == 0) {
            // It comes with its first session.
            lastBatch.put(incarnation, 0L);
            return;
        }
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

    /** Of a node, whether it is there or has ended; 0: there was none. */
    long latestSession(String node) {
        return sessionRevisions.getOrDefault(node, 0L);
    }

    /** Any session of the node has ended so far. */
    boolean lostSession(String node) {
        return lost.contains(node);
    }

    /** 0: it has not. */
    long endedAt(long session) {
        Ended e = ended.get(session);
        return e == null ? 0 : e.at;
    }

    /** From when on the process, which has ended, can change nothing of the domain any more that anybody has looked at. */
    long settledFrom(String process, long domain) {
        return Math.min(takenFrom.getOrDefault(process, Map.of()).getOrDefault(domain, Long.MAX_VALUE), replaced.getOrDefault(process, Long.MAX_VALUE));
    }

    @Override
    public void resynced(long revision) {}
}
