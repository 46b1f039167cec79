package io.etcfs.core.pipeline;

import io.etcfs.core.clock.Monitor;
import io.etcfs.core.clock.Tasks;
import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.fault.Rare;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.BatchMarker;
import io.etcfs.core.session.Guard;
import io.etcfs.core.session.NodeStoppedError;
import io.etcfs.core.session.Session;
import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.OpResult;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.TxnResult;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;

/**
 * The node's journal: one open batch that coalesces, then closed batches that are written in order: data to the device, a device flush, one etcd transaction.
 * So what other nodes and a crash see is always a prefix of what was done here.
 *
 * <p>Two publishers take turns, each with a batch of its own from its data to its transaction: while the transaction of one batch is on its way, the data of
 * the next goes to the device. There is one batch at a time in each of the two steps, in order.
 *
 * <p>Each transaction compares the session, the generation and the batch marker at the number before, and puts the next marker: it applies once and in
 * order. An unknown outcome is settled by sending the same transaction again until one copy committed or none can any more.
 */
public final class Pipeline {
    /** Nothing acknowledged stays unpublished longer than 50 ms; closing at 20 leaves time for the writing. */
    public static final long LINGER_NS = 20_000_000L;
    static final int MAX_CLOSED = 8;
    private static final int PUBLISHERS = 2;
    static final int MAX_BATCH_BYTES = 900_000;
    static final long MAX_DIRTY_BYTES = 16L << 20;
    private static final long TXN_TIMEOUT_NS = 2_000_000_000L;
    /** Between two tries at an etcd that is full. */
    private static final long NO_SPACE_PAUSE_NS = 200_000_000L;
    private static final System.Logger LOG = System.getLogger(Pipeline.class.getName());

    private final Monitor monitor;
    private final MetadataStore store;
    private final DeviceAccesses device;
    private final Session session;
    private final Keys keys;
    private final String node;
    private final int maxOperations;
    private final DirtyBlocks dirty = new DirtyBlocks();

    /** Publishers without a batch, those whose batch waits for the one before it to commit, and others who wait for something to be published. */
    private final Monitor.Waiters idle;
    private final Monitor.Waiters turns;
    private final Monitor.Waiters publications;

    private final ArrayDeque<Batch> closed = new ArrayDeque<>();
    private Batch open;
    private boolean started;
    /** The last batch that a publisher has taken, and whether its data is still being written. */
    private long taken;
    private boolean writing;
    private long committed;
    private long pushTo;
    /** As {@code pushTo}, for those who can wait for others of their {@link Group}. */
    private long syncTo;
    private final Group group = new Group();
    private byte[] markerBefore;
    private boolean resurrecting;
    private boolean stopping;
    private boolean refusedForSpace;
    private long batchesCommitted;
    private long operationsCommitted;
    private long blocksWritten;
    private long dataNs;
    private long transactionNs;

    public Pipeline(Monitor monitor, MetadataStore store, BlockDevice device, Session session, Keys keys, String node, int maxOperations) {
        this.monitor = monitor;
        this.store = store;
        this.device = new DeviceAccesses(monitor, device);
        this.session = session;
        this.keys = keys;
        this.node = node;
        this.maxOperations = maxOperations;
        this.idle = monitor.new Waiters();
        this.turns = monitor.new Waiters();
        this.publications = monitor.new Waiters();
        this.open = new Batch(1, 0);
    }

    /** Begins to publish; the first session is open and its marker known. */
    public void start(Tasks tasks) {
        monitor.lock();
        try {
            markerBefore = session.markerAtOpen();
            started = true;
        } finally {
            monitor.unlock();
        }
        for (int i = 1; i <= PUBLISHERS; i++) {
            tasks.startOwn("pipeline-" + i, this::publishForever);
        }
    }

    // ---- the journal, monitor held

    public long openNumber() {
        return open.number;
    }

    public long committedNumber() {
        return committed;
    }

    public DirtyBlocks dirty() {
        return dirty;
    }

    /**
     * Makes room for a change of up to {@code operations} operations, closing the open batch if need be. False: too much is waiting to be
     * published; wait for a change of the monitor and ask again.
     */
    public boolean room(int operations) {
        if (dirty.bytesInUse() > MAX_DIRTY_BYTES) {
            push(open.number);
            return false;
        }
        if (open.size() + operations <= maxOperations && open.bytesEstimate() < (Rare.SMALL_BATCHES.on() ? 2_000 : MAX_BATCH_BYTES)) {
            return true;
        }
        if (closed.size() >= MAX_CLOSED) {
            return false;
        }
        closeOpen();
        return true;
    }

