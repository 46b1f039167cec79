package io.etcfs.cli.ctl;

import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.BatchMarker;
import io.etcfs.core.record.proto.Departed;
import io.etcfs.core.record.proto.Generation;
import io.etcfs.core.record.proto.Membership;
import io.etcfs.core.record.proto.Session;
import io.etcfs.core.record.proto.Super;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.StoreRejectedException;
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
        /** Was there, is not, and did not say goodbye. */
        LOST
    }

    /** {@code session}: create revision of the session's key. {@code lease}: the session's, in hexadecimal. */
    record Node(String node, NodeState state, String address, String host, String instanceId, String bootId, String version, Instant since, long generation,
            Long session, String lease, String membershipLease, Long lastBatch, Instant departedAt) {}

    static StatusReport down(String problem, StoreStatus etcd) {
        return new StatusReport(Health.DOWN, List.of(problem), null, etcd == null ? null : etcd(etcd), List.of(), null);
    }

    static StatusReport read(Snapshot snapshot, StoreStatus status, Super superblock) throws StoreUnavailableException, StoreRejectedException {
        Keys keys = snapshot.keys();
        List<KeyValue> nodes = new ArrayList<>();
        for (Key prefix : List.of(keys.memberships(), keys.sessions(), keys.generations(), keys.prefix().plus("batch:"), keys.prefix().plus("departed:"))) {
            nodes.addAll(snapshot.below(prefix));
        }
        return of(keys, status, superblock, nodes, SpaceReport.read(snapshot, superblock));
    }

    /** {@code records}: all membership, session, gen, batch and departed records. */
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
        if (status.quotaBytes() > 0 && status.dbSizeBytes() >= status.quotaBytes() / 10 * 8) {
            problems.add("etcd's database has " + status.dbSizeBytes() + " of " + status.quotaBytes() + " bytes"
                    + (status.dbInUseBytes() < status.quotaBytes() / 10 * 7 ? ": defragment it" : ": raise --quota-backend-bytes"));
        }
        for (Node node : nodes) {
            switch (node.state()) {
                case SUSPENDED -> problems.add("node " + node.node() + " has no session: its operations wait");
                case LOST -> problems.add("node " + node.node() + " is gone without having left");
                case UP, JOINING, DEPARTED -> { }
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
                : records.session != null ? NodeState.JOINING : records.departed != null ? NodeState.DEPARTED : NodeState.LOST;
        return new Node(name, state, orNull(member.getAddress()), orNull(member.getHost()), orNull(member.getInstanceId()), orNull(member.getBootId()), orNull(member.getVersion()),
                member.getSinceNs() == 0 ? null : instant(member.getSinceNs()),
                records.generation == null ? 0 : Snapshot.parse(Generation.parser(), records.generation).getGeneration(),
                records.session == null ? null : records.session.createRevision(),
                records.session == null ? null : Long.toHexString(Snapshot.parse(Session.parser(), records.session).getLease()),
                records.membership == null ? null : Long.toHexString(records.membership.leaseId()),
                records.batch == null ? null : Snapshot.parse(BatchMarker.parser(), records.batch).getNumber(),
                state != NodeState.DEPARTED ? null : instant(Snapshot.parse(Departed.parser(), records.departed).getAtNs()));
    }

    private static String orNull(String text) {
        return text.isEmpty() ? null : text;
    }

    private static Instant instant(long ns) {
        return Instant.ofEpochSecond(0, ns);
    }
}
