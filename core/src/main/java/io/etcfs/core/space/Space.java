package io.etcfs.core.space;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.clock.Monitor;
import io.etcfs.core.clock.Tasks;
import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.file.Extent;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.pipeline.Pipeline;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Counter;
import io.etcfs.core.record.proto.SessionRef;
import io.etcfs.core.record.proto.Unfree;
import io.etcfs.core.session.EndedSessions;
import io.etcfs.core.session.NodeStoppedError;
import io.etcfs.core.session.Session;
import io.etcfs.core.session.StartException;
import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.RangeResult;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreRoom;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.Watch;
import io.etcfs.core.store.WatchEvent;
import io.etcfs.core.store.WatchListener;
import io.etcfs.core.token.Blocked;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.BooleanSupplier;

/**
 * The device's space as this node has it: the arenas it owns, claimed when a write needs one; allocation; freeing, by itself in its own arenas and through
 * {@code unfree:} records in others'.
 *
 * <p>Allocation is exact: a bitmap goes out in the batch that publishes the extent. A freed block is handed out again only after the batch that freed it
 * committed.
 */
public final class Space {
    private static final long REQUEST_NS = 2_000_000_000L;
    private static final long SWEEP_NS = 10_000_000_000L;
    /** Between two sweeps as long as the first one took, but no longer than that. */
    private static final long SWEPT_AGAIN_NS = 500_000_000L;
    private static final int UNFREES_AT_ONCE = 500;
    /** What a record takes at most: some suspects, and each run. */
    private static final int UNFREE_BYTES = 200;
    private static final int UNFREE_RUN_BYTES = 12;
    private static final int FOREIGN_UNFREES_AT_ONCE = 2_000;
    /** After a claim found nothing, it is asked again no sooner than this, unless something was freed. */
    private static final long FULL_NS = 100_000_000L;
    /** What another node has freed is published by then. */
    private static final long PUBLISHED_NS = 50_000_000L;
    /** How long the freeing of files and ends of files that is under way here is waited for before it is said that there is no room. */
    private static final long FREEING_NS = 2_000_000_000L;
    private static final long LOOK_NS = 10_000_000L;
    /** Who waits for room has looked again by then. */
    private static final long USED_NS = 200_000_000L;
    private static final System.Logger LOG = System.getLogger(Space.class.getName());

    private final Monitor monitor;
    private final MetadataStore store;
    private final Tasks tasks;
    private final Session session;
    private final Pipeline pipeline;
    private final Keys keys;
    private final String node;
    private final EndedSessions endedSessions;
    private final Arenas arenas;
    private final ArenaWants wants;
    private final Growth growth;
    private final long arenaBlocks;
    /** Records that are in a batch which is not committed, and those whose batch committed since the sweeper began to read: it may still see them. */
    private final Set<Key> unfreeing = new HashSet<>();
    private final Set<Key> unfreed = new HashSet<>();
    private final Map<Long, Unfree.Builder> unfreeOfBatch = new TreeMap<>();
    private long unfreeBatch;
    private long unfreeSequence;
    private long unfreeKeySequence;
    private boolean claiming;
    private BooleanSupplier freeing = () -> false;
    /** When the last sweep that has ended began. */
    private long sweptNs = Long.MIN_VALUE / 2;
    private long fullUntilNs = Long.MIN_VALUE / 2;
    private long releasesPending;
    private boolean sweepWanted;
    private final Monitor.Waiters sweeper;
    private boolean leaving;
    private boolean stopping;
    private StoreRoom storeRoom = StoreRoom.ENOUGH;
    private Watch watch;

    public Space(Monitor monitor, MetadataStore store, BlockDevice device, Tasks tasks, Session session, Pipeline pipeline, Keys keys, String node, long arenaBlocks, long deviceBlocks) {
        this.monitor = monitor;
        this.store = store;
        this.tasks = tasks;
        this.session = session;
        this.pipeline = pipeline;
        this.keys = keys;
        this.node = node;
        this.arenaBlocks = arenaBlocks;
        this.endedSessions = new EndedSessions(store, keys);
        this.arenas = new Arenas(arenaBlocks, deviceBlocks);
        this.wants = new ArenaWants(monitor, store, session, pipeline, keys, node, arenas);
        this.growth = new Growth(monitor, store, device, session, pipeline, keys, node, arenas, arenaBlocks);
        this.sweeper = monitor.new Waiters();
    }

