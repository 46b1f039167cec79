package io.etcfs.cli.ctl;

import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.BatchMarker;
import io.etcfs.core.record.proto.Departed;
import io.etcfs.core.record.proto.FenceClaim;
import io.etcfs.core.record.proto.FenceDone;
import io.etcfs.core.record.proto.FenceIntent;
import io.etcfs.core.record.proto.Generation;
import io.etcfs.core.record.proto.Membership;
import io.etcfs.core.record.proto.Session;
import io.etcfs.core.record.proto.Super;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.Defragmentation;
import io.etcfs.core.store.StoreRoom;
import io.etcfs.core.store.StoreStatus;
import io.etcfs.core.store.StoreUnavailableException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.UUID;

/** The state of a filesystem and of the etcd it lives in. What is unknown is null. */
record StatusReport(Health health, List<String> problems, Filesystem filesystem, Etcd etcd, List<Node> nodes, SpaceReport space) {
    enum Health {
        HEALTHY(0), DEGRADED(1), DOWN(3);

        private final int exitCode;

        Health(int exitCode) {
            this.exitCode = exitCode;
        }

        int exitCode() {
            return exitCode;
        }
    }

    record Filesystem(String name, UUID uuid, int formatVersion, int blockSizeBytes, Instant createdAt) {}

    /** Ids in hexadecimal, as etcdctl shows them. {@code quotaBytes}: null if etcd does not say. */
    record Etcd(String clusterId, long revision, long dbSizeBytes, long dbInUseBytes, Long quotaBytes, List<Member> members) {}

    record Member(String endpoint, String memberId, String version, boolean leader, String error) {}

    enum NodeState {
        /** Member with a session: its mount works. */
        UP,
        /** Member without a session: its operations wait. */
        SUSPENDED,
        /** Session without membership. */
        JOINING,
        /** Left in order. */
        DEPARTED,
        /** Vanished, and to be fenced: until it is, or is back, or is declared dead, what it owned waits. */
        VANISHED,
        /** Fenced or declared dead, and not back since. */
        FENCED,
        /** Was there, is not, and did not say goodbye. */
        LOST
    }

    /** {@code session}: create revision of the session's key. {@code lease}: the session's, in hexadecimal. */
    record Node(String node, NodeState state, String address, String host, String instanceId, String bootId, String version, Instant since, long generation,
            Long session, String lease, String membershipLease, Long lastBatch, Instant departedAt, Vanished vanished, Fenced fenced) {}

    /** The intent to fence a node. {@code session}: create revision of the newest session key it was known to have. {@code saw}: why the last try did not confirm. */
    record Vanished(Instant at, String seenBy, String host, String instanceId, Long session, Long raisedTo, String saw, String claimedBy) {}

    record Fenced(Instant at, String by, long generation, String saw) {}

    static StatusReport down(String problem, StoreStatus etcd) {
        return new StatusReport(Health.DOWN, List.of(problem), null, etcd == null ? null : etcd(etcd), List.of(), null);
    }

    static StatusReport read(Snapshot snapshot, StoreStatus status, Super superblock) throws StoreUnavailableException, StoreRejectedException {
        Keys keys = snapshot.keys();
        List<KeyValue> nodes = new ArrayList<>();
        for (Key prefix : List.of(keys.memberships(), keys.sessions(), keys.generations(), keys.prefix().plus("batch:"), keys.departures(), keys.fencesPending(), keys.prefix().plus("fence_claim:"),
                keys.fencesDone())) {
            nodes.addAll(snapshot.below(prefix));
        }
        return of(keys, status, superblock, nodes, SpaceReport.read(snapshot, superblock));
    }

    /** {@code records}: all membership, session, gen, batch, departed and fence records. */
    static StatusReport of(Keys keys, StoreStatus status, Super superblock, List<KeyValue> records, SpaceReport space) {
        List<Node> nodes = nodes(keys, records);
        List<String> problems = new ArrayList<>();
        for (StoreStatus.Member member : status.members()) {
            if (member.error() != null) {
                problems.add("etcd member " + member.endpoint() + " does not answer: " + member.error());
            }
        }
        if (status.members().stream().allMatch(member -> member.error() != null || !member.leader()) && status.members().stream().allMatch(member -> member.error() == null)) {
            problems.add("none of the etcd members asked is the leader");
        }
        if (status.clusterId() != superblock.getEtcdClusterId()) {
            problems.add("the filesystem was made in etcd cluster " + Long.toHexString(superblock.getEtcdClusterId()) + ", this is " + Long.toHexString(status.clusterId()));
        }
        String remedy = Defragmentation.remedy(status);
        if (StoreRoom.of(status) == StoreRoom.NONE) {
            problems.add("etcd is full and takes no changes (alarm NOSPACE): " + remedy + ", then disarm it: etcdctl alarm disarm");
        } else if (StoreRoom.of(status) == StoreRoom.LITTLE || status.quotaBytes() > 0 && status.dbSizeBytes() >= status.quotaBytes() / 10 * 8) {
            problems.add("etcd's database has " + status.dbSizeBytes() + " of " + status.quotaBytes() + " bytes: " + remedy);
        }
        for (Node node : nodes) {
            switch (node.state()) {
                case SUSPENDED -> problems.add("node " + node.node() + " has no session: its operations wait");
                case LOST -> problems.add("node " + node.node() + " is gone without having left");
                case VANISHED -> problems.add("node " + node.node() + " vanished and is not fenced yet"
                        + (node.vanished().saw() == null ? "" : " (" + node.vanished().saw() + ")") + ": its arenas wait for it");
                case UP, JOINING, DEPARTED, FENCED -> { }
            }
        }
        if (space.freeBytes() < space.totalBytes() / 20) {
            problems.add("less than 5 % of the device is free");
        }
        return new StatusReport(problems.isEmpty() ? Health.HEALTHY : Health.DEGRADED, problems, filesystem(superblock), etcd(status), nodes, space);
    }

