package io.etcfs.core.space;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.clock.Monitor;
import io.etcfs.core.clock.Tasks;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.pipeline.Pipeline;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.ArenaWant;
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
import io.etcfs.core.store.TxnResult;
import io.etcfs.core.store.Watch;
import io.etcfs.core.store.WatchEvent;
import io.etcfs.core.store.WatchListener;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * Arenas that go from a node with free blocks to one that finds no room, with all that is in them: nothing is moved, only the owner changes.
 *
 * <p>The node without room asks one node after another, those with most free blocks first, by {@code arena_want:}. Who is asked closes an arena, waits until nothing in it is reserved that is
 * not published, and gives it to the free pool in a batch, behind everything that says what is in it. Of two nodes without room the one whose want is older gets what the other has: so one of
 * them has all that is free before anybody is told that it is not enough.
 */
final class ArenaWants {
    private static final long REQUEST_NS = 2_000_000_000L;
    /** For so long one node is given time. */
    private static final long ASKED_NS = 500_000_000L;
    /** A write that waits for room looks again at least this often, else nobody waits any more. */
    private static final long SHORT_NS = 1_000_000_000L;
    /** After that a write takes what this node has, if that is anything. */
    private static final long LONG_NS = 3_000_000_000L;
    private static final long NEVER = Long.MIN_VALUE / 2;
    private static final long LOOK_NS = 20_000_000L;
    /** An arena that does not become quiet in this time is kept: a device access in it hangs, or the session is away. */
    private static final long QUIET_NS = 2_000_000_000L;
    /** An arena that was just taken is kept for this long: else two nodes that both need room do nothing but give it to each other. */
    private static final long KEEP_NS = 100_000_000L;
    /** A node that is short of room itself leaves what it gave to who asked for so long: else it is the first to see it, and has it back at once. */
    private static final long LEFT_NS = 1_000_000_000L;
    private static final long IDLE_NS = 60_000_000_000L;
    private static final System.Logger LOG = System.getLogger(ArenaWants.class.getName());

    private final Monitor monitor;
    private final MetadataStore store;
    private final Session session;
    private final Pipeline pipeline;
    private final Keys keys;
    private final String node;
    private final Arenas arenas;
    private final Monitor.Waiters giver;
    private Watch watch;
    /** Wants that ask us, by their create revisions. */
    private final TreeSet<Long> asking = new TreeSet<>();
    private boolean stopping;
    /** Arenas that were given away: which of {@link #beginReading} the first is that can't show them as ours any more; unpublished ones have no such yet. */
    private final Map<Long, Long> given = new HashMap<>();
    private final Map<Long, Integer> timesGiven = new HashMap<>();
    private long reads;
    private long takenNs = NEVER;
    /** When the arena that was given away last came to the free pool. */
    private long gaveNs = NEVER;
    private long gave = -1;
    /** Since when allocations find too little, one after another, the last one that did, and how many blocks the largest of them wanted. */
    private long shortSinceNs = NEVER;
    private long shortNs = NEVER;
    private int shortOf;
    /** The create revision of our want, 0 as long as it is not known. */
    private long wantRevision;
    /** Only of who asks: one task at a time. */
    private boolean wanting;

    ArenaWants(Monitor monitor, MetadataStore store, Session session, Pipeline pipeline, Keys keys, String node, Arenas arenas) {
        this.monitor = monitor;
        this.store = store;
        this.session = session;
        this.pipeline = pipeline;
        this.keys = keys;
        this.node = node;
        this.arenas = arenas;
        this.giver = monitor.new Waiters();
    }

    void start(Tasks tasks) {
        watch = store.watch(keys.arenaWants(), keys.arenaWants().prefixEnd(), 0, new WatchListener() {
            @Override
            public void changed(long revision, List<WatchEvent> events) {
                for (WatchEvent e : events) {
                    if (e.kind() == WatchEvent.Kind.PUT && asksUs(e.keyValue())) {
                        asked(e.keyValue());
                    }
                }
            }

            @Override
            public void resynced(long revision) {
                // Who asked meanwhile goes on to the next node, and comes back.
            }
        });
        tasks.start("arena-giver", this::giveForever);
    }

    private boolean asksUs(KeyValue want) {
        try {
            return ArenaWant.parseFrom(want.value()).getOf().equals(node);
        } catch (InvalidProtocolBufferException e) {
            LOG.log(System.Logger.Level.WARNING, "damaged record {0}", want.key());
            return false;
        }
    }