    /** Reads the bitmaps of the arenas that this node still owns. */
    public void start() throws StartException {
        // Sessions follow one another: so no key of an earlier process is put again, whatever its clock said.
        unfreeSequence = monitor.with(session::revision) << 20;
        try {
            loadOwnArenas();
        } catch (StoreUnavailableException | StoreRejectedException e) {
            throw new StartException("the arenas can't be read from etcd: " + e.getMessage());
        }
        watch = store.watch(keys.unfrees(), keys.unfrees().prefixEnd(), 0, new WatchListener() {
            @Override
            public void changed(long revision, List<WatchEvent> events) {
                for (WatchEvent e : events) {
                    if (e.kind() == WatchEvent.Kind.PUT) {
                        wantSweep(keys.parseUnfree(e.keyValue().key()).arena());
                    }
                }
            }

            @Override
            public void resynced(long revision) {
                wantSweep(-1);
            }
        });
        tasks.start("unfree", this::sweepForever);
        wants.start(tasks);
    }

    public void stop() {
        monitor.lock();
        try {
            stopping = true;
            wants.stop();
            sweeper.wake();
            monitor.changed();
        } finally {
            monitor.unlock();
        }
        if (watch != null) {
            watch.close();
        }
        wants.close();
    }

    private void loadOwnArenas() throws StoreUnavailableException, StoreRejectedException {
        long reading = monitor.with(wants::beginReading);
        RangeResult owned = store.range(keys.arenasOf(node), keys.arenasOf(node).prefixEnd(), 0, false, 0, REQUEST_NS);
        for (KeyValue kv : owned.keyValues()) {
            long id = keys.parseArena(kv.key()).id();
            load(id, () -> wants.wasGiven(id, reading));
        }
    }

    /**
     * An arena that we have claimed.
     *
     * @param timesGiven before the claim: another task can have found it as ours meanwhile, used it and given it away
     */
    private void loadClaimed(long id, int timesGiven) throws StoreUnavailableException, StoreRejectedException {
        load(id, () -> wants.timesGiven(id) != timesGiven && !Fault.GIVEN_ARENA_READ_LATE.on());
    }

    /** @param given since it was ours. Asked with the monitor held */
    private void load(long id, BooleanSupplier given) throws StoreUnavailableException, StoreRejectedException {
        if (monitor.with(() -> arenas.get(id) != null || given.getAsBoolean())) {
            return;
        }
        Arena arena = arenas.newArena(id);
        for (KeyValue kv : store.range(keys.blocksOf(id), keys.blocksOf(id).prefixEnd(), 0, false, 0, REQUEST_NS).keyValues()) {
            arena.loadSegment(keys.parseBlocks(kv.key()).segment(), kv.value());
        }
        monitor.lock();
        try {
            if (arenas.get(id) == null && !given.getAsBoolean()) {
                arenas.add(arena);
                wants.taken();
                sweepWanted = true;
                sweeper.wake();
            }
            monitor.changed();
        } finally {
            monitor.unlock();
        }
    }

    // ---- allocation, monitor held

    /** How much etcd can take, as far as known. */
    public StoreRoom storeRoom() {
        return storeRoom;
    }

    public void storeRoom(StoreRoom room) {
        storeRoom = room;
    }

    /** @throws FsException ENOSPC: etcd is nearly full; what removes and overwrites goes on */
    public void requireStore() throws FsException {
        if (storeRoom != StoreRoom.ENOUGH) {
            throw new FsException(Errno.ENOSPC);
        }
    }

    /**
     * Reserves {@code wanted} blocks, all or none.
     *
     * @param hintBlock the device block behind the file's last one, or -1
     * @throws Blocked     an arena is being claimed, or freed blocks are on their way back
     * @throws FsException ENOSPC
     */
    public List<Run> allocate(int wanted, long hintBlock) throws FsException {
        requireStore();
        return allocateForCopy(wanted, hintBlock);
    }

