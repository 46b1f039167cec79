package io.etcfs.core.space;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.clock.Monitor;
import io.etcfs.core.clock.Tasks;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Counter;
import io.etcfs.core.session.NodeStoppedError;
import io.etcfs.core.session.Session;
import io.etcfs.core.store.Compare;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.token.Blocked;
import java.util.ArrayList;
import java.util.List;
import java.util.random.RandomGenerator;

/**
 * New inode numbers, reserved in blocks from {@code inode_alloc_counter}. A number is never used twice; what is left of a block when the node goes is
 * lost. Under the node's monitor.
 */
public final class InodeNumbers {
    public static final int BLOCK = 1024;
    /** 1 is the root. */
    public static final long FLOOR = 2;
    static final int ATTEMPTS = 20;
    private static final int LOW = 256;
    private static final long REQUEST_NS = 2_000_000_000L;
    private static final System.Logger LOG = System.getLogger(InodeNumbers.class.getName());

    private record Block(long from, long to) {}

    private final Monitor monitor;
    private final MetadataStore store;
    private final Tasks tasks;
    private final Session session;
    private final Keys keys;
    private final RandomGenerator random;
    private long next;
    private long end;
    private Block spare;
    private boolean reserving;

    public InodeNumbers(Monitor monitor, MetadataStore store, Tasks tasks, Session session, Keys keys, RandomGenerator random) {
        this.monitor = monitor;
        this.store = store;
        this.tasks = tasks;
        this.session = session;
        this.keys = keys;
        this.random = random;
    }

    /** Makes sure that {@link #next} has a number to give. */
    public void require() {
        if (next == end && spare != null) {
            next = spare.from;
            end = spare.to;
            spare = null;
        }
        if (end - next < LOW && spare == null && !reserving) {
            reserving = true;
            tasks.start("inode-numbers", this::reserve);
        }
        if (next == end) {
            throw Blocked.INSTANCE;
        }
    }

    public long next() {
        require();
        return next++;
    }

    private void reserve() {
        Block got = null;
        try {
            for (int attempt = 0; attempt < ATTEMPTS && got == null; attempt++) {
                if (attempt > 0) {
                    long delay = Math.min(1L << attempt, 200L) * 1_000_000L;
                    monitor.clock().sleep(delay / 2 + random.nextLong(delay / 2 + 1));
                }
                got = tryReserve();
            }
            if (got == null) {
                LOG.log(System.Logger.Level.WARNING, "no inode numbers reserved after {0} attempts", ATTEMPTS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            monitor.lock();
            try {
                reserving = false;
                if (got != null) {
                    spare = got;
                }
                monitor.changed();
            } finally {
                monitor.unlock();
            }
        }
    }

    private Block tryReserve() {
        try {
            KeyValue kv = store.range(keys.inodeAllocCounter(), null, 0, false, 0, REQUEST_NS).only();
            long from = Math.max(FLOOR, kv == null ? FLOOR : Counter.parseFrom(kv.value()).getNext());
            List<Compare> compares = new ArrayList<>(monitor.with(() -> session.guard().compares()));
            compares.add(Compare.modRevision(keys.inodeAllocCounter(), kv == null ? 0 : kv.modRevision()));
            byte[] value = Counter.newBuilder().setNext(from + BLOCK).build().toByteArray();
            // An unknown outcome loses the block at worst: numbers are not scarce.
            return store.commit(new Txn(compares, List.of(Op.put(keys.inodeAllocCounter(), value)), List.of()), REQUEST_NS) instanceof Outcome.Committed ? new Block(from, from + BLOCK) : null;
        } catch (StoreUnavailableException | StoreRejectedException e) {
            LOG.log(System.Logger.Level.DEBUG, "no inode numbers: {0}", e.getMessage());
            return null;
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record " + keys.inodeAllocCounter());
        }
    }

    /** How many numbers were ever reserved, by all nodes: an upper bound of the inodes there are. Reads etcd. */
    public long upperBound() throws StoreUnavailableException, StoreRejectedException {
        KeyValue kv = store.range(keys.inodeAllocCounter(), null, 0, false, 0, REQUEST_NS).only();
        try {
            return kv == null ? 1 : Math.max(1, Counter.parseFrom(kv.value()).getNext() - 1);
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record " + keys.inodeAllocCounter());
        }
    }
}
