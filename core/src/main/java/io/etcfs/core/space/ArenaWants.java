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
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
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

/**
 * Arenas that go from a node with free blocks to one that finds no room, with all that is in them: nothing is moved, only the owner changes.
 *
 * <p>The node without room asks one node after another, those with most free blocks first, by {@code arena_want:}. Who is asked closes an arena, waits until nothing in it is reserved that is
 * not published, and gives it to the free pool in a batch, behind everything that says what is in it.
 */
final class ArenaWants {
    private static final long REQUEST_NS = 2_000_000_000L;
    /** For so long one node is given time. */
    private static final long ASKED_NS = 500_000_000L;
    /** For so long one write asks others, where some say that they have free blocks. */
    private static final long ASK_NS = 3_000_000_000L;
    private static final long NEVER = Long.MIN_VALUE / 2;
    private static final long LOOK_NS = 20_000_000L;
    /** An arena that does not become quiet in this time is kept: a device access in it hangs, or the session is away. */
    private static final long QUIET_NS = 2_000_000_000L;
    /** An arena that was just taken is kept for this long: else two nodes that both need room do nothing but give it to each other. */
    private static final long KEEP_NS = 100_000_000L;
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
    private boolean wanted;
    private boolean stopping;
    /** Arenas that were given away: which of {@link #beginReading} the first is that can't show them as ours any more; unpublished ones have no such yet. */
    private final Map<Long, Long> given = new HashMap<>();
    private long reads;
    private long takenNs = NEVER;
    /** Since when allocations find too little, one after another, and the last one that did. */
    private long shortSinceNs = NEVER;
    private long shortNs = NEVER;

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
                        wake();
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

    private void wake() {
        monitor.lock();
        try {
            wanted = true;
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
    void foundTooLittle() {
        long now = monitor.nowNs();
        if (!tooLittle()) {
            shortSinceNs = now;
        }
        shortNs = now;
    }

    /** An allocation found what it needs, or is over without. Monitor held. */
    void foundRoom() {
        shortNs = NEVER;
    }

    private boolean tooLittle() {
        return monitor.nowNs() < shortNs + ASK_NS;
    }

    /** Whether the write that waits has not asked for long enough: where two nodes need more than both have they would get each other's arenas for ever. Monitor held. */
    boolean mayAsk() {
        return tooLittle() && monitor.nowNs() < shortSinceNs + ASK_NS;
    }

    /**
     * Asks the next node that says it has free blocks. True: one was asked, and it may be worth looking into the free pool; false: nobody has any.
     *
     * @param asked the nodes that were asked in this round, the one that is asked now among them afterwards
     */
    boolean askNext(Set<String> asked) throws StoreUnavailableException, StoreRejectedException, InterruptedException {
        List<String> others = others();
        if (asked.containsAll(others)) {
            asked.clear();
        }
        String next = others.stream().filter(n -> !asked.contains(n)).findFirst().orElse(null);
        Txn want = next == null ? null : monitor.with(() -> session.live() ? new Txn(session.guard().compares(),
                List.of(Op.put(keys.arenaWant(node), ArenaWant.newBuilder().setOf(next).build().toByteArray(), session.leaseId())), List.of()) : null);
        if (want == null) {
            return false;
        }
        asked.add(next);
        store.commit(want, REQUEST_NS);
        long until = monitor.nowNs() + ASKED_NS;
        while (monitor.nowNs() < until && !monitor.with(() -> stopping)) {
            monitor.clock().sleep(LOOK_NS);
            if (!store.range(keys.freeArenas(), keys.freeArenas().prefixEnd(), 1, true, 0, REQUEST_NS).keyValues().isEmpty()) {
                break;
            }
        }
        store.commit(new Txn(List.of(Compare.exists(keys.arenaWant(node))), List.of(Op.delete(keys.arenaWant(node))), List.of()), REQUEST_NS);
        return true;
    }

    /** Nodes that live and have free blocks, most first. */
    private List<String> others() throws StoreUnavailableException, StoreRejectedException {
        Set<String> live = new HashSet<>();
        for (KeyValue kv : store.range(keys.sessions(), keys.sessions().prefixEnd(), 0, true, 0, REQUEST_NS).keyValues()) {
            live.add(keys.parseNode(kv.key()).node());
        }
        live.remove(node);
        Map<String, Long> free = new HashMap<>();
        for (KeyValue kv : store.range(keys.arenas(), keys.arenas().prefixEnd(), 0, false, 0, REQUEST_NS).keyValues()) {
            try {
                String owner = keys.parseArena(kv.key()).node();
                long blocks = io.etcfs.core.record.proto.Arena.parseFrom(kv.value()).getFreeBlocks();
                if (blocks > 0 && live.contains(owner)) {
                    free.merge(owner, blocks, Long::sum);
                }
            } catch (InvalidProtocolBufferException e) {
                throw new NodeStoppedError("damaged arena record: " + e.getMessage());
            }
        }
        List<String> order = new ArrayList<>(free.keySet());
        order.sort(Comparator.comparing((String n) -> -free.get(n)).thenComparing(n -> n));
        return order;
    }

    // ---- giving

    private void giveForever() {
        while (true) {
            monitor.lock();
            try {
                while (!wanted && !stopping) {
                    giver.awaitQuietly(monitor.nowNs() + IDLE_NS);
                }
                if (stopping) {
                    return;
                }
                wanted = false;
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
        Arena arena = arenas.mostFree();
        if (arena == null || stopping || tooLittle()) {
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
        pipeline.delete(keys.arena(node, id), true);
        pipeline.put(keys.freeArena(id), arena::record, false, 40);
        pipeline.onCommitted(() -> given.put(id, reads + 1));
        pipeline.push(pipeline.lastNumber());
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

    /** An arena came to us. */
    void taken() {
        takenNs = monitor.nowNs();
    }
}
