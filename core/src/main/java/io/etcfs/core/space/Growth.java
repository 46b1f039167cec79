package io.etcfs.core.space;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.clock.Monitor;
import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.pipeline.Pipeline;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Counter;
import io.etcfs.core.record.proto.Super;
import io.etcfs.core.session.NodeStoppedError;
import io.etcfs.core.session.Session;
import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;

/**
 * The filesystem follows its device: when that has grown, a node that sees it raises {@code device_size} in {@code super}, and the others go by that as soon as their own
 * attachment is as large. It never shrinks.
 *
 * <p>Where the last arena was only in part on the device, its free count is raised and its bitmap corrected in the same step (blocks behind the end are marked in it): by its owner in a batch, or by whoever is first if nobody owns it. What claims an arena compares
 * {@code super}, so that none is claimed by an old size.
 */
final class Growth {
    private static final long REQUEST_NS = 2_000_000_000L;
    private static final System.Logger LOG = System.getLogger(Growth.class.getName());

    private final Monitor monitor;
    private final MetadataStore store;
    private final BlockDevice device;
    private final Session session;
    private final Pipeline pipeline;
    private final Keys keys;
    private final String node;
    private final Arenas arenas;
    private final long arenaBlocks;
    /** Our own growing is in a batch that has not committed. */
    private boolean underWay;
    private long warnedOf;

    Growth(Monitor monitor, MetadataStore store, BlockDevice device, Session session, Pipeline pipeline, Keys keys, String node, Arenas arenas, long arenaBlocks) {
        this.monitor = monitor;
        this.store = store;
        this.device = device;
        this.session = session;
        this.pipeline = pipeline;
        this.keys = keys;
        this.node = node;
        this.arenas = arenas;
        this.arenaBlocks = arenaBlocks;
    }

    /** Whether the device is larger than what is used of it: {@link #look} may have something to do. */
    boolean seen() {
        return device.sizeBytes() / BlockDevice.BLOCK_BYTES > monitor.with(arenas::deviceBlocks);
    }

    /**
     * Takes over the size that is recorded, and raises it if the device here is larger. Without the monitor.
     *
     * @return what says that the size which this node goes by is the one that is recorded; null: it can't go by that now
     */
    Compare look() throws StoreUnavailableException, StoreRejectedException {
        KeyValue record = store.range(keys.superblock(), null, 0, false, 0, REQUEST_NS).only();
        if (record == null) {
            throw new NodeStoppedError("no record " + keys.superblock());
        }
        Super superblock;
        try {
            superblock = Super.parseFrom(record.value());
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record " + keys.superblock());
        }
        long attached = device.sizeBytes() / BlockDevice.BLOCK_BYTES;
        long recorded = superblock.getDeviceSize() / BlockDevice.BLOCK_BYTES;
        if (attached < recorded) {
            if (warnedOf != recorded) {
                warnedOf = recorded;
                LOG.log(System.Logger.Level.WARNING, "the filesystem has {0} blocks, the device here only {1}: have this machine look at its size again (rescan), else what is stored behind that can't be read here",
                        Long.toString(recorded), Long.toString(attached));
            }
            return recorded == monitor.with(arenas::deviceBlocks) ? Compare.modRevision(keys.superblock(), record.modRevision()) : null;
        }
        if (!monitor.with(() -> underWay) && recorded > monitor.with(arenas::deviceBlocks)) {
            adopt(recorded);
        }
        if (attached > recorded && grow(record, superblock, recorded, attached)) {
            return null;
        }
        return recorded == monitor.with(arenas::deviceBlocks) ? Compare.modRevision(keys.superblock(), record.modRevision()) : null;
    }

    private void adopt(long blocks) {
        monitor.lock();
        try {
            long before = arenas.deviceBlocks();
            if (blocks > before) {
                arenas.grow(blocks);
                LOG.log(System.Logger.Level.INFO, "the filesystem has grown from {0} to {1} blocks", Long.toString(before), Long.toString(blocks));
                monitor.changed();
            }
        } finally {
            monitor.unlock();
        }
    }