    /** The same for blocks that take the place of others, which adds next to nothing to etcd: also where that has little room. */
    public List<Run> allocateForCopy(int wanted, long hintBlock) throws FsException {
        List<Run> runs = arenas.allocate(wanted, hintBlock);
        if (!runs.isEmpty()) {
            wants.foundRoom(wanted);
            return runs;
        }
        wants.foundTooLittle(wanted);
        if (releasesPending > 0) {
            pipeline.push(pipeline.lastNumber());
        }
        if (monitor.nowNs() >= fullUntilNs) {
            if (!claiming) {
                claiming = true;
                tasks.start("claim", this::claim);
            }
            throw Blocked.INSTANCE;
        }
        if (releasesPending > 0) {
            throw Blocked.INSTANCE;
        }
        wants.over();
        throw new FsException(Errno.ENOSPC);
    }

    /** Whether room has been looked for elsewhere for long: who can use less is content with {@link #freeBlocks} then, if there are any, and looks no further. */
    public boolean contentWithLess() {
        if (!wants.tooLittleForLong() || freeBlocks() == 0) {
            return false;
        }
        wants.over();
        return true;
    }

    /** @param freeing whether files without a name, or ends of files that were cut, are being freed by this node. Asked with the monitor held */
    public void freeing(BooleanSupplier freeing) {
        this.freeing = freeing;
    }

    /** Blocks come back soon, or have: nobody is told that there is no room before that was seen. */
    public void moreMayCome() {
        fullUntilNs = Long.MIN_VALUE / 2;
    }

    /** Blocks that {@link #allocate} can still give. */
    public long freeBlocks() {
        return storeRoom == StoreRoom.ENOUGH ? arenas.freeBlocks() : 0;
    }

    /** Blocks that were reserved and are not needed. */
    public void abandon(List<Run> runs) {
        runs.forEach(arenas::release);
    }

    /** Reserved blocks are in an extent now, in the open batch. */
    public void reference(Run run) {
        arenas.reference(run);
    }

    /** Extents left the domain's files in the open batch; no device access to them is under way. */
    public void free(List<Extent> extents, Domain domain) {
        List<SessionRef> suspects = Fault.FREED_WHILE_SUSPECT.on() ? List.of() : domain.suspects;
        List<Run> own = new ArrayList<>();
        for (Extent e : extents) {
            for (Run run : arenas.split(new Run(e.deviceBlock(), e.length()))) {
                pipeline.dirty().forget(run.firstBlock(), run.length(), pipeline.openNumber());
                if (arenas.freesIn(run.firstBlock()) && suspects.isEmpty()) {
                    arenas.dereference(run);
                    own.add(run);
                } else {
                    unfree(run, suspects);
                }
            }
        }
        releaseWhenCommitted(own);
    }

    private void releaseWhenCommitted(List<Run> runs) {
        if (runs.isEmpty()) {
            return;
        }
        if (Fault.FREED_BLOCK_AT_ONCE.on()) {
            runs.forEach(arenas::release);
            return;
        }
        releasesPending++;
        pipeline.onCommitted(() -> {
            releasesPending--;
            runs.forEach(arenas::release);
        });
    }

    private void unfree(Run run, List<SessionRef> suspects) {
        if (Fault.UNFREE_IGNORED.on()) {
            return;
        }
        if (unfreeBatch != pipeline.openNumber()) {
            unfreeOfBatch.clear();
            unfreeBatch = pipeline.openNumber();
            unfreeKeySequence = ++unfreeSequence;
        }
        long arena = Arenas.idOf(run.firstBlock(), arenaBlocks);
        Unfree.Builder b = unfreeOfBatch.get(arena);
        if (b == null) {
            b = Unfree.newBuilder();
            unfreeOfBatch.put(arena, b);
        }
        for (SessionRef s : suspects) {
            if (!b.getSuspectsList().contains(s)) {
                b.addSuspects(s);
            }
        }
        b.addRuns(Unfree.Run.newBuilder().setDeviceBlock(run.firstBlock()).setLength(run.length()));
        Unfree.Builder record = b;
        pipeline.put(keys.unfree(arena, node, unfreeKeySequence), () -> record.build().toByteArray(), false, UNFREE_BYTES + UNFREE_RUN_BYTES * b.getRunsCount());
    }

