package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.check.Checker;
import io.etcfs.core.check.Finding;
import io.etcfs.core.check.Kind;
import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.NameHash;
import io.etcfs.core.record.proto.Arena;
import io.etcfs.core.record.proto.BatchMarker;
import io.etcfs.core.record.proto.Counter;
import io.etcfs.core.record.proto.Departed;
import io.etcfs.core.record.proto.Dirent;
import io.etcfs.core.record.proto.Extent;
import io.etcfs.core.record.proto.ExtentRange;
import io.etcfs.core.record.proto.FenceDone;
import io.etcfs.core.record.proto.FenceIntent;
import io.etcfs.core.record.proto.FileType;
import io.etcfs.core.record.proto.Inode;
import io.etcfs.core.record.proto.Lock;
import io.etcfs.core.record.proto.Membership;
import io.etcfs.core.record.proto.NodeLocks;
import io.etcfs.core.record.proto.Orphan;
import io.etcfs.core.record.proto.Owner;
import io.etcfs.core.record.proto.Remainder;
import io.etcfs.core.record.proto.Unfree;
import io.etcfs.core.record.proto.Want;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Each kind of damage, planted in the records of a cluster that has worked for a while, is found, and nothing else is. */
class PlantedDamageTest {
    private static final long WAIT_NS = 10_000_000_000L;
    private static final NameHash HASH = new NameHash(new byte[NameHash.KEY_BYTES]);

    private static Records clean;
    private static Keys keys;
    /** Inode numbers. {@code dirA} has {@code plain}, {@code file} (two names, a large attribute), {@code link}, {@code sub}; that has {@code deep}; {@code dirB} has {@code many}. */
    private static long dirA;
    private static long dirB;
    private static long sub;
    private static long deep;
    private static long plain;
    private static long file;
    private static long link;
    private static long many;
    private static long orphan;

    private Records records;

    private static Call call() {
        return new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
    }

    @BeforeAll
    static void work() throws Exception {
        TestCluster cluster = new TestCluster(256L << 20);
        ClusterNode n1 = cluster.start("n1");
        ClusterNode n2 = cluster.start("n2");
        TestClient a = new TestClient(n1);
        TestClient b = new TestClient(n2);
        for (String dir : List.of("/a", "/b", "/c", "/a/sub", "/a/sub/deep")) {
            a.mkdir(dir);
        }
        new Workload(n1, new Random(1)).run(150);
        new Workload(n2, new Random(2)).run(150);
        a.write("/a/plain", 0, new byte[5_000], 0);
        a.write("/a/file", 0, new byte[12_000], 0);
        a.link("/a/file", "/a/second");
        for (int i = 0; i < 40; i++) {
            b.write("/b/many", 8_192L * (i < 20 ? i : 8192 + i), new byte[4_096], 0);
        }
        dirA = a.stat("/a").ino();
        dirB = a.stat("/b").ino();
        sub = a.stat("/a/sub").ino();
        deep = a.stat("/a/sub/deep").ino();
        plain = a.stat("/a/plain").ino();
        file = a.stat("/a/file").ino();
        many = b.stat("/b/many").ino();
        link = n1.symlink(call(), n1.lookup(call(), 1, "a".getBytes()).ino(), "link".getBytes(), "plain".getBytes()).ino();
        n1.lookup(call(), dirA, "file".getBytes());
        n1.setxattr(call(), file, "user.large".getBytes(), new byte[5_000], 0);
        a.write("/a/gone", 0, new byte[5_000], 0);
        orphan = n1.lookup(call(), dirA, "gone".getBytes()).ino();
        n1.open(call(), orphan, 2, false);
        a.unlink("/a/gone");
        cluster.start("n3").leave(WAIT_NS);
        // n1 holds X of /a, both nodes S of /b.
        // Who has just changed a directory would take X to look at it.
        Thread.sleep(1_100);
        a.list("/b");
        b.list("/b");
        a.write("/a/plain", 0, new byte[1], 0);
        n1.sync(WAIT_NS);
        n2.sync(WAIT_NS);
        keys = new Keys(TestCluster.NAME);
        var all = cluster.store.range(keys.prefix(), keys.prefix().prefixEnd(), 0, false, 0, WAIT_NS);
        clean = new Records(keys, all.revision(), all.keyValues());
        cluster.recordsArePlanted();
        cluster.close();
    }

    @Test
    void nothingIsFoundBefore() {
        assertEquals(List.of(), clean.check());
    }