    /** @param existed whether the key exists in the view before the open batch */
    public void put(Key key, Supplier<byte[]> value, boolean existed, int bytesEstimate) {
        if (open.isEmpty()) {
            reopen();
        }
        open.put(key, value, existed, bytesEstimate);
    }

    /**
     * A key without a value that belongs to giving a token on: where the session ends before the open batch has committed, nothing is given on, and the token
     * may be gone with all that was known under it. It is not published under the next one.
     */
    public void putBound(Key key, boolean existed) {
        if (open.isEmpty()) {
            reopen();
        }
        open.putBound(key, existed);
    }

    /** Runs with the monitor held when the session has ended, and the open batch has not committed and can't any more under it. */
    public void onSessionGone(Runnable action) {
        open.onSessionGone(action);
    }

    public void delete(Key key, boolean existed) {
        if (open.isEmpty()) {
            reopen();
        }
        open.delete(key, existed);
        if (open.isEmpty()) {
            publications.wake();
        }
    }

    /** The age of a batch counts from its first change. */
    private void reopen() {
        open = new Batch(open.number, monitor.nowNs());
        idle.wakeOne();
    }

    public void ride(Rider rider) {
        if (open.isEmpty()) {
            reopen();
        }
        open.ride(rider);
    }

    /** The domain has a change in the open batch. */
    public void touch(Domain domain) {
        domain.lastBatch = open.number;
        open.domains.add(domain);
    }

    /** Runs with the monitor held when the open batch has committed. */
    public void onCommitted(Runnable action) {
        if (open.isEmpty()) {
            reopen();
        }
        open.onCommitted.add(action);
    }

    public DirtyBlocks.Block dirtyForWrite(long deviceBlock) {
        if (open.isEmpty()) {
            reopen();
        }
        return dirty.forWrite(deviceBlock, open.number, open.data);
    }

    /** Batches up to this number are to be published now. */
    public void push(long number) {
        if (number > pushTo) {
            pushTo = number;
            idle.wakeOne();
        }
    }

    /** As {@link #push} for an fsync, which waits for the batch of that number: together with others who are about to. Once for each. */
    public void pushForSync(long number) {
        if (number < open.number) {
            push(number);
            for (Batch b : closed) {
                if (b.number == number) {
                    b.syncs++;
                }
            }
            return;
        }
        open.syncs++;
        syncTo = Math.max(syncTo, number);
        if (group.complete(open.syncs, monitor.nowNs())) {
            idle.wakeOne();
        }
    }

    /** The number of the last batch that has anything in it. */
    public long lastNumber() {
        return open.isEmpty() ? open.number - 1 : open.number;
    }

    /** Whether all there is up to the number has committed: changes that cancelled each other out leave an open batch with nothing in it. */
    public boolean published(long number) {
        return committed >= Math.min(number, lastNumber());
    }

    private void closeOpen() {
        group.closes(open.syncs, monitor.nowNs());
        open.close();
        closed.add(open);
        open = new Batch(open.number + 1, monitor.nowNs());
        idle.wakeOne();
    }

    /** Whether etcd said that it is full since this was asked last. */
    public boolean takeRefusedForSpace() {
        boolean refused = refusedForSpace;
        refusedForSpace = false;
        return refused;
    }

    /** Woken whenever {@link #published} may have become true. */
    public Monitor.Waiters publications() {
        return publications;
    }

    /** Domains with changes that are not published, in the order of the batches. */
    public Set<Domain> unpublishedDomains() {
        Set<Domain> domains = new LinkedHashSet<>();
        closed.forEach(b -> domains.addAll(b.domains));
        domains.addAll(open.domains);
        return domains;
    }

    /** @param dataNs the time that the data of batches took, flushes included; {@code transactionNs} that of their transactions */
    public record Counters(long batches, long operations, long blocksWritten, long dataNs, long transactionNs, int waiting) {}

    public Counters counters() {
        return new Counters(batchesCommitted, operationsCommitted, blocksWritten, dataNs, transactionNs, closed.size());
    }

    // ---- device writes outside of batches

    /** A device write returned. Monitor held. */
    public void deviceWritten() {
        device.written();
    }