    /** Puts the bitmaps that the operation changed into the open batch; the last thing an operation does. */
    public void touched() {
        for (Arena arena : arenas.takeDirty()) {
            for (int segment : arena.takeDirtySegments()) {
                pipeline.put(keys.blocks(arena.id(), segment), () -> arena.journalSegment(segment), true, Arena.SEGMENT_BYTES + 40);
            }
            pipeline.put(keys.arena(node, arena.id()), arena::record, true, 40);
        }
    }

    /** Now and then: whether the device has grown. Without the monitor. */
    public void followDevice() throws StoreUnavailableException, StoreRejectedException {
        if (growth.seen()) {
            growth.look();
        }
    }

    /** Blocks of one arena. */
    public long arenaBlocks() {
        return arenaBlocks;
    }

    // ---- claiming

    private enum Claim {
        GOT, AGAIN, NONE_LEFT
    }

    /** Goes on for as long as somebody waits for room: that etcd, or another node that has some, does not answer says nothing about whether there is any. */
    private void claim() {
        ClaimTry tries = new ClaimTry();
        boolean noneLeft = false;
        try {
            while (!noneLeft && monitor.with(() -> !stopping && wants.tooLittle())) {
                try {
                    switch (tries.once()) {
                        case GOT -> awaitUse();
                        case AGAIN -> monitor.clock().sleep(LOOK_NS);
                        case NONE_LEFT -> noneLeft = true;
                    }
                } catch (StoreUnavailableException | StoreRejectedException e) {
                    LOG.log(System.Logger.Level.DEBUG, "no arena claimed: {0}", e.getMessage());
                    noneLeft = Fault.UNANSWERED_IS_FULL.on();
                    monitor.clock().sleep(LOOK_NS);
                }
            }
            wants.wantNothing();
        } catch (StoreRejectedException e) {
            LOG.log(System.Logger.Level.DEBUG, "the want stays: {0}", e.getMessage());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            monitor.lock();
            try {
                claiming = false;
                if (noneLeft) {
                    fullUntilNs = monitor.nowNs() + FULL_NS;
                }
                monitor.changed();
            } finally {
                monitor.unlock();
            }
        }
    }

    /** What the tries of one claim know of each other. */
    private final class ClaimTry {
        private final Set<String> asked = new HashSet<>();
        private final long begunNs = monitor.nowNs();
        /** Since when nobody has had a free block, one look after another. */
        private long nowhereSinceNs = Long.MAX_VALUE;

        Claim once() throws StoreUnavailableException, StoreRejectedException, InterruptedException {
            int before = monitor.with(() -> arenas.all().size());
            loadOwnArenas();
            if (monitor.with(() -> arenas.all().size()) > before) {
                return got();
            }
            Compare[] guard = monitor.with(() -> session.live() ? session.guard().compares().toArray(Compare[]::new) : null);
            if (guard == null) {
                return Claim.AGAIN;
            }
            Compare size = growth.look();
            if (size == null) {
                // For long only where this machine does not see all of the device: what is free can't be used here.
                return monitor.nowNs() - begunNs >= FREEING_NS ? Claim.NONE_LEFT : Claim.AGAIN;
            }
            Claim claimed = claimOne(guard, size);
            return switch (claimed) {
                case GOT -> got();
                case AGAIN -> claimed;
                case NONE_LEFT -> lookAtOthers();
            };
        }

        private Claim got() {
            nowhereSinceNs = Long.MAX_VALUE;
            return Claim.GOT;
        }