    @ParameterizedTest
    @EnumSource
    void eachKindIsFound(Kind kind) throws Exception {
        records = clean.copy();
        // What breaks along with it, inevitably.
        Set<Kind> expected = new TreeSet<>(plant(kind));
        expected.add(kind);
        List<Finding> found = records.check();
        assertEquals(expected, found.stream().map(Finding::kind).collect(Collectors.toCollection(TreeSet::new)), found::toString);
        for (Finding f : found) {
            assertFalse(f.keys().isEmpty() || f.what().isEmpty(), f::toString);
        }
    }

    private Set<Kind> plant(Kind kind) throws Exception {
        switch (kind) {
            case NO_SUPERBLOCK -> records.delete(keys.superblock());
            case UNKNOWN_KEY -> records.put(keys.prefix().plus("mystery:1"), new byte[0]);
            case UNREADABLE_RECORD -> records.put(keys.departed("n3"), new byte[] {(byte) 0xff});
            case NO_COUNTER -> records.delete(keys.inodeAllocCounter());
            case NO_ROOT -> {
                records.delete(keys.inode(1, 1));
                return Set.of(Kind.DIRENT_WITHOUT_DIRECTORY);
            }
            case DIRENT_WITHOUT_DIRECTORY -> {
                name(999_999, "name", plain, FileType.REGULAR, dirA);
                inode(dirA, plain, i -> i.setNlink(2));
            }
            case DIRENT_WITHOUT_INODE -> name(dirA, "name", 999_999, FileType.REGULAR, dirA);
            case DIRENT_TYPE -> records.change(dirent(dirA, "plain"), Dirent.newBuilder(), d -> d.setType(FileType.FIFO));
            case DIRENT_NAME -> {
                name(dirA, "..", plain, FileType.REGULAR, dirA);
                inode(dirA, plain, i -> i.setNlink(2));
            }
            case DIRENT_HASH -> {
                records.put(keys.dirent(dirA, 3, bytes("plain")), records.get(dirent(dirA, "plain")).value());
                records.delete(dirent(dirA, "plain"));
            }
            case DIRENT_HASH_TWICE -> {
                records.put(keys.dirent(dirA, HASH.hash63(bytes("plain")), bytes("other")), records.get(dirent(dirA, "plain")).value());
                inode(dirA, plain, i -> i.setNlink(2));
                return Set.of(Kind.DIRENT_HASH);
            }
            case DIRECTORY_NAMES -> {
                records.delete(dirent(sub, "deep"));
                inode(sub, sub, i -> i.setNlink(2));
            }
            case DIRECTORY_PARENT -> inode(deep, deep, i -> i.setParent(dirA));
            case DIRECTORY_CYCLE -> {
                records.delete(dirent(dirA, "sub"));
                inode(dirA, dirA, i -> i.setNlink(i.getNlink() - 1));
                name(deep, "sub", sub, FileType.DIRECTORY, sub);
                inode(deep, deep, i -> i.setNlink(3));
                inode(sub, sub, i -> i.setParent(deep));
            }
            case LINK_COUNT -> inode(dirA, file, i -> i.setNlink(3));
            case INODE_TWICE -> records.put(keys.inode(dirB, link), records.get(keys.inode(dirA, link)).value());
            case INODE_HOME -> {
                records.put(keys.inode(link, link), records.get(keys.inode(dirA, link)).value());
                records.delete(keys.inode(dirA, link));
                records.change(dirent(dirA, "link"), Dirent.newBuilder(), d -> d.setHome(link));
                records.put(keys.owner(link), records.get(keys.owner(dirB)).value());
            }
            case INODE_NUMBER -> records.put(keys.inodeAllocCounter(), Counter.newBuilder().setNext(many));
            case INODE_FIELDS -> inode(dirA, link, i -> i.clearSymlinkTarget());
            case INODE_SIZE -> inode(dirA, plain, i -> i.setValid(i.getSize() + 1));
            case NAMELESS -> records.delete(dirent(dirA, "plain"));
            case ORPHAN -> records.put(keys.orphan(plain), Orphan.newBuilder().setHome(dirA));
            case ORPHAN_UNPINNED -> {
                records.delete(keys.open(dirA, orphan, "n1"));
                records.delete(keys.opened("n1", dirA, orphan));
            }
            case ORPHAN_WAITS -> {
                plant(Kind.ORPHAN_UNPINNED);
                open(dirA, orphan, "n9");
                return Set.of(Kind.NODE_GONE);
            }
            case REMAINDER -> records.put(keys.remainder(dirA, plain), Remainder.newBuilder().setDeadFrom(7));
            case XATTR_MISSING -> records.delete(keys.xattr(file, bytes("user.large")));
            case XATTR_UNLISTED -> records.put(keys.xattr(file, bytes("user.other")), new byte[9]);
            case OPEN_UNPAIRED -> records.delete(keys.opened("n1", dirA, orphan));
            case OPEN_WITHOUT_INODE -> open(dirA, 999_999, "n2");
            case EXTENTS_OVERLAP -> records.change(keys.extents(many, 0), ExtentRange.newBuilder(), r -> r.addExtents(r.getExtents(0)).removeExtents(0));
            case EXTENT_RECORD -> inode(dirB, many, i -> i.setFlags(0));
            case EXTENT_OUTSIDE -> {
                inode(dirA, plain, i -> i.getExtentsBuilder(0).setDeviceBlock(1 << 16));
                return Set.of(Kind.BLOCK_LEAKED);
            }
            case EXTENT_EPOCH -> inode(dirA, plain, i -> i.getExtentsBuilder(0).setEpoch(records.revision));
            case BLOCK_COUNT -> inode(dirB, many, i -> i.setBlocks(39));
            case BLOCK_TWICE -> records.put(keys.unfree(arenaOf(plain), "n2", 1), unfree(extent(dirA, plain).getDeviceBlock(), 1));
            case BLOCK_NOT_ALLOCATED -> {
                flip(extent(dirA, plain).getDeviceBlock());
                freeBlocks(arenaOf(plain), 1);
            }
            case BLOCK_LEAKED -> {
                flip(arenaOf(plain) * 4096 + 4095);
                freeBlocks(arenaOf(plain), -1);
            }
            case ARENA_TWICE -> records.put(keys.freeArena(arenaOf(plain)), records.get(arenaKey(arenaOf(plain))).value());
            case ARENA_MISSING -> records.delete(arenaKey(arenaOf(plain)));
            case ARENA_UNKNOWN -> records.put(keys.blocks(99, 0), new byte[512]);
            case ARENA_FREE_COUNT -> freeBlocks(arenaOf(plain), 1);
            case UNFREE_OUTSIDE -> records.put(keys.unfree(0, "n2", 1), unfree(5 * 4096, 1));
            case EXCLUSIVE_NOT_ALONE -> lock(keys.lockShared(dirA, "n2"), "n2");
            case FILE_LOCK_CONFLICT -> {
                fileLocks("n1", NodeLocks.newBuilder().addHeld(range(0, 9, true)));
                fileLocks("n2", NodeLocks.newBuilder().addHeld(range(9, 9, false)));
            }
            case FILE_LOCK_RANGE -> fileLocks("n1", NodeLocks.newBuilder().addHeld(range(0, 9, true)).addHeld(range(9, 10, false)));
            case FILE_LOCK_WITHOUT_SESSION -> records.put(keys.fileLocks(file, "n1"), NodeLocks.newBuilder().setSession(1).setAlone(true));
            case TOKEN_WITHOUT_SESSION -> records.put(keys.want(dirA, "n2"), Want.newBuilder().setKind(Want.Kind.SHARED).setSession(1));
            case TOKEN_WITHOUT_OWNER -> records.change(keys.owner(dirA), Owner.newBuilder(), o -> o.setGivenUp(true));
            case SHARED_WITH_OWNER -> records.change(keys.owner(dirB), Owner.newBuilder(), o -> o.setNode("n3").setSession(3).setGivenUp(false));
            case OWNER_WITHOUT_TOKEN -> records.delete(keys.lockExclusive(dirA, "n1"));
            case OWNER_FIELDS -> records.change(keys.owner(dirB), Owner.newBuilder(), o -> o.setEpoch(records.revision + 1));
            case OWNER_MISSING -> {
                records.deleteIf(kv -> kv.key().startsWith(keys.locksOf(deep)));
                records.delete(keys.owner(deep));
            }
            case OWNER_LEFT -> records.put(keys.owner(999_999), records.get(keys.owner(dirB)).value());
            case NODE_LEASE -> records.put(keys.membership("n1"), records.get(keys.membership("n1")).value(), 0);
            case NODE_GENERATION -> records.change(keys.membership("n1"), Membership.newBuilder(), m -> m.setGeneration(4));
            case NODE_DEPARTED -> records.put(keys.departed("n1"), Departed.newBuilder().setAtNs(1));
            case NODE_FENCED -> records.put(keys.fenceDone("n3"), FenceDone.newBuilder().setIntent(2));
            case FENCE_INTENT -> {
                records.put(keys.fencePending("n1"), FenceIntent.newBuilder().setAtNs(1));
                return Set.of(Kind.NODE_VANISHED);
            }
            case NODE_VANISHED -> records.put(keys.fencePending("n3"), FenceIntent.newBuilder().setAtNs(1));
            case BATCH_MARKER -> records.put(keys.batch("n1"), BatchMarker.newBuilder().setNumber(4));
            case NODE_GONE -> {
                long lease = records.get(keys.session("n1")).leaseId();
                records.deleteIf(kv -> kv.leaseId() == lease);
                return Set.of(Kind.ORPHAN_WAITS);
            }
        }
        return Set.of();
    }