    /** Whether the size is being raised, by us or by somebody who was faster. */
    private boolean grow(KeyValue record, Super superblock, long recorded, long attached) throws StoreUnavailableException, StoreRejectedException {
        byte[] larger = superblock.toBuilder().setDeviceSize(attached * BlockDevice.BLOCK_BYTES).build().toByteArray();
        long last = (recorded - 1) / arenaBlocks;
        List<Compare> compares = new ArrayList<>();
        List<Op> ops = new ArrayList<>(List.of(Op.put(keys.superblock(), larger)));
        compares.add(Compare.modRevision(keys.superblock(), record.modRevision()));
        // Read once: what is decided by it and what is compared is the same.
        KeyValue log = store.range(keys.arenaAllocLog(), null, 0, false, 0, REQUEST_NS).only();
        if (!Fault.GROWN_AS_READ.on()) {
            compares.add(Compare.modRevision(keys.arenaAllocLog(), log == null ? 0 : log.modRevision()));
        }
        if (recorded % arenaBlocks != 0) {
            if (monitor.with(() -> arenas.get(last) != null)) {
                return growOurs(last, larger, recorded, attached);
            }
            Key pool = keys.freeArena(last);
            KeyValue free = store.range(pool, null, 0, false, 0, REQUEST_NS).only();
            if (free != null) {
                compares.add(Compare.modRevision(pool, free.modRevision()));
                long end = Math.min((last + 1) * arenaBlocks, attached);
                ops.add(Op.put(pool, enlarged(free, end - recorded)));
                Key segment = keys.blocks(last, segmentAt(last, recorded));
                KeyValue bitmap = store.range(segment, null, 0, false, 0, REQUEST_NS).only();
                if (bitmap != null) {
                    compares.add(Compare.modRevision(segment, bitmap.modRevision()));
                    ops.add(Op.put(segment, withoutMarks(bitmap.value(), recorded, end)));
                }
            } else if (nextUnclaimed(log) > last) {
                // Its owner does it.
                return false;
            }
        }
        List<Compare> guard = monitor.with(() -> session.live() ? session.guard().compares() : null);
        if (guard == null) {
            return false;
        }
        compares.addAll(guard);
        if (store.commit(new Txn(compares, ops, List.of()), REQUEST_NS) instanceof Outcome.Committed) {
            adopt(attached);
        }
        return true;
    }

    private static long nextUnclaimed(KeyValue log) {
        try {
            return log == null ? 0 : Counter.parseFrom(log.value()).getNext();
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record " + log.key());
        }
    }

    private static byte[] enlarged(KeyValue arena, long blocks) {
        try {
            var record = io.etcfs.core.record.proto.Arena.parseFrom(arena.value());
            return record.toBuilder().setFreeBlocks((int) (record.getFreeBlocks() + blocks)).build().toByteArray();
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record " + arena.key());
        }
    }

    /** The segment that has the old end. It alone can have marks of blocks behind it: those after it were never recorded. */
    private int segmentAt(long arena, long end) {
        return (int) ((end - arena * arenaBlocks) / Arena.SEGMENT_BLOCKS);
    }

    private byte[] withoutMarks(byte[] bitmap, long from, long to) {
        BitSet marks = BitSet.valueOf(bitmap);
        int first = (int) (from % Arena.SEGMENT_BLOCKS);
        marks.clear(first, (int) Math.min(Arena.SEGMENT_BLOCKS, first + to - from));
        return Arrays.copyOf(marks.toByteArray(), Arena.SEGMENT_BYTES);
    }

    /** The last arena is ours: nobody else raises the size, and its free count goes with it. */
    private boolean growOurs(long last, byte[] larger, long recorded, long attached) {
        monitor.lock();
        try {
            Arena arena = arenas.get(last);
            if (arenas.deviceBlocks() != recorded) {
                // Others have had the arena since that was read, and raised the size.
                return underWay;
            }
            if (underWay || arena == null || arena.isClosed() || !session.trusted() || pipeline.resurrecting() || !pipeline.room(3)) {
                return underWay;
            }
            underWay = true;
            arena.grow((int) Math.min(arenaBlocks, attached - arena.firstBlock()));
            pipeline.put(keys.superblock(), () -> larger, true, larger.length);
            pipeline.put(keys.arena(node, last), arena::record, true, 40);
            int segment = segmentAt(last, recorded);
            pipeline.put(keys.blocks(last, segment), () -> arena.journalSegment(segment), true, Arena.SEGMENT_BYTES + 40);
            pipeline.onCommitted(() -> {
                underWay = false;
                adopt(attached);
            });
            pipeline.push(pipeline.lastNumber());
            monitor.changed();
            return true;
        } finally {
            monitor.unlock();
        }
    }
}
