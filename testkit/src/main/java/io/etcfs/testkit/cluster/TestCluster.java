package io.etcfs.testkit.cluster;

import com.google.protobuf.ByteString;
import io.etcfs.core.clock.Clock;
import io.etcfs.core.clock.Tasks;
import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Counter;
import io.etcfs.core.record.proto.Membership;
import io.etcfs.core.record.NameHash;
import io.etcfs.core.record.proto.Super;
import io.etcfs.core.session.StartException;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.Txn;
import io.etcfs.testkit.device.MemoryDevice;
import io.etcfs.testkit.store.MemoryStore;
import io.etcfs.testkit.store.MonotonicClock;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;

/** A filesystem of several nodes in this process. */
public final class TestCluster implements AutoCloseable {
    public static final String NAME = "test";
    private static final long ARENA_BYTES = 16L << 20;

    public final Clock clock = new MonotonicClock();
    public final Tasks tasks = (name, body) -> Thread.ofVirtual().name(name).start(body);
    public final MetadataStore store;
    public final MemoryDevice device;
    /** Of all nodes. It confirms nothing until a test says otherwise. */
    public final TestFencer fencer = new TestFencer();
    public static final byte[] NAME_HASH_KEY = new byte[NameHash.KEY_BYTES];

    public final Super superblock;
    public final long superblockCreated;
    /** Why nodes stopped that should not have, and broken invariants. */
    public final List<String> stopped = new CopyOnWriteArrayList<>();
    /** All revisions since the filesystem was made. */
    public final History history;
    private final List<ClusterNode> nodes = new ArrayList<>();
    /** How long operations of nodes that are started from now on wait before they fail, ns. */
    public long requestDeadlineNs = 10_000_000_000L;
    private int processes;
    private boolean planted;

    public TestCluster(long deviceBytes) {
        this(deviceBytes, deviceBytes);
    }

    /** @param mostBytes what the device can grow to */
    public TestCluster(long deviceBytes, long mostBytes) {
        store = new MemoryStore(clock, tasks);
        device = new MemoryDevice(deviceBytes, mostBytes);
        superblock = superblock(NAME, deviceBytes);
        Keys keys = new Keys(NAME);
        history = new History(store, keys);
        superblockCreated = format(store, superblock);
        store.watch(keys.locks(), keys.locks().prefixEnd(), 1, new Exclusion(keys, stopped::add));
    }

    /** The superblock of a filesystem for tests, with arenas of 16 MiB. */
    public static Super superblock(String name, long deviceBytes) {
        return Super.newBuilder().setFormatVersion(2).setName(name).setBlockSize(BlockDevice.BLOCK_BYTES).setArenaSize(ARENA_BYTES).setDeviceSize(deviceBytes)
                .setNameHashKey(ByteString.copyFrom(NAME_HASH_KEY)).build();
    }

    /** Makes the filesystem: all its first records. Returns the create revision of the superblock's. */
    public static long format(MetadataStore store, Super superblock) {
        Keys keys = new Keys(superblock.getName());
        Inode root = new Inode(1, 1);
        root.mode = Inode.DIRECTORY | 0755;
        root.nlink = 2;
        root.parent = 1;
        try {
            Outcome outcome = store.commit(new Txn(List.of(), List.of(Op.put(keys.superblock(), superblock.toByteArray()), Op.put(keys.inode(1, 1), root.encode()),
                    Op.put(keys.inodeAllocCounter(), Counter.newBuilder().setNext(2).build().toByteArray()), Op.put(keys.arenaAllocLog(), Counter.newBuilder().build().toByteArray())), List.of()), 1_000_000_000L);
            return ((Outcome.Committed) outcome).result().revision();
        } catch (StoreRejectedException e) {
            throw new IllegalStateException(e);
        }
    }

    public ClusterNode start(String name) throws StartException {
        return start(name, store);
    }

    /** @param way the node's own way to the shared store */
    public ClusterNode start(String name, MetadataStore way) throws StartException {
        return start(name, way, 64L << 20);
    }

    public ClusterNode start(String name, MetadataStore way, long maxCachedBytes) throws StartException {
        return start(name, way, device, maxCachedBytes);
    }

    /** @param attached the shared device, as this node has it */
    public ClusterNode start(String name, MetadataStore way, BlockDevice attached, long maxCachedBytes) throws StartException {
        ClusterNode node = make(name, way, attached, maxCachedBytes);
        node.start();
        nodes.add(node);
        return node;
    }

    /** One that has not been started, and is not counted. */
    public ClusterNode make(String name, MetadataStore way) {
        return make(name, way, device, 64L << 20);
    }

    private ClusterNode make(String name, MetadataStore way, BlockDevice attached, long maxCachedBytes) {
        ClusterNode node = new ClusterNode(new ClusterNode.Ports(way, attached, clock, tasks, new Random(processes), fencer),
                new ClusterNode.Settings(NAME, name, name + "-" + ++processes, Membership.newBuilder().setHost(name).build(), requestDeadlineNs, 128, maxCachedBytes), superblock, superblockCreated);
        node.onStop(reason -> stopped.add(name + ": " + reason));
        return node;
    }

    /** In the order in which they were started. */
    public ClusterNode node(int index) {
        return nodes.get(index);
    }

    /** The test itself puts records that nodes would not: they are not looked at in the end. */
    public void recordsArePlanted() {
        planted = true;
    }

    /** Has all nodes leave. Then {@link #stopped} says, too, if the records did not agree at some revision. */
    @Override
    public void close() {
        nodes.forEach(n -> n.leave(2_000_000_000L));
        if (!planted) {
            History.Found found = history.firstFound(History.LEFT_BY_A_CRASH);
            if (found != null) {
                stopped.add("revision " + found.revision() + ": " + found.findings());
            }
        }
        store.close();
    }
}