    // ---- planting

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static Key dirent(long dir, String name) {
        return keys.dirent(dir, HASH.hash63(bytes(name)), bytes(name));
    }

    private void name(long dir, String name, long ino, FileType type, long home) {
        records.put(dirent(dir, name), Dirent.newBuilder().setInode(ino).setType(type).setHome(home));
    }

    private void inode(long home, long ino, Consumer<Inode.Builder> change) throws Exception {
        records.change(keys.inode(home, ino), Inode.newBuilder(), change);
    }

    private void open(long home, long ino, String node) {
        records.put(keys.open(home, ino, node), new byte[0]);
        records.put(keys.opened(node, home, ino), new byte[0]);
    }

    private void lock(Key key, String node) {
        KeyValue session = records.get(keys.session(node));
        records.put(key, Lock.newBuilder().setSession(session.createRevision()).build().toByteArray(), session.leaseId());
    }

    private Extent extent(long home, long ino) throws Exception {
        return Inode.parseFrom(records.get(keys.inode(home, ino)).value()).getExtents(0);
    }

    private long arenaOf(long ino) throws Exception {
        return extent(dirA, ino).getDeviceBlock() / 4096;
    }

    private static Unfree.Builder unfree(long block, int length) {
        return Unfree.newBuilder().addRuns(Unfree.Run.newBuilder().setDeviceBlock(block).setLength(length));
    }