        private Claim lookAtOthers() throws StoreUnavailableException, StoreRejectedException, InterruptedException {
            long now = monitor.nowNs();
            ArenaWants.Survey survey = wants.survey();
            if (survey.comes() || !survey.others().isEmpty() && !(Fault.UNANSWERED_IS_FULL.on() && now - begunNs >= FREEING_NS)) {
                nowhereSinceNs = Long.MAX_VALUE;
                if (!survey.comes()) {
                    wants.askNext(survey.others(), asked);
                }
                return Claim.AGAIN;
            }
            nowhereSinceNs = Math.min(nowhereSinceNs, now);
            return monitor.with(() -> nothingComesBack(nowhereSinceNs)) ? Claim.NONE_LEFT : Claim.AGAIN;
        }
    }

    /** Those who wait look whether the arena that has come is enough. */
    private void awaitUse() {
        monitor.lock();
        try {
            long cameNs = monitor.nowNs();
            while (!stopping && wants.tooLittle() && !wants.tooLittleSince(cameNs) && monitor.nowNs() < cameNs + USED_NS) {
                monitor.awaitQuietly(cameNs + USED_NS);
            }
        } finally {
            monitor.unlock();
        }
    }

    /** Everything that was freed before {@code sinceNs}, here or on other nodes, can be used again or is in use. Has the sweeper look what others have freed. */
    private boolean nothingComesBack(long sinceNs) {
        long now = monitor.nowNs();
        if (now - sinceNs >= FREEING_NS || sweptNs >= sinceNs + PUBLISHED_NS && releasesPending == 0 && !freeing.getAsBoolean()) {
            return true;
        }
        if (now >= sinceNs + PUBLISHED_NS && sweptNs < sinceNs + PUBLISHED_NS) {
            sweepWanted = true;
            sweeper.wake();
        }
        return false;
    }

    private Claim claimOne(Compare[] guard, Compare size) throws StoreUnavailableException, StoreRejectedException {
        KeyValue free = store.range(keys.freeArenas(), keys.freeArenas().prefixEnd(), 1, false, 0, REQUEST_NS).only();
        List<Compare> compares = new ArrayList<>(List.of(guard));
        compares.add(size);
        if (free != null) {
            return claimGivenBack(compares, free) ? Claim.GOT : Claim.AGAIN;
        }
        KeyValue log = store.range(keys.arenaAllocLog(), null, 0, false, 0, REQUEST_NS).only();
        try {
            long id = log == null ? 0 : Counter.parseFrom(log.value()).getNext();
            if (id >= arenas.arenaCount()) {
                return Claim.NONE_LEFT;
            }
            int timesGiven = monitor.with(() -> wants.timesGiven(id));
            compares.add(Compare.modRevision(keys.arenaAllocLog(), log == null ? 0 : log.modRevision()));
            Arena fresh = arenas.newArena(id);
            byte[] value = fresh.record();
            if (!committed(new Txn(compares, List.of(Op.put(keys.arenaAllocLog(), Counter.newBuilder().setNext(id + 1).build().toByteArray()), Op.put(keys.arena(node, id), value)), List.of()))) {
                return Claim.AGAIN;
            }
            loadClaimed(id, timesGiven);
            return Claim.GOT;
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record " + keys.arenaAllocLog());
        }
    }

    private boolean claimGivenBack(List<Compare> guard, KeyValue free) throws StoreUnavailableException, StoreRejectedException {
        long id = keys.parseFreeArena(free.key());
        if (monitor.with(() -> wants.isForWhoAsked(id))) {
            return false;
        }
        int timesGiven = monitor.with(() -> wants.timesGiven(id));
        List<Compare> compares = new ArrayList<>(guard);
        compares.add(Compare.modRevision(free.key(), free.modRevision()));
        if (!committed(new Txn(compares, List.of(Op.delete(free.key()), Op.put(keys.arena(node, id), free.value())), List.of()))) {
            return false;
        }
        loadClaimed(id, timesGiven);
        return true;
    }

    private boolean committed(Txn txn) throws StoreRejectedException {
        return store.commit(txn, REQUEST_NS) instanceof Outcome.Committed;
    }

    // ---- what others freed in this node's arenas

