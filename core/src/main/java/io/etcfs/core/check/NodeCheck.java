package io.etcfs.core.check;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.ArenaWant;
import io.etcfs.core.record.proto.BatchMarker;
import io.etcfs.core.record.proto.Departed;
import io.etcfs.core.record.proto.FenceClaim;
import io.etcfs.core.record.proto.FenceDone;
import io.etcfs.core.record.proto.FenceIntent;
import io.etcfs.core.record.proto.Generation;
import io.etcfs.core.record.proto.Membership;
import io.etcfs.core.record.proto.Registered;
import io.etcfs.core.record.proto.Session;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import java.util.Map;
import java.util.TreeMap;

/** Nodes: {@code session:}, {@code membership:}, {@code gen:}, {@code batch:}, {@code departed:}, {@code fence_pending:}, {@code fence_claim:}, {@code fence_done:}. */
final class NodeCheck {
    private static final class Facts {
        Key named;
        KeyValue session;
        KeyValue membership;
        long membershipGeneration;
        boolean hasGeneration;
        long generation;
        boolean departed;
        boolean pending;
        FenceDone fenced;
        Key arena;
        long arenas;
        long opens;
    }

    private final Keys keys;
    private final Findings findings;
    private final Map<String, Facts> nodes = new TreeMap<>();

    NodeCheck(Keys keys, Findings findings) {
        this.keys = keys;
        this.findings = findings;
    }

    private Facts of(Key key) {
        Facts facts = nodes.computeIfAbsent(keys.parseNode(key).node(), name -> new Facts());
        facts.named = key;
        return facts;
    }

    void session(KeyValue kv) throws InvalidProtocolBufferException {
        of(kv.key()).session = kv;
        Session session = Session.parseFrom(kv.value());
        if (kv.leaseId() == 0 || session.getLease() != kv.leaseId()) {
            findings.add(Kind.NODE_LEASE, "it names lease " + Long.toHexString(session.getLease()) + " and is on " + (kv.leaseId() == 0 ? "none" : Long.toHexString(kv.leaseId())), kv.key());
        }
    }

    void arenaWant(KeyValue kv) throws InvalidProtocolBufferException {
        keys.parseNode(kv.key());
        ArenaWant.parseFrom(kv.value());
        if (kv.leaseId() == 0) {
            findings.add(Kind.NODE_LEASE, "it is on no lease and would stay for ever", kv.key());
        }
    }

    void membership(KeyValue kv) throws InvalidProtocolBufferException {
        Facts facts = of(kv.key());
        facts.membership = kv;
        facts.membershipGeneration = Membership.parseFrom(kv.value()).getGeneration();
        if (kv.leaseId() == 0) {
            findings.add(Kind.NODE_LEASE, "it is on no lease and would stay for ever", kv.key());
        }
    }

    void generation(KeyValue kv) throws InvalidProtocolBufferException {
        Facts facts = of(kv.key());
        facts.hasGeneration = true;
        facts.generation = Generation.parseFrom(kv.value()).getGeneration();
    }

    void batch(KeyValue kv) throws InvalidProtocolBufferException {
        of(kv.key());
        BatchMarker marker = BatchMarker.parseFrom(kv.value());
        if (marker.getIncarnation().isEmpty() || marker.getNumber() < 0) {
            findings.add(Kind.BATCH_MARKER, "batch " + marker.getNumber() + " of process '" + marker.getIncarnation() + "'", kv.key());
        }
    }

    void departed(KeyValue kv) throws InvalidProtocolBufferException {
        of(kv.key()).departed = true;
        Departed.parseFrom(kv.value());
    }

    void fencePending(KeyValue kv) throws InvalidProtocolBufferException {
        of(kv.key()).pending = true;
        FenceIntent intent = FenceIntent.parseFrom(kv.value());
        findings.add(Kind.NODE_VANISHED, "node " + keys.parseNode(kv.key()).node() + " is to be fenced" + (intent.getSaw().isEmpty() ? "" : ": " + intent.getSaw()), kv.key());
    }