    private void fileLocks(String node, NodeLocks.Builder locks) {
        KeyValue session = records.get(keys.session(node));
        records.put(keys.fileLocks(file, node), locks.setSession(session.createRevision()).build().toByteArray(), session.leaseId());
    }

    private static NodeLocks.Range range(long start, long end, boolean exclusive) {
        return NodeLocks.Range.newBuilder().setOwner(7).setStart(start).setEnd(end).setExclusive(exclusive).build();
    }

    @Test
    void aNodeThatDecidesAloneWhileAnotherHasLocks() {
        records = clean.copy();
        fileLocks("n1", NodeLocks.newBuilder().setAlone(true));
        fileLocks("n2", NodeLocks.newBuilder().addWaiting(range(0, 9, true)));
        assertEquals(List.of(), records.check(), "it has asked");
        fileLocks("n2", NodeLocks.newBuilder().addHeld(range(0, 9, false)));
        assertFound(Kind.FILE_LOCK_CONFLICT, "decides alone");
    }

    private void flip(long block) {
        Key key = keys.blocks(block / 4096, 0);
        byte[] bitmap = records.get(key).value().clone();
        bitmap[(int) (block % 4096 / 8)] ^= (byte) (1 << block % 8);
        records.put(key, bitmap);
    }

    private Key arenaKey(long id) {
        return records.first(keys.arenas(), kv -> keys.parseArena(kv.key()).id() == id).key();
    }

    private void freeBlocks(long arena, int more) throws Exception {
        records.change(arenaKey(arena), Arena.newBuilder(), r -> r.setFreeBlocks(r.getFreeBlocks() + more));
    }

    // ---- the same kinds, in other places

    private void assertFound(Kind kind, String part) {
        List<Finding> found = records.check();
        assertTrue(found.stream().anyMatch(f -> f.kind() == kind && f.toString().contains(part)), () -> "no " + kind + " with '" + part + "': " + found);
    }

    @Test
    void twoFilesWithOneBlock() throws Exception {
        records = clean.copy();
        long block = extent(dirA, plain).getDeviceBlock();
        inode(dirA, file, i -> i.getExtentsBuilder(0).setDeviceBlock(block));
        assertFound(Kind.BLOCK_TWICE, "inode " + file + " at its block 0");
        assertFound(Kind.BLOCK_TWICE, keys.inode(dirA, plain).toString());
    }

    @Test
    void anExtentThatLeavesItsRecordsRange() throws Exception {
        records = clean.copy();
        records.change(keys.extents(many, 0), ExtentRange.newBuilder(), r -> r.getExtentsBuilder(r.getExtentsCount() - 1).setLength(9_000));
        assertFound(Kind.EXTENTS_OVERLAP, keys.extents(many, 0).toString());
    }