    /** How many device writes have returned. Monitor held. */
    public long deviceWrites() {
        return device.writes();
    }

    /** Makes every device write that returned durable. Without the monitor. */
    public void flushDevice() throws DeviceException {
        device.flush(Long.MAX_VALUE);
    }

    /** Makes the first so many of {@link #deviceWrites} durable: others may be under way all the time. Without the monitor. */
    public void flushDevice(long writes) throws DeviceException {
        device.flush(writes);
    }

    /** Makes durable all that is in the device's cache, whoever wrote it. Without the monitor. */
    public void flushWhatOthersWrote() throws DeviceException {
        device.flushCache();
    }

    /** Monitor held. */
    public void beginDeviceAccess() {
        device.begin();
    }

    /** Monitor held. */
    public void endDeviceAccess() {
        device.end();
    }

    public void awaitDeviceQuiet() {
        device.awaitQuiet(Long.MAX_VALUE);
    }

    /** False: there is an access under way at that time. */
    public boolean awaitDeviceQuiet(long untilNs) {
        return device.awaitQuiet(untilNs);
    }

    // ---- publishing

    public void stop() {
        monitor.lock();
        try {
            stopping = true;
            monitor.everythingChanged();
        } finally {
            monitor.unlock();
        }
    }

    private void publishForever() {
        while (true) {
            Batch batch = take();
            if (batch == null || !writeData(batch) || !awaitTurn(batch)) {
                return;
            }
            publish(batch);
        }
    }

    /** The next batch, whose data is this publisher's to write. Null: the node is stopping. */
    private Batch take() {
        monitor.lock();
        try {
            while (!stopping && !ready()) {
                idle.awaitQuietly(nextLookNs());
            }
            if (stopping) {
                return null;
            }
            if (taken == open.number - 1) {
                closeOpen();
            }
            taken++;
            writing = true;
            for (Batch b : closed) {
                if (b.number == taken) {
                    return b;
                }
            }
            throw new IllegalStateException("batch " + taken + " is gone");
        } finally {
            monitor.unlock();
        }
    }

    private boolean ready() {
        if (resurrecting || writing) {
            return false;
        }
        if (taken < open.number - 1) {
            return true;
        }
        // While a transaction is on its way the open batch goes on collecting, unless it is full: those who wait have to wait for that transaction anyway,
        // and two batches cost twice as much.
        if (!closed.isEmpty() || open.isEmpty()) {
            return false;
        }
        long now = monitor.nowNs();
        return pushTo >= open.number || now >= open.openedAtNs + LINGER_NS || syncTo >= open.number && group.complete(open.syncs, now);
    }

    /** When a publisher without work looks again by itself. */
    private long nextLookNs() {
        long now = monitor.nowNs();
        if (!closed.isEmpty() || resurrecting) {
            return now + 1_000_000_000L;
        }
        long ns = open.isEmpty() ? now + 1_000_000_000L : open.openedAtNs + LINGER_NS;
        // Whoever joins the group does not wake anybody, unless he is the last.
        return group.untilNs() > now ? Math.min(ns, group.untilNs()) : ns;
    }

    /** Until the batch before has committed. False: the node is stopping. */
    private boolean awaitTurn(Batch batch) {
        monitor.lock();
        try {
            while (!stopping && committed < batch.number - 1) {
                turns.awaitQuietly(monitor.nowNs() + 1_000_000_000L);
            }
            return !stopping;
        } finally {
            monitor.unlock();
        }
    }

    private void publish(Batch batch) {
        while (true) {
            Txn txn;
            byte[] marker;
            long sessionRevision;
            long generationRevision;
            List<List<Op>> riderOps = new ArrayList<>();
            monitor.lock();
            try {
                while (resurrecting || !session.live()) {
                    if (stopping) {
                        return;
                    }
                    monitor.awaitQuietly(monitor.nowNs() + 1_000_000_000L);
                }
                if (committed >= batch.number) {
                    return;
                }
                sessionRevision = session.revision();
                generationRevision = session.generationRevision();
                marker = session.incarnationMarker(batch.number);
                Guard guard = session.guard();
                List<Compare> compares = new ArrayList<>(guard.compares());
                Key markerKey = keys.batch(node);
                if (!Fault.NO_MARKER_COMPARE.on()) {
                    compares.add(markerBefore == null ? Compare.absent(markerKey) : Compare.value(markerKey, markerBefore));
                }
                List<Op> success = new ArrayList<>(batch.operations);
                success.add(Op.put(markerKey, marker));
                for (Rider rider : batch.riders) {
                    List<Op> ops = rider.build();
                    riderOps.add(ops);
                    success.addAll(ops);
                }
                List<Op> failure = new ArrayList<>(guard.reads());
                failure.add(Op.get(markerKey));
                for (Rider rider : batch.riders) {
                    failure.addAll(rider.reads());
                }
                txn = new Txn(compares, success, failure);
            } finally {
                monitor.unlock();
            }
            if (send(batch, txn, marker, riderOps, sessionRevision, generationRevision)) {
                return;
            }
        }
    }