    private static Filesystem filesystem(Super superblock) {
        var uuid = superblock.getFilesystemUuid().asReadOnlyByteBuffer();
        return new Filesystem(superblock.getName(), new UUID(uuid.getLong(), uuid.getLong()), superblock.getFormatVersion(), superblock.getBlockSize(), instant(superblock.getCreatedAtNs()));
    }

    private static Etcd etcd(StoreStatus status) {
        List<Member> members = status.members().stream()
                .map(member -> member.error() == null
                        ? new Member(member.endpoint(), Long.toHexString(member.memberId()), member.version(), member.leader(), null)
                        : new Member(member.endpoint(), null, null, false, member.error()))
                .toList();
        return new Etcd(Long.toHexString(status.clusterId()), status.revision(), status.dbSizeBytes(), status.dbInUseBytes(), status.quotaBytes() == 0 ? null : status.quotaBytes(), members);
    }

    private static final class Records {
        KeyValue membership;
        KeyValue session;
        KeyValue generation;
        KeyValue batch;
        KeyValue departed;
        KeyValue pending;
        KeyValue claim;
        KeyValue done;
    }

    private static List<Node> nodes(Keys keys, List<KeyValue> records) {
        TreeMap<String, Records> byNode = new TreeMap<>();
        for (KeyValue keyValue : records) {
            String node = keys.parseNode(keyValue.key()).node();
            Records known = byNode.computeIfAbsent(node, name -> new Records());
            if (keyValue.key().equals(keys.membership(node))) {
                known.membership = keyValue;
            } else if (keyValue.key().equals(keys.session(node))) {
                known.session = keyValue;
            } else if (keyValue.key().equals(keys.generation(node))) {
                known.generation = keyValue;
            } else if (keyValue.key().equals(keys.batch(node))) {
                known.batch = keyValue;
            } else if (keyValue.key().equals(keys.fencePending(node))) {
                known.pending = keyValue;
            } else if (keyValue.key().equals(keys.fenceClaim(node))) {
                known.claim = keyValue;
            } else if (keyValue.key().equals(keys.fenceDone(node))) {
                known.done = keyValue;
            } else {
                known.departed = keyValue;
            }
        }
        return byNode.entrySet().stream().map(entry -> node(entry.getKey(), entry.getValue())).toList();
    }

    private static Node node(String name, Records records) {
        Membership member = records.membership == null ? Membership.getDefaultInstance() : Snapshot.parse(Membership.parser(), records.membership);
        NodeState state = records.membership != null
                ? records.session != null ? NodeState.UP : NodeState.SUSPENDED
                : records.session != null ? NodeState.JOINING : records.pending != null ? NodeState.VANISHED : records.departed != null ? NodeState.DEPARTED
                : records.done != null ? NodeState.FENCED : NodeState.LOST;
        return new Node(name, state, orNull(member.getAddress()), orNull(member.getHost()), orNull(member.getInstanceId()), orNull(member.getBootId()), orNull(member.getVersion()),
                member.getSinceNs() == 0 ? null : instant(member.getSinceNs()),
                records.generation == null ? 0 : Snapshot.parse(Generation.parser(), records.generation).getGeneration(),
                records.session == null ? null : records.session.createRevision(),
                records.session == null ? null : Long.toHexString(Snapshot.parse(Session.parser(), records.session).getLease()),
                records.membership == null ? null : Long.toHexString(records.membership.leaseId()),
                records.batch == null ? null : Snapshot.parse(BatchMarker.parser(), records.batch).getNumber(),
                state != NodeState.DEPARTED ? null : instant(Snapshot.parse(Departed.parser(), records.departed).getAtNs()), vanished(records), fenced(records.done));
    }

    private static Vanished vanished(Records records) {
        if (records.pending == null) {
            return null;
        }
        FenceIntent intent = Snapshot.parse(FenceIntent.parser(), records.pending);
        return new Vanished(instant(intent.getAtNs()), orNull(intent.getController()), orNull(intent.getHost()), orNull(intent.getInstanceId()), orNull(intent.getSession()), orNull(intent.getRaisedTo()),
                orNull(intent.getSaw()), records.claim == null ? null : orNull(Snapshot.parse(FenceClaim.parser(), records.claim).getController()));
    }

    private static Fenced fenced(KeyValue done) {
        if (done == null) {
            return null;
        }
        FenceDone record = Snapshot.parse(FenceDone.parser(), done);
        return new Fenced(instant(record.getAtNs()), orNull(record.getController()), record.getGeneration(), orNull(record.getSaw()));
    }

    private static Long orNull(long number) {
        return number == 0 ? null : number;
    }

    private static String orNull(String text) {
        return text.isEmpty() ? null : text;
    }

    private static Instant instant(long ns) {
        return Instant.ofEpochSecond(0, ns);
    }
}
