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
import io.etcfs.core.record.proto.Super;
import io.etcfs.core.session.StartException;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
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
    public final Super superblock;
    /** Why nodes stopped that should not have. */
    public final List<String> stopped = new CopyOnWriteArrayList<>();
    private final List<ClusterNode> nodes = new ArrayList<>();
    private int processes;

    public TestCluster(long deviceBytes) {
        store = new MemoryStore(clock, tasks);
        device = new MemoryDevice(deviceBytes);
        superblock = Super.newBuilder().setFormatVersion(1).setName(NAME).setBlockSize(BlockDevice.BLOCK_BYTES).setArenaSize(ARENA_BYTES).setDeviceSize(deviceBytes)
                .setNameHashKey(ByteString.copyFrom(new byte[16])).build();
        Keys keys = new Keys(NAME);
        Inode root = new Inode(1, 1);
        root.mode = Inode.DIRECTORY | 0755;
        root.nlink = 2;
        root.parent = 1;
        try {
            store.commit(new Txn(List.of(), List.of(Op.put(keys.superblock(), superblock.toByteArray()), Op.put(keys.inode(1, 1), root.encode()),
                    Op.put(keys.inodeAllocCounter(), Counter.newBuilder().setNext(2).build().toByteArray()), Op.put(keys.arenaAllocLog(), Counter.newBuilder().build().toByteArray())), List.of()), 1_000_000_000L);
        } catch (StoreRejectedException e) {
            throw new IllegalStateException(e);
        }
    }

    public ClusterNode start(String name) throws StartException {
        ClusterNode node = new ClusterNode(new ClusterNode.Ports(store, device, clock, tasks, new Random(processes)),
                new ClusterNode.Settings(NAME, name, name + "-" + ++processes, Membership.newBuilder().setHost(name).build(), 10_000_000_000L, 128), superblock);
        node.onStop(reason -> stopped.add(name + ": " + reason));
        node.start();
        nodes.add(node);
        return node;
    }

    @Override
    public void close() {
        nodes.forEach(n -> n.leave(2_000_000_000L));
        store.close();
    }
}