    /** True: committed. False: the session it was sent under is gone; build it again for the next. */
    private boolean send(Batch batch, Txn txn, byte[] marker, List<List<Op>> riderOps, long sessionRevision, long generationRevision) {
        while (true) {
            Outcome outcome;
            long sentNs = monitor.nowNs();
            try {
                outcome = store.commit(txn, TXN_TIMEOUT_NS);
            } catch (StoreRejectedException e) {
                switch (e.reason()) {
                    case NO_SPACE, UNAUTHENTICATED, LEASE_NOT_FOUND -> {
                        LOG.log(System.Logger.Level.WARNING, "etcd refuses batch {0}: {1}", batch.number, e.getMessage());
                        outcome = new Outcome.Unknown(e.getMessage(), e.reason() == StoreRejectedException.Reason.NO_SPACE);
                        monitor.pause(500_000_000L);
                    }
                    case TOO_LARGE, COMPACTED, FUTURE, INVALID -> throw new NodeStoppedError("etcd refuses batch " + batch.number + " (" + txn.success().size() + " operations): " + e.getMessage());
                    default -> throw new IllegalStateException(e);
                }
            }
            switch (outcome) {
                case Outcome.Committed(TxnResult r) -> {
                    complete(batch, marker, monitor.nowNs() - sentNs, () -> {
                        int at = batch.operations.size() + 1;
                        for (int i = 0; i < batch.riders.size(); i++) {
                            int count = riderOps.get(i).size();
                            batch.riders.get(i).committed(r.revision(), r.results().subList(at, at + count));
                            at += count;
                        }
                    });
                    return true;
                }
                case Outcome.Conflict(TxnResult r) -> {
                    KeyValue found = r.ranged(2).only();
                    if (found != null && Arrays.equals(found.value(), marker)) {
                        // The incarnation is this process's alone: an earlier copy committed, one that the network made included.
                        complete(batch, marker, monitor.nowNs() - sentNs, () -> {
                            int at = 3;
                            for (Rider rider : batch.riders) {
                                int count = rider.reads().size();
                                rider.committedEarlier(r.revision(), r.results().subList(at, at + count));
                                at += count;
                            }
                        });
                        return true;
                    }
                    if (!session.guardHeld(r, 0, sessionRevision, generationRevision)) {
                        awaitNextSession(sessionRevision);
                        return false;
                    }
                    throw new NodeStoppedError("the batch marker is not the one before batch " + batch.number + ": two processes run as node " + node);
                }
                case Outcome.Unknown(String cause, boolean noSpace) -> {
                    LOG.log(System.Logger.Level.DEBUG, "batch {0}: unknown outcome: {1}", batch.number, cause);
                    boolean sameSession = monitor.with(() -> session.live() && session.revision() == sessionRevision && !resurrecting);
                    if (!sameSession) {
                        awaitNextSession(sessionRevision);
                        return false;
                    }
                    if (noSpace) {
                        monitor.with(() -> refusedForSpace = true);
                    }
                    monitor.pause(noSpace ? NO_SPACE_PAUSE_NS : 10_000_000L);
                    if (Fault.UNKNOWN_SETTLED_BY_READ.on() && !readsAs(marker)) {
                        monitor.with(() -> batch.riders.removeIf(r -> !r.sessionLost()));
                        return false;
                    }
                }
            }
        }
    }

    /** {@link Fault#UNKNOWN_SETTLED_BY_READ}. */
    private boolean readsAs(byte[] marker) {
        try {
            KeyValue found = store.range(keys.batch(node), null, 0, false, 0, TXN_TIMEOUT_NS).only();
            return found != null && Arrays.equals(found.value(), marker);
        } catch (StoreUnavailableException | StoreRejectedException e) {
            return true;
        }
    }

