package io.etcfs.cli.ctl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import com.google.protobuf.MessageLite;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Arena;
import io.etcfs.core.record.proto.BatchMarker;
import io.etcfs.core.record.proto.Departed;
import io.etcfs.core.record.proto.FenceClaim;
import io.etcfs.core.record.proto.FenceDone;
import io.etcfs.core.record.proto.FenceIntent;
import io.etcfs.core.record.proto.Generation;
import io.etcfs.core.record.proto.Lock;
import io.etcfs.core.record.proto.Membership;
import io.etcfs.core.record.proto.NodeLocks;
import io.etcfs.core.record.proto.Owner;
import io.etcfs.core.record.proto.Session;
import io.etcfs.core.record.proto.SessionRef;
import io.etcfs.core.record.proto.Super;
import io.etcfs.core.record.proto.Want;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.StoreStatus;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ReportsTest {
    private static final Keys KEYS = new Keys("fs");
    private static final long MIB = 1 << 20;
    /** Five arenas and a half. */
    private static final Super SUPER = Super.newBuilder().setName("fs").setFormatVersion(2).setBlockSize(4096).setArenaSize(16 * MIB).setDeviceSize(88 * MIB).setEtcdClusterId(0xabcL)
            .setFilesystemUuid(ByteString.copyFrom(new byte[16])).setCreatedAtNs(1_500_000_000L).build();
    private static final StoreStatus.Member LEADER = new StoreStatus.Member("a:2379", "3.6.16", 0x11, true, 0, 0, null);
    private static final StoreStatus.Member DEAD = new StoreStatus.Member("b:2379", null, 0, false, 0, 0, "refused");

    private static KeyValue record(Key key, MessageLite value) {
        return new KeyValue(key, value.toByteArray(), 100, 200, 1, 0x77);
    }

    private static StoreStatus etcd(long size, long inUse, long quota, StoreStatus.Member... members) {
        return new StoreStatus(0xabcL, 500, size, inUse, quota, false, List.of(members));
    }

    private static SpaceReport space() {
        return SpaceReport.of(KEYS, SUPER, 3,
                List.of(record(KEYS.arena("n1", 0), Arena.newBuilder().setFreeBlocks(1000).build()), record(KEYS.arena("n2", 2), Arena.newBuilder().setFreeBlocks(4096).build())),
                List.of(record(KEYS.freeArena(1), Arena.newBuilder().setFreeBlocks(4000).build())));
    }

    @Test
    void spaceCountsEveryByteOnce() {
        SpaceReport space = space();
        assertEquals(new SpaceReport.Arenas(6, 2, 1, 3), space.arenas());
        assertEquals(88 * MIB, space.totalBytes());
        // Used: what is not free of arena 0, with what is reserved for the label, and of the arena that was given back.
        assertEquals((4096 - 1000 + 96) * 4096L, space.usedBytes());
        assertEquals(space.totalBytes(), space.usedBytes() + space.freeBytes());
        assertEquals(List.of(new SpaceReport.Node("n1", 1, 4080 * 4096L, 3080 * 4096L, 1000 * 4096L), new SpaceReport.Node("n2", 1, 16 * MIB, 0, 16 * MIB)), space.nodes());
    }

    @Test
    void aHealthyFilesystem() {
        List<KeyValue> records = List.of(
                record(KEYS.membership("n1"), Membership.newBuilder().setHost("h1").setVersion("1.0").setSinceNs(2_000_000_000L).build()),
                record(KEYS.session("n1"), Session.newBuilder().setLease(0xff).build()),
                record(KEYS.generation("n1"), Generation.newBuilder().setGeneration(4).build()),
                record(KEYS.batch("n1"), BatchMarker.newBuilder().setNumber(9).build()),
                record(KEYS.generation("n2"), Generation.newBuilder().setGeneration(1).build()),
                record(KEYS.departed("n2"), Departed.newBuilder().setAtNs(3_000_000_000L).build()));
        StatusReport report = StatusReport.of(KEYS, etcd(10, 5, 100, LEADER), SUPER, records, space());
        assertEquals(List.of(), report.problems());
        assertEquals(0, report.health().exitCode());
        assertEquals("{\"schema\":1,\"health\":\"healthy\",\"problems\":[],"
                + "\"filesystem\":{\"name\":\"fs\",\"uuid\":\"00000000-0000-0000-0000-000000000000\",\"format_version\":2,\"block_size_bytes\":4096,\"created_at\":\"1970-01-01T00:00:01.500Z\"},"
                + "\"etcd\":{\"cluster_id\":\"abc\",\"revision\":500,\"db_size_bytes\":10,\"db_in_use_bytes\":5,\"quota_bytes\":100,"
                + "\"members\":[{\"endpoint\":\"a:2379\",\"member_id\":\"11\",\"version\":\"3.6.16\",\"leader\":true,\"error\":null}]},"
                + "\"nodes\":[{\"node\":\"n1\",\"state\":\"up\",\"address\":null,\"host\":\"h1\",\"instance_id\":null,\"boot_id\":null,\"version\":\"1.0\",\"since\":\"1970-01-01T00:00:02Z\","
                + "\"generation\":4,\"session\":100,\"lease\":\"ff\",\"membership_lease\":\"77\",\"last_batch\":9,\"departed_at\":null,\"vanished\":null,\"fenced\":null},"
                + "{\"node\":\"n2\",\"state\":\"departed\",\"address\":null,\"host\":null,\"instance_id\":null,\"boot_id\":null,\"version\":null,\"since\":null,"
                + "\"generation\":1,\"session\":null,\"lease\":null,\"membership_lease\":null,\"last_batch\":null,\"departed_at\":\"1970-01-01T00:00:03Z\",\"vanished\":null,\"fenced\":null}],"
                + "\"space\":{\"total_bytes\":92274688,\"used_bytes\":13074432,\"free_bytes\":79200256,\"arena_size_bytes\":16777216,"
                + "\"arenas\":{\"total\":6,\"owned\":2,\"free_pool\":1,\"unclaimed\":3},"
                + "\"nodes\":[{\"node\":\"n1\",\"arenas\":1,\"total_bytes\":16711680,\"used_bytes\":12615680,\"free_bytes\":4096000},"
                + "{\"node\":\"n2\",\"arenas\":1,\"total_bytes\":16777216,\"used_bytes\":0,\"free_bytes\":16777216}]}}", Ctl.json(report));
        assertTrue(Tables.status(report, false).startsWith("health      healthy\n"));
        assertEquals(1, Tables.status(report, false).lines().filter(l -> l.contains(" up ") || l.contains("departed")).count());
        assertTrue(Tables.status(report, false).endsWith("(1 node has left in order: --all lists it)\n"), Tables.status(report, false));
        assertTrue(Tables.status(report, true).contains("n2    departed  -"), Tables.status(report, true));
        assertTrue(!Tables.status(report, true).contains("--all"));
    }

    @Test
    void eachTroubleDegrades() {
        assertProblem("b:2379 does not answer", etcd(10, 5, 100, LEADER, DEAD), List.of());
        assertProblem("defragment", etcd(85, 5, 100, LEADER), List.of());
        assertProblem("--quota-backend-bytes", etcd(85, 80, 100, LEADER), List.of());
        assertProblem("alarm disarm", new StoreStatus(0xabcL, 500, 100, 80, 100, true, List.of(LEADER)), List.of());
        assertProblem("none of the etcd members", etcd(10, 5, 100, new StoreStatus.Member("a:2379", "3.6.16", 1, false, 0, 0, null)), List.of());
        assertProblem("was made in etcd cluster abc, this is 1", new StoreStatus(1, 5, 10, 5, 100, false, List.of(LEADER)), List.of());
        assertProblem("n3 has no session", etcd(10, 5, 100, LEADER), List.of(record(KEYS.membership("n3"), Membership.getDefaultInstance())));
        assertProblem("n3 is gone", etcd(10, 5, 100, LEADER), List.of(record(KEYS.batch("n3"), BatchMarker.getDefaultInstance())));
    }

    @Test
    void aNodeThatVanishedIsSeenUntilItIsFenced() {
        KeyValue intent = record(KEYS.fencePending("n3"), FenceIntent.newBuilder().setAtNs(5_000_000_000L).setController("n1").setHost("h3").setSession(80).setSaw("no fencer").build());
        KeyValue claim = record(KEYS.fenceClaim("n3"), FenceClaim.newBuilder().setController("n2").build());
        assertProblem("n3 vanished and is not fenced yet (no fencer)", etcd(10, 5, 100, LEADER), List.of(record(KEYS.generation("n3"), Generation.getDefaultInstance()), intent, claim));
        StatusReport.Node vanished = StatusReport.of(KEYS, etcd(10, 5, 100, LEADER), SUPER, List.of(intent, claim), space()).nodes().getFirst();
        assertEquals(StatusReport.NodeState.VANISHED, vanished.state());
        assertEquals(new StatusReport.Vanished(java.time.Instant.ofEpochSecond(5), "n1", "h3", null, 80L, null, "no fencer", "n2"), vanished.vanished());
        StatusReport after = StatusReport.of(KEYS, etcd(10, 5, 100, LEADER), SUPER, List.of(record(KEYS.generation("n3"), Generation.newBuilder().setGeneration(1).build()),
                record(KEYS.fenceDone("n3"), FenceDone.newBuilder().setAtNs(6_000_000_000L).setController("n2").setGeneration(1).setSaw("seen").build())), space());
        assertEquals(List.of(), after.problems());
        assertEquals(StatusReport.NodeState.FENCED, after.nodes().getFirst().state());
        assertEquals(new StatusReport.Fenced(java.time.Instant.ofEpochSecond(6), "n2", 1, "seen"), after.nodes().getFirst().fenced());
    }

    private static void assertProblem(String expected, StoreStatus status, List<KeyValue> records) {
        StatusReport report = StatusReport.of(KEYS, status, SUPER, records, space());
        assertEquals(1, report.health().exitCode());
        assertEquals(1, report.problems().size(), report.problems().toString());
        assertTrue(report.problems().getFirst().contains(expected), report.problems().getFirst());
        assertTrue(Tables.status(report, false).contains(report.problems().getFirst()));
    }

    @Test
    void tokensAreByResource() {
        TokensReport report = TokensReport.of(KEYS,
                List.of(record(KEYS.lockExclusive(5, "n1"), Lock.newBuilder().setSession(8).build()), record(KEYS.lockShared(16, "n2"), Lock.newBuilder().setSession(9).build())),
                List.of(record(KEYS.want(5, "n2"), Want.newBuilder().setKind(Want.Kind.EXCLUSIVE).setSession(9).build())),
                List.of(record(KEYS.owner(5), Owner.newBuilder().setNode("n1").setSession(8).setGeneration(2).setEpoch(70)
                        .addSuspects(SessionRef.newBuilder().setNode("n3").setSession(3)).build())));
        assertEquals("{\"schema\":1,\"resources\":[{\"resource\":5,\"holders\":[{\"node\":\"n1\",\"mode\":\"exclusive\",\"session\":8}],"
                + "\"waiters\":[{\"node\":\"n2\",\"kind\":\"exclusive\",\"session\":9}],"
                + "\"owner\":{\"node\":\"n1\",\"session\":8,\"generation\":2,\"epoch\":70,\"given_up\":false,\"suspects\":[{\"node\":\"n3\",\"session\":3}]}},"
                + "{\"resource\":16,\"holders\":[{\"node\":\"n2\",\"mode\":\"shared\",\"session\":9}],\"waiters\":[],\"owner\":null}]}", Ctl.json(report));
        assertEquals("""
                DIRECTORY  HELD          WANTED        LAST OWNER  EPOCH  SUSPECTS
                        5  n1:exclusive  n2:exclusive  n1             70  n3
                       16  n2:shared     -             -               -  -
                """, Tables.tokens(report));
    }

    @Test
    void fileLocksByInodeAndNode() {
        NodeLocks.Range whole = NodeLocks.Range.newBuilder().setOwner(-1).setFlock(true).setEnd(Long.MAX_VALUE).setExclusive(true).setPid(812).build();
        NodeLocks.Range some = NodeLocks.Range.newBuilder().setOwner(7).setStart(10).setEnd(19).setPid(44).build();
        LocksReport report = LocksReport.of(KEYS, List.of(
                record(KEYS.fileLocks(5, "n1"), NodeLocks.newBuilder().setAlone(true).addHeld(whole).build()),
                record(KEYS.fileLocks(16, "n2"), NodeLocks.newBuilder().addHeld(some).addWaiting(some).build())), Map.of(16L, "/d/a\nb"));
        assertEquals("{\"schema\":1,\"locks\":[{\"node\":\"n1\",\"pid\":812,\"inode\":5,\"path\":null,\"kind\":\"flock\",\"mode\":\"write\",\"start\":0,\"end\":null,\"state\":\"held\",\"exact\":false},"
                + "{\"node\":\"n2\",\"pid\":44,\"inode\":16,\"path\":\"/d/a\\nb\",\"kind\":\"fcntl\",\"mode\":\"read\",\"start\":10,\"end\":19,\"state\":\"held\",\"exact\":true},"
                + "{\"node\":\"n2\",\"pid\":44,\"inode\":16,\"path\":\"/d/a\\nb\",\"kind\":\"fcntl\",\"mode\":\"read\",\"start\":10,\"end\":19,\"state\":\"waiting\",\"exact\":true}]}", Ctl.json(report));
        assertEquals("""
                INODE  NODE  PID  KIND   MODE   START  END  STATE    PATH
                    5  n1    812  flock  write      0    -  held     -
                   16  n2     44  fcntl  read      10   19  held     /d/a?b
                   16  n2     44  fcntl  read      10   19  waiting  /d/a?b
                """, Tables.locks(report));
    }

    @Test
    void bytesForPeople() {
        assertEquals(List.of("0 B", "1023 B", "1.0 KiB", "1.5 GiB"), List.of(Table.bytes(0), Table.bytes(1023), Table.bytes(1024), Table.bytes(3L << 29)));
    }
}