    private void asked(KeyValue want) {
        monitor.lock();
        try {
            asking.add(want.createRevision());
            giver.wake();
        } finally {
            monitor.unlock();
        }
    }

    /** Monitor held. */
    void stop() {
        stopping = true;
        giver.wake();
    }

    /** After {@link #stop}, without the monitor. */
    void close() {
        if (watch != null) {
            watch.close();
        }
    }

    // ---- asking

    /** An allocation found too little. Monitor held. */
    void foundTooLittle(int wanted) {
        long now = monitor.nowNs();
        if (!tooLittle()) {
            shortSinceNs = now;
            shortOf = 0;
        }
        shortNs = now;
        shortOf = Math.max(shortOf, wanted);
    }

    /** An allocation found what it wants: as long as others want more, those go on. Monitor held. */
    void foundRoom(int wanted) {
        if (wanted >= shortOf) {
            over();
        }
    }

    /** Nobody waits for room any more. Monitor held. */
    void over() {
        shortNs = NEVER;
    }

    /** Whether an allocation found too little and goes on waiting. Monitor held. */
    boolean tooLittle() {
        return monitor.nowNs() < shortNs + SHORT_NS;
    }

    /** Whether that has been so for long. Monitor held. */
    boolean tooLittleForLong() {
        return tooLittle() && monitor.nowNs() >= shortSinceNs + LONG_NS;
    }

    /** An allocation found too little after that moment. Monitor held. */
    boolean tooLittleSince(long ns) {
        return shortNs > ns;
    }

    /**
     * Where room may be, all of one revision.
     *
     * @param comes  there is an arena that can be claimed, or one is ours that was not read yet
     * @param others nodes that live and have free blocks, most first
     */
    record Survey(boolean comes, List<String> others) {}

    /** A member that does not answer has what it has until its membership ends: it may give it yet. */
    Survey survey() throws StoreUnavailableException, StoreRejectedException {
        Txn looks = new Txn(List.of(), List.of(all(keys.sessions(), true), all(keys.memberships(), true), all(keys.arenas(), false), new Op.Range(keys.freeArenas(), keys.freeArenas().prefixEnd(), 1, true)),
                List.of());
        if (!(store.commit(looks, REQUEST_NS) instanceof Outcome.Committed(TxnResult seen))) {
            throw new StoreUnavailableException("no answer");
        }
        Set<String> live = new HashSet<>();
        for (int k = 0; k < 2; k++) {
            seen.ranged(k).keyValues().forEach(kv -> live.add(keys.parseNode(kv.key()).node()));
        }
        live.remove(node);
        boolean comes = !seen.ranged(3).keyValues().isEmpty();
        Map<String, Long> free = new HashMap<>();
        for (KeyValue kv : seen.ranged(2).keyValues()) {
            try {
                Keys.ArenaKey arena = keys.parseArena(kv.key());
                long blocks = io.etcfs.core.record.proto.Arena.parseFrom(kv.value()).getFreeBlocks();
                if (arena.node().equals(node)) {
                    // One that is being given away is in the pool next.
                    comes |= blocks > 0 && monitor.with(() -> arenas.get(arena.id()) == null);
                } else if (blocks > 0 && live.contains(arena.node())) {
                    free.merge(arena.node(), blocks, Long::sum);
                }
            } catch (InvalidProtocolBufferException e) {
                throw new NodeStoppedError("damaged arena record: " + e.getMessage());
            }
        }
        List<String> order = new ArrayList<>(free.keySet());
        order.sort(Comparator.comparing((String n) -> -free.get(n)).thenComparing(n -> n));
        return new Survey(comes, order);
    }

    private static Op all(Key prefix, boolean keysOnly) {
        return new Op.Range(prefix, prefix.prefixEnd(), 0, keysOnly);
    }

