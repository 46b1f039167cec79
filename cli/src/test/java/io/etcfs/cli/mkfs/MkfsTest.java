package io.etcfs.cli.mkfs;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.clock.Tasks;
import io.etcfs.core.label.Label;
import io.etcfs.core.label.LabelException;
import io.etcfs.core.label.Mkfs;
import io.etcfs.core.label.MkfsException;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Counter;
import io.etcfs.core.record.proto.Inode;
import io.etcfs.core.record.proto.Super;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.Txn;
import io.etcfs.testkit.store.FaultyStore;
import io.etcfs.testkit.store.MemoryStore;
import io.etcfs.testkit.store.MonotonicClock;
import io.etcfs.testkit.store.StoreFaults;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MkfsTest {
    private static final long SIZE = 96L << 20;
    private static final long TIMEOUT_NS = 200_000_000L;
    private static final Tasks TASKS = (name, body) -> Thread.ofVirtual().name(name).start(body);
    private static final Keys KEYS = new Keys("fs");

    @TempDir
    private Path directory;
    private final MonotonicClock clock = new MonotonicClock();
    private final MemoryStore store = new MemoryStore(clock, TASKS);
    private ImageDevice device;

    @BeforeEach
    void openDevice() throws Exception {
        device = new ImageDevice(directory.resolve("image"), SIZE);
    }

    private static Mkfs.Request request(boolean force) {
        return new Mkfs.Request("fs", "/dev/sdq", force, 0, UUID.randomUUID(), new byte[16], 1_764_500_000_000_000_000L);
    }

    private Super make(boolean force) throws MkfsException {
        return new Mkfs(store, device, TIMEOUT_NS).make(request(force));
    }

    private String refused(MetadataStore by, Mkfs.Request request) {
        String message = assertThrows(MkfsException.class, () -> new Mkfs(by, device, TIMEOUT_NS).make(request)).getMessage();
        assertTrue(!message.contains("\n"), message);
        return message;
    }

    private List<KeyValue> all() throws Exception {
        return store.range(KEYS.prefix(), KEYS.prefix().prefixEnd(), 0, false, 0, TIMEOUT_NS).keyValues();
    }

    private byte[] value(Key key) throws Exception {
        return store.range(key, null, 0, false, 0, TIMEOUT_NS).only().value();
    }

    private void put(Key key, long leaseId) throws Exception {
        assertTrue(store.commit(new Txn(List.of(), List.of(Op.put(key, new byte[] {1}, leaseId)), List.of()), TIMEOUT_NS) instanceof Outcome.Committed);
    }

    @Test
    void writesFourRecordsAndTheLabel() throws Exception {
        Super made = make(false);

        assertEquals(4, all().size());
        assertEquals(made, Super.parseFrom(value(KEYS.superblock())));
        assertEquals(store.status(TIMEOUT_NS).clusterId(), made.getEtcdClusterId());
        assertEquals(SIZE, made.getDeviceSize());
        assertEquals(16L << 20, made.getArenaSize());
        Inode root = Inode.parseFrom(value(KEYS.inode(1, 1)));
        assertEquals(List.of(040755, 2, 1L), List.of(root.getMode(), root.getNlink(), root.getParent()));
        assertEquals(made.getCreatedAtNs(), root.getMtimeNs());
        assertEquals(2, Counter.parseFrom(value(KEYS.inodeAllocCounter())).getNext());
        assertEquals(0, Counter.parseFrom(value(KEYS.arenaAllocLog())).getNext());
        Label.read(device).requireMatch(made, "x", device.sizeBytes());
        assertTrue(device.flushed(), "the label is flushed");
    }

    @Test
    void aNameInUseIsRefusedByAnyKeyAndNothingIsWritten() throws Exception {
        put(KEYS.orphan(77), 0);
        assertEquals("name fs is already in use in etcd: choose another --name, or delete it with --force", refused(store, request(false)));
        assertEquals(1, all().size());
        assertThrows(LabelException.class, () -> Label.read(device));
    }

    @Test
    void aNameThatStartsWithOursIsAnother() throws Exception {
        put(new Keys("fs2").superblock(), 0);
        make(false);
    }

    @Test
    void forceDeletesAFilesystemThatNobodyHasMounted() throws Exception {
        Super old = make(false);
        for (int ino = 2; ino < 12_000; ino += 100) {
            Op[] puts = new Op[100];
            for (int i = 0; i < 100; i++) {
                puts[i] = Op.put(KEYS.inode(1, ino + i), new byte[] {1});
            }
            store.commit(new Txn(List.of(), List.of(puts), List.of()), TIMEOUT_NS);
        }
        assertTrue(refused(store, request(false)).contains("/dev/sdq holds an EtcFS filesystem"));
        Super made = make(true);
        assertEquals(4, all().size());
        assertTrue(!old.getFilesystemUuid().equals(made.getFilesystemUuid()));
        Label.read(device).requireMatch(made, "x", SIZE);
    }

    @Test
    void forceDoesNotDeleteWhatIsMounted() throws Exception {
        for (Key alive : List.of(KEYS.session("n1"), KEYS.membership("n1"))) {
            put(KEYS.superblock(), 0);
            put(alive, store.grantLease(60, TIMEOUT_NS).leaseId());
            assertTrue(refused(store, request(true)).contains("is mounted"));
            assertEquals(2, all().size());
            store.commit(new Txn(List.of(), List.of(Op.delete(alive)), List.of()), TIMEOUT_NS);
        }
    }

    @Test
    void forceDoesNotTakeTheDeviceOfAnotherMountedFilesystem() throws Exception {
        make(false);
        put(KEYS.session("n1"), 0);
        Mkfs.Request other = new Mkfs.Request("other", "/dev/sdq", true, 0, UUID.randomUUID(), new byte[16], 1);
        assertTrue(refused(store, other).contains("belongs to filesystem 'fs', which is mounted"));
        assertEquals(0, store.range(new Keys("other").prefix(), new Keys("other").prefix().prefixEnd(), 0, true, 0, TIMEOUT_NS).count());
    }

    @Test
    void aLabelThatCannotBeWrittenLeavesNoKeys() throws Exception {
        device.failWrites();
        assertTrue(refused(store, request(false)).endsWith("nothing was left in etcd"));
        assertEquals(List.of(), all());
    }

    @Test
    void aLabelThatCannotBeWrittenLeavesTheKeysThatANodeUses() throws Exception {
        device.failWrites(() -> put(KEYS.session("n1"), 0));
        assertTrue(refused(store, request(false)).contains("still has the keys"));
        assertEquals(5, all().size());
    }

    @Test
    void badInputIsNamed() throws Exception {
        assertTrue(refused(store, new Mkfs.Request("a/b", "/dev/sdq", false, 0, UUID.randomUUID(), new byte[16], 1)).contains("--name 'a/b'"));
        for (long size : new long[] {-1, 1 << 20, (16 << 20) + 4096, 112L << 20}) {
            assertTrue(refused(store, new Mkfs.Request("fs", "/dev/sdq", false, size, UUID.randomUUID(), new byte[16], 1)).contains("--arena-size " + size));
        }
        device.close();
        device = new ImageDevice(directory.resolve("small"), (64 << 20) - 4096);
        assertTrue(refused(store, request(true)).contains("at least 67108864"));
        assertEquals(List.of(), all());
    }

    /** Plays a list of faults, one for each commit, then none. */
    private MetadataStore faulty(StoreFaults.Commit... commits) {
        Deque<StoreFaults.Commit> left = new ArrayDeque<>(List.of(commits));
        return new FaultyStore(store, new StoreFaults() {
            @Override
            public Commit onCommit(Txn txn) {
                return left.isEmpty() ? new Commit.Answered() : left.poll();
            }

            @Override
            public boolean failsOther() {
                return false;
            }

            @Override
            public Beat onBeat() {
                return Beat.ANSWERED;
            }
        }, clock, TASKS);
    }

    @Test
    void anUnknownOutcomeIsSettledByTheSameTransaction() throws Exception {
        for (StoreFaults.Commit fault : List.of(new StoreFaults.Commit.Lost(), new StoreFaults.Commit.ReplyLost())) {
            Super made = new Mkfs(faulty(fault), device, TIMEOUT_NS).make(request(true));
            assertEquals(4, all().size());
            assertArrayEquals(made.toByteArray(), value(KEYS.superblock()));
            store.commit(new Txn(List.of(), List.of(new Op.Delete(KEYS.prefix(), KEYS.prefix().prefixEnd())), List.of()), TIMEOUT_NS);
            device.wipe();
        }
    }

    @Test
    void twoAtOnceMakeOneFilesystem() throws Exception {
        try (ImageDevice second = new ImageDevice(directory.resolve("second"), SIZE)) {
            device.beforeWrite(() -> assertTrue(assertThrows(MkfsException.class, () -> new Mkfs(store, second, TIMEOUT_NS).make(request(false))).getMessage().contains("already in use")));
            make(false);
        }
    }
}