    private void wantSweep(long arena) {
        monitor.lock();
        try {
            if (arena < 0 || arenas.get(arena) != null) {
                moreMayCome();
                sweepWanted = true;
                sweeper.wake();
            }
        } finally {
            monitor.unlock();
        }
    }

    private void sweepForever() {
        long last = Long.MIN_VALUE / 2;
        long notBefore = last;
        while (true) {
            monitor.lock();
            try {
                while (!stopping && (monitor.nowNs() < notBefore || !sweepWanted && monitor.nowNs() < last + SWEEP_NS)) {
                    sweeper.awaitQuietly(sweepWanted ? notBefore : Math.max(notBefore, last + SWEEP_NS));
                }
                if (stopping) {
                    return;
                }
                sweepWanted = false;
                last = monitor.nowNs();
            } finally {
                monitor.unlock();
            }
            try {
                sweep();
                long begunNs = last;
                monitor.with(() -> sweptNs = begunNs);
            } catch (StoreUnavailableException | StoreRejectedException e) {
                LOG.log(System.Logger.Level.DEBUG, "unfree: not read: {0}", e.getMessage());
            } catch (InvalidProtocolBufferException e) {
                throw new NodeStoppedError("damaged unfree record: " + e.getMessage());
            }
            // Where many records wait for suspects, they are not read all the time, however many more come.
            notBefore = monitor.nowNs() + Math.min(monitor.nowNs() - last, SWEPT_AGAIN_NS);
        }
    }

    private void sweep() throws StoreUnavailableException, StoreRejectedException, InvalidProtocolBufferException {
        // One whose claim had no answer is ours, too, and nobody else sweeps it or gives it to who has no room.
        loadOwnArenas();
        List<Long> own = monitor.with(() -> arenas.all().stream().map(Arena::id).toList());
        Map<String, Long> endedBefore = new HashMap<>();
        for (long id : own) {
            Key from = keys.unfreeOf(id);
            RangeResult page;
            do {
                int timesGiven = monitor.with(() -> {
                    unfreed.clear();
                    return wants.timesGiven(id);
                });
                page = store.range(from, keys.unfreeOf(id).prefixEnd(), UNFREES_AT_ONCE, false, 0, REQUEST_NS);
                for (KeyValue kv : page.keyValues()) {
                    Unfree record = Unfree.parseFrom(kv.value());
                    if (suspectsGone(record, endedBefore)) {
                        apply(kv.key(), record, id, timesGiven);
                    }
                    from = kv.key().next();
                }
            } while (page.more());
        }
        claimWhatNobodySweeps();
    }

    private boolean suspectsGone(Unfree record, Map<String, Long> endedBefore) throws StoreUnavailableException, StoreRejectedException {
        for (SessionRef s : record.getSuspectsList()) {
            if (!endedBefore.containsKey(s.getNode())) {
                endedBefore.put(s.getNode(), endedSessions.before(s.getNode()));
            }
            if (endedBefore.get(s.getNode()) <= s.getSession()) {
                return false;
            }
        }
        return true;
    }

    /**
     * Arenas in the free pool have no owner to see to what is freed in them: one of those who notice claims them. Else the blocks would stay used until somebody
     * runs out of space.
     */
    private void claimWhatNobodySweeps() throws StoreUnavailableException, StoreRejectedException {
        Set<Long> notOurs = new TreeSet<>();
        Key from = keys.unfrees();
        RangeResult page;
        do {
            page = store.range(from, keys.unfrees().prefixEnd(), FOREIGN_UNFREES_AT_ONCE, true, 0, REQUEST_NS);
            for (KeyValue kv : page.keyValues()) {
                long id = keys.parseUnfree(kv.key()).arena();
                notOurs.add(id);
                // One is enough to know that there are any.
                from = keys.unfreeOf(id).prefixEnd();
            }
        } while (page.more());
        notOurs.removeIf(id -> monitor.with(() -> arenas.get(id) != null));
        for (long id : notOurs) {
            KeyValue free = store.range(keys.freeArena(id), null, 0, false, 0, REQUEST_NS).only();
            List<Compare> guard = monitor.with(() -> stopping || leaving || !session.trusted() ? null : session.guard().compares());
            Compare size = free == null || guard == null ? null : growth.look();
            if (size != null) {
                List<Compare> compares = new ArrayList<>(guard);
                compares.add(size);
                claimGivenBack(compares, free);
            }
        }
    }