    /**
     * Asks the next of those nodes, and gives it some time; then it may be worth looking into the free pool. The want stays, so that it gets older, until {@link #wantNothing}.
     *
     * @param asked the nodes that were asked in this round, the one that is asked now among them afterwards
     */
    void askNext(List<String> others, Set<String> asked) throws StoreUnavailableException, StoreRejectedException, InterruptedException {
        if (asked.containsAll(others)) {
            asked.clear();
        }
        String next = others.stream().filter(n -> !asked.contains(n)).findFirst().orElseThrow();
        Txn want = monitor.with(() -> session.live() ? new Txn(session.guard().compares(),
                List.of(Op.put(keys.arenaWant(node), ArenaWant.newBuilder().setOf(next).build().toByteArray(), session.leaseId()), Op.get(keys.arenaWant(node))), List.of()) : null);
        if (want == null) {
            return;
        }
        asked.add(next);
        wanting = true;
        if (store.commit(want, REQUEST_NS) instanceof Outcome.Committed(TxnResult put)) {
            monitor.with(() -> wantRevision = put.ranged(1).only().createRevision());
        }
        long until = monitor.nowNs() + ASKED_NS;
        while (monitor.nowNs() < until && !monitor.with(() -> stopping)) {
            monitor.clock().sleep(LOOK_NS);
            if (!store.range(keys.freeArenas(), keys.freeArenas().prefixEnd(), 1, true, 0, REQUEST_NS).keyValues().isEmpty()) {
                return;
            }
        }
    }

    /** The want goes. If that is lost it stays until the next is over or the session ends, and nobody goes by it meanwhile. */
    void wantNothing() throws StoreRejectedException {
        if (wanting) {
            wanting = false;
            monitor.with(() -> wantRevision = 0);
            store.commit(new Txn(List.of(Compare.exists(keys.arenaWant(node))), List.of(Op.delete(keys.arenaWant(node))), List.of()), REQUEST_NS);
        }
    }

    // ---- giving

    private void giveForever() {
        while (true) {
            monitor.lock();
            try {
                while (asking.isEmpty() && !stopping) {
                    giver.awaitQuietly(monitor.nowNs() + IDLE_NS);
                }
                if (stopping) {
                    return;
                }
                give();
            } finally {
                monitor.unlock();
            }
        }
    }

    private void give() {
        while (monitor.nowNs() < takenNs + KEEP_NS && !stopping) {
            monitor.awaitQuietly(takenNs + KEEP_NS);
        }
        // Who is not given anything asks again.
        long oldest = asking.isEmpty() ? Long.MAX_VALUE : asking.first();
        asking.clear();
        boolean keeps = tooLittle() && (Fault.SHORT_GIVES_NOTHING.on() || wantRevision != 0 && wantRevision < oldest);
        Arena arena = arenas.mostFree();
        if (arena == null || stopping || keeps) {
            return;
        }
        arena.closed(true);
        long until = monitor.nowNs() + QUIET_NS;
        while (!stopping && monitor.nowNs() < until) {
            boolean quiet = arena.isQuiet() || Fault.ARENA_GIVEN_IN_USE.on();
            if (quiet && session.trusted() && !pipeline.resurrecting() && pipeline.room(2)) {
                long free = arena.journalFreeBlocks();
                giveAway(arena);
                LOG.log(System.Logger.Level.DEBUG, "arena {0} with {1} free blocks is given away: another node has no room", Long.toString(arena.id()), Long.toString(free));
                return;
            }
            pipeline.push(pipeline.lastNumber());
            monitor.awaitQuietly(Math.min(until, monitor.nowNs() + LOOK_NS));
        }
        arena.closed(false);
        monitor.changed();
    }

    private void giveAway(Arena arena) {
        long id = arena.id();
        arenas.remove(id);
        given.put(id, Long.MAX_VALUE);
        timesGiven.merge(id, 1, Integer::sum);
        pipeline.delete(keys.arena(node, id), true);
        pipeline.put(keys.freeArena(id), arena::record, false, 40);
        pipeline.onCommitted(() -> {
            given.put(id, reads + 1);
            gave = id;
            gaveNs = monitor.nowNs();
        });
        pipeline.push(pipeline.lastNumber());
    }

    /** Whether an arena of the free pool is what we have just given to a node that asked first. Monitor held. */
    boolean isForWhoAsked(long id) {
        return id == gave && monitor.nowNs() < gaveNs + LEFT_NS && !Fault.GIVEN_ARENA_TAKEN_BACK.on();
    }

    // ---- which of the arenas that etcd shows are ours; monitor held

    /** Before arenas of ours are read; returns the number of that reading. */
    long beginReading() {
        return ++reads;
    }

    /** Whether what that reading showed can be from before the arena was given away. */
    boolean wasGiven(long id, long reading) {
        return !Fault.GIVEN_ARENA_READ_LATE.on() && reading < given.getOrDefault(id, 0L);
    }

    /** Who claims an arena looks before: if it was given away since, what was read of it after the claim is for nobody. */
    int timesGiven(long id) {
        return timesGiven.getOrDefault(id, 0);
    }

    /** An arena came to us. */
    void taken() {
        takenNs = monitor.nowNs();
    }
}