    /** It may outlive the intent: a node that comes back deletes only that. */
    void fenceClaim(KeyValue kv) throws InvalidProtocolBufferException {
        of(kv.key());
        FenceClaim.parseFrom(kv.value());
        if (kv.leaseId() == 0) {
            findings.add(Kind.NODE_LEASE, "it is on no lease and would keep all others from fencing the node", kv.key());
        }
    }

    void fenceDone(KeyValue kv) throws InvalidProtocolBufferException {
        of(kv.key()).fenced = FenceDone.parseFrom(kv.value());
    }

    /** It outlives what it is about: the next session of the node sees to that. */
    void registered(KeyValue kv) throws InvalidProtocolBufferException {
        of(kv.key());
        Registered.parseFrom(kv.value());
    }

    void hasArena(String node, Key key) {
        Facts facts = nodes.computeIfAbsent(node, name -> new Facts());
        facts.arena = facts.named = key;
        facts.arenas++;
    }

    void hasOpen(String node) {
        nodes.computeIfAbsent(node, name -> new Facts()).opens++;
    }

    // ---- for others, once the keys were seen

    long generation(String node) {
        Facts facts = nodes.get(node);
        return facts == null ? 0 : facts.generation;
    }

    boolean hasSession(String node) {
        Facts facts = nodes.get(node);
        return facts != null && facts.session != null;
    }

    /** @param session create revision of its key */
    boolean hasSession(String node, long session) {
        return hasSession(node) && nodes.get(node).session.createRevision() == session;
    }

    /** Of a node that has a session. */
    long sessionLease(String node) {
        return nodes.get(node).session.leaseId();
    }

    /** Nodes that ever were. */
    long count() {
        return nodes.values().stream().filter(f -> f.hasGeneration).count();
    }

    void finish() {
        nodes.forEach((name, facts) -> {
            if (facts.named != null && !facts.hasGeneration) {
                findings.add(Kind.NODE_GENERATION, "node " + name + " has no gen:, by which it could be fenced", keys.generation(name), facts.named);
            } else if (facts.membership != null && Long.compareUnsigned(facts.membershipGeneration, facts.generation) > 0) {
                findings.add(Kind.NODE_GENERATION, "member of generation " + facts.membershipGeneration + ", the node's is " + facts.generation, facts.membership.key(), keys.generation(name));
            }
            if (facts.pending && facts.membership != null) {
                findings.add(Kind.FENCE_INTENT, "node " + name + " is to be fenced, and is a member", keys.fencePending(name), facts.membership.key());
            }
            if (facts.fenced != null) {
                Key contrary = facts.session != null ? facts.session.key() : facts.membership != null ? facts.membership.key() : facts.arena != null ? facts.arena
                        : facts.departed ? keys.departed(name) : facts.pending ? keys.fencePending(name) : facts.generation != facts.fenced.getGeneration() ? keys.generation(name) : null;
                if (contrary != null) {
                    findings.add(Kind.NODE_FENCED, "node " + name + " was fenced with generation " + facts.fenced.getGeneration() + ", which does not go with " + contrary, keys.fenceDone(name), contrary);
                }
            }
            if (facts.departed) {
                Key contrary = facts.session != null ? facts.session.key() : facts.membership != null ? facts.membership.key() : facts.arena;
                if (contrary != null) {
                    findings.add(Kind.NODE_DEPARTED, "node " + name + " departed, and is still there", keys.departed(name), contrary);
                }
            } else if (facts.session == null && facts.arenas + facts.opens > 0) {
                findings.add(Kind.NODE_GONE, "node " + name + " has no session, and " + facts.arenas + " arenas and " + facts.opens + " open files that wait for it", facts.arena != null ? facts.arena : keys.generation(name));
            }
        });
    }
}