    @Test
    void anExtentInAnArenaThatNobodyClaimed() throws Exception {
        records = clean.copy();
        inode(dirA, plain, i -> i.getExtentsBuilder(0).setDeviceBlock(15 * 4096));
        assertFound(Kind.EXTENT_OUTSIDE, "nobody has claimed");
    }

    @Test
    void anExtentOnTheLabel() throws Exception {
        records = clean.copy();
        inode(dirA, plain, i -> i.getExtentsBuilder(0).setDeviceBlock(0));
        assertFound(Kind.EXTENT_OUTSIDE, "[0, 2)");
        records = clean.copy();
        inode(dirA, plain, i -> i.getExtentsBuilder(0).setDeviceBlock(15));
        assertFound(Kind.EXTENT_OUTSIDE, "[15, 17)");
    }

    @Test
    void extentRecordsOfAnInodeThatIsGone() {
        records = clean.copy();
        records.put(keys.extents(999_999, 1), records.get(keys.extents(many, 0)).value());
        assertFound(Kind.EXTENT_RECORD, "no inode 999999");
    }

    @Test
    void aTruncationThatIsBeingWorkedOffIsNoDamage() throws Exception {
        records = clean.copy();
        inode(dirB, many, i -> i.setSize(8_192).setValid(8_192).setDeadFrom(2 + 1));
        records.put(keys.remainder(dirB, many), Remainder.newBuilder().setDeadFrom(2));
        assertEquals(List.of(), records.check());
        inode(dirB, many, i -> i.setSize(8_193).setValid(8_193));
        assertFound(Kind.INODE_SIZE, "beyond block 2");
        records.delete(keys.remainder(dirB, many));
        assertFound(Kind.REMAINDER, "no remainder");
    }

    @Test
    void blocksThatWaitForTheirArenasOwnerAreNoDamage() throws Exception {
        records = clean.copy();
        Extent tail = extent(dirA, file);
        long last = tail.getDeviceBlock() + tail.getLength() - 1;
        inode(dirA, file, i -> {
            i.getExtentsBuilder(0).setLength(tail.getLength() - 1);
            i.setBlocks(i.getBlocks() - 1);
        });
        assertEquals(List.of(Kind.BLOCK_LEAKED), records.check().stream().map(Finding::kind).toList());
        records.put(keys.unfree(last / 4096, "n2", 1), unfree(last, 1));
        assertEquals(List.of(), records.check());
    }

    @Test
    void theTokenOfAnotherSession() throws Exception {
        records = clean.copy();
        records.put(keys.lockExclusive(dirA, "n1"), Lock.newBuilder().setSession(2).build().toByteArray(), records.get(keys.session("n1")).leaseId());
        assertFound(Kind.TOKEN_WITHOUT_SESSION, "session 2 of n1 is gone");
        records = clean.copy();
        records.put(keys.lockExclusive(dirA, "n1"), records.get(keys.lockExclusive(dirA, "n1")).value(), 77);
        assertFound(Kind.TOKEN_WITHOUT_SESSION, "on lease 4d");
    }

    @Test
    void xWithoutAnOwnerRecord() {
        records = clean.copy();
        records.delete(keys.owner(dirA));
        assertFound(Kind.TOKEN_WITHOUT_OWNER, "no owner record");
        assertFound(Kind.OWNER_MISSING, "domain " + dirA);
    }

    @Test
    void arenasOfADepartedNode() throws Exception {
        records = clean.copy();
        records.put(keys.arena("n3", arenaOf(plain)), records.get(arenaKey(arenaOf(plain))).value());
        assertFound(Kind.ARENA_TWICE, "two places");
        assertFound(Kind.NODE_DEPARTED, "n3 departed");
    }

    @Test
    void aDirectoryInItself() throws Exception {
        records = clean.copy();
        records.delete(dirent(sub, "deep"));
        name(deep, "deep", deep, FileType.DIRECTORY, deep);
        assertFound(Kind.DIRECTORY_CYCLE, "in itself");
    }

    /** However much is found of one kind, it is not all told, and the rest is counted. */
    @Test
    void veryMuchDamageIsCut() {
        records = clean.copy();
        for (int i = 0; i < 1_500; i++) {
            records.put(keys.prefix().plus("what" + i), new byte[0]);
        }
        assertEquals(1_000, records.check().size());
        assertEquals(500, records.report().omitted());
        assertTrue(records.report().damaged());
    }

    @Test
    void keysOutOfOrderAreRefused() {
        Checker checker = new Checker(keys, clean.get(keys.superblock()), clean.revision);
        checker.accept(clean.get(keys.superblock()));
        assertThrows(IllegalArgumentException.class, () -> checker.accept(clean.get(keys.inode(1, 1))));
    }
}