    private void awaitNextSession(long sessionRevision) {
        monitor.lock();
        try {
            while (!stopping && (session.revision() == sessionRevision || !session.live() || resurrecting)) {
                monitor.awaitQuietly(monitor.nowNs() + 1_000_000_000L);
            }
        } finally {
            monitor.unlock();
        }
    }

    private void complete(Batch batch, byte[] marker, long tookNs, Runnable tellRiders) {
        monitor.lock();
        try {
            if (committed < batch.number) {
                tellRiders.run();
                transactionNs += tookNs;
                finish(batch, marker);
                int joined = open.syncs;
                for (Batch b : closed) {
                    joined += b.syncs;
                }
                group.committed(batch.syncs, joined, tookNs, monitor.nowNs());
            }
        } finally {
            monitor.unlock();
        }
    }

    private void finish(Batch batch, byte[] marker) {
        markerBefore = marker;
        committed = batch.number;
        closed.poll();
        batchesCommitted++;
        operationsCommitted += batch.operations.size();
        batch.onCommitted.forEach(Runnable::run);
        turns.wake();
        publications.wake();
        monitor.changed();
    }

    /** The batch's data, then a flush. False: the node is stopping. */
    private boolean writeData(Batch batch) {
        List<DirtyBlocks.Block> blocks = new ArrayList<>();
        long startNs;
        boolean written = false;
        do {
            blocks.clear();
            monitor.lock();
            try {
                while (!session.trusted() || resurrecting) {
                    if (stopping) {
                        return false;
                    }
                    monitor.awaitQuietly(monitor.nowNs() + 100_000_000L);
                }
                for (DirtyBlocks.Block b : batch.data) {
                    if (!b.dropped) {
                        blocks.add(b);
                    }
                }
                device.begin();
            } finally {
                monitor.unlock();
            }
            startNs = monitor.nowNs();
            try {
                // What the session's end cuts short is written again from the beginning: under the next one, if it takes that, once the tokens are back.
                written = device.write(blocks);
                if (written && !Fault.PUBLISHED_BEFORE_FLUSH.on()) {
                    device.flushRetrying();
                }
            } finally {
                monitor.lock();
                try {
                    device.end();
                } finally {
                    monitor.unlock();
                }
            }
        } while (!written);
        monitor.lock();
        try {
            // Only now: until they are on the device the bytes are read from here.
            blocksWritten += blocks.size();
            dataNs += monitor.nowNs() - startNs;
            batch.data.forEach(dirty::written);
            batch.data.clear();
            writing = false;
            idle.wakeOne();
            if (!blocks.isEmpty()) {
                monitor.changed();
            }
        } finally {
            monitor.unlock();
        }
        return true;
    }

    // ---- a lost session, monitor held

    /** Nothing is published until {@link #sessionRestored}. */
    public void sessionLost() {
        resurrecting = !Fault.PUBLISHED_BEFORE_TAKEN_BACK.on();
        monitor.changed();
    }

    /** The marker was read under the new session: no copy sent under the old one can commit any more. */
    public void settle(BatchMarker found, String incarnation) {
        if (!started) {
            // The first session was lost before anything could be published: it is the next one's marker that counts.
            return;
        }
        Batch head = closed.peek();
        if (head != null && found != null && found.getIncarnation().equals(incarnation) && found.getNumber() == head.number) {
            head.riders.forEach(Rider::committedAndLost);
            finish(head, session.incarnationMarker(head.number));
        } else if (found == null ? markerBefore != null : !Arrays.equals(found.toByteArray(), markerBefore)) {
            throw new NodeStoppedError("the batch marker is " + (found == null ? "gone" : found.getIncarnation() + " " + found.getNumber()) + " and not that of batch "
                    + (head == null ? open.number - 1 : head.number - 1) + ", after the session was gone: two processes run as node " + node);
        }
        for (Batch b : closed) {
            b.riders.removeIf(r -> !r.sessionLost());
        }
        open.riders.removeIf(r -> !r.sessionLost());
        // The latest first: each puts back what was before it.
        if (!Fault.PINS_OUTLIVE_SESSION.on()) {
            open.sessionGone();
            closed.descendingIterator().forEachRemaining(Batch::sessionGone);
        }
        publications.wake();
    }

    public void sessionRestored() {
        resurrecting = false;
        idle.wake();
        monitor.changed();
    }

    public boolean resurrecting() {
        return resurrecting;
    }
}