    /** @param timesGiven before the record was read: if the arena was given away since, who had it may have seen to the record, and used the blocks again */
    private void apply(Key key, Unfree record, long arena, int timesGiven) {
        monitor.lock();
        try {
            while (!stopping && (!session.trusted() || !pipeline.room(8 + record.getRunsCount()))) {
                monitor.awaitQuietly(monitor.nowNs() + 100_000_000L);
            }
            if (wants.timesGiven(arena) != timesGiven && !Fault.SWEPT_AS_READ.on()) {
                return;
            }
            // Who gets an arena that is being given away sees to it.
            if (stopping || leaving || unfreed.contains(key) || record.getRunsList().stream().anyMatch(r -> !arenas.freesIn(r.getDeviceBlock())) || !unfreeing.add(key)) {
                return;
            }
            List<Run> runs = new ArrayList<>();
            for (Unfree.Run r : record.getRunsList()) {
                Run run = new Run(r.getDeviceBlock(), r.getLength());
                arenas.dereference(run);
                runs.add(run);
            }
            pipeline.delete(key, true);
            touched();
            releaseWhenCommitted(runs);
            pipeline.onCommitted(() -> {
                unfreeing.remove(key);
                unfreed.add(key);
            });
        } finally {
            monitor.unlock();
        }
    }

    // ---- numbers, leaving

    public record Usage(long totalBlocks, long freeBlocks) {}

    /** Blocks of the device that can hold data, and those of them that no extent has, all nodes' arenas counted. Reads etcd. */
    public Usage usage() throws StoreUnavailableException, StoreRejectedException {
        long total = monitor.with(arenas::deviceBlocks) - Arena.RESERVED_BLOCKS;
        long used = 0;
        List<KeyValue> claimed = new ArrayList<>(store.range(keys.arenas(), keys.arenas().prefixEnd(), 0, false, 0, REQUEST_NS).keyValues());
        List<KeyValue> free = store.range(keys.freeArenas(), keys.freeArenas().prefixEnd(), 0, false, 0, REQUEST_NS).keyValues();
        try {
            for (KeyValue kv : claimed) {
                Keys.ArenaKey k = keys.parseArena(kv.key());
                int recorded = io.etcfs.core.record.proto.Arena.parseFrom(kv.value()).getFreeBlocks();
                Integer own = k.node().equals(node) ? monitor.with(() -> arenas.get(k.id()) == null ? null : (Integer) arenas.get(k.id()).journalFreeBlocks()) : null;
                used += used(k.id(), own == null ? recorded : own);
            }
            for (KeyValue kv : free) {
                used += used(keys.parseFreeArena(kv.key()), io.etcfs.core.record.proto.Arena.parseFrom(kv.value()).getFreeBlocks());
            }
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged arena record: " + e.getMessage());
        }
        return new Usage(total, total - used);
    }

    /** While the device grows an arena can have more free blocks than it has by the size that we go by. */
    private long used(long id, long free) {
        return Math.max(0, monitor.with(() -> arenas.usableBlocks(id)) - free);
    }

    /** No bitmap changes from now on but by what was begun. Before everything is published for {@link #releaseArenas}: a batch does not look whose the arenas are. */
    public void prepareToRelease() {
        monitor.lock();
        try {
            leaving = true;
        } finally {
            monitor.unlock();
        }
    }

    /**
     * Gives every arena to the free pool, each in a transaction of its own. Everything is published and the session has ended, so that none is claimed any more.
     * True if none is left.
     *
     * @param patienceNs how long it goes on after an arena was given back, also where {@code untilNs} is over
     */
    public boolean releaseArenas(long untilNs, long patienceNs) {
        return new ArenaRelease(monitor, store, tasks, session, keys, node).run(untilNs, patienceNs);
    }

    public int arenaCount() {
        return arenas.all().size();
    }
}
