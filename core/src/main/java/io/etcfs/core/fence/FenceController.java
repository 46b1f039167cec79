package io.etcfs.core.fence;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.clock.Monitor;
import io.etcfs.core.clock.Tasks;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Membership;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Watch;
import io.etcfs.core.store.WatchEvent;
import io.etcfs.core.store.WatchListener;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * Sees to it that a node that vanished is fenced: one on every node, all with the same rules, so that it does not matter which is first. It hears of members that
 * go, and looks at all nodes that ever were every {@link #SWEEP_NS}, so that a departure nobody heard of is not missed, and a fence that could not be
 * confirmed is tried again.
 *
 * <p>Each node is looked at on a task of its own, one at a time: a fencer that hangs holds up no other fence.
 */
public final class FenceController {
    static final long SWEEP_NS = 30_000_000_000L;
    /** A fencer that takes longer is not waited for, and not asked again about that node until it has answered. */
    static final long SEVER_LIMIT_NS = 60_000_000_000L;
    private static final long KEEP_CLAIM_NS = 3_000_000_000L;
    private static final long RETRY_NS = 500_000_000L;
    private static final long REQUEST_NS = 2_000_000_000L;
    private static final System.Logger LOG = System.getLogger(FenceController.class.getName());

    /** The node that it runs on. */
    public interface Host {
        /**
         * Whether this node may say of another that it has vanished. Not while its own session is in doubt, and not right after an outage in which it lost that
         * itself: the others lost theirs in the same. Called under the monitor.
         */
        boolean mayJudge();

        /**
         * A node was fenced and had files open. Only one node is asked, again and again while there are any.
         *
         * @param doneRevision mod revision of its {@code fence_done:}; when that is another one, or gone, the node is back
         */
        void takeOver(String node, long doneRevision) throws StoreUnavailableException, StoreRejectedException;
    }

    /** What was heard last of a node. */
    private static final class Known {
        boolean member;
        boolean everMember;
        Membership membership = Membership.getDefaultInstance();
        long session;
    }

    private final Monitor monitor;
    private final MetadataStore store;
    private final Tasks tasks;
    private final Keys keys;
    private final String self;
    private final Fencer fencer;
    private final Host host;
    private final Fence fence;
    private final Monitor.Waiters sweeper;
    private final TreeMap<String, Known> known = new TreeMap<>();
    private final Set<String> looking = new HashSet<>();
    private final Set<String> lookAgain = new HashSet<>();
    private final Set<String> severing = new HashSet<>();
    /** Nodes that need nothing more, by the mod revision of the mark that says so. */
    private final Map<String, Long> settled = new HashMap<>();
    private final List<Watch> watches = new ArrayList<>();
    private boolean sweepWanted;
    private boolean stopping;

    public FenceController(Monitor monitor, MetadataStore store, Tasks tasks, Keys keys, String self, Fencer fencer, Host host) {
        this.monitor = monitor;
        this.store = store;
        this.tasks = tasks;
        this.keys = keys;
        this.self = self;
        this.fencer = fencer;
        this.host = host;
        this.fence = new Fence(store, monitor.clock(), keys, self);
        this.sweeper = monitor.new Waiters();
    }

    public void start() {
        watch(keys.memberships(), keys.memberships().prefixEnd(), this::memberChanged);
        watch(keys.sessions(), keys.sessions().prefixEnd(), this::sessionChanged);
        watch(keys.fencesDone(), keys.fencesPending().prefixEnd(), this::fenceChanged);
        tasks.start("fence-sweep", this::sweepForever);
    }

    /** No step is begun any more. One that was sent can still count, as it may. */
    public void stop() {
        monitor.lock();
        try {
            stopping = true;
            sweeper.wake();
            monitor.changed();
        } finally {
            monitor.unlock();
        }
        watches.forEach(Watch::close);
    }

    private boolean stopped() {
        return monitor.with(() -> stopping);
    }

    // ---- what is heard

    private interface Heard {
        void event(WatchEvent event);
    }

    private void watch(Key from, Key end, Heard heard) {
        watches.add(store.watch(from, end, 0, new WatchListener() {
            @Override
            public void changed(long revision, List<WatchEvent> events) {
                monitor.lock();
                try {
                    events.forEach(heard::event);
                } finally {
                    monitor.unlock();
                }
            }

            @Override
            public void resynced(long revision) {
                monitor.lock();
                try {
                    sweepWanted = true;
                    sweeper.wake();
                } finally {
                    monitor.unlock();
                }
            }
        }));
    }

    private String node(KeyValue kv) {
        return keys.parseNode(kv.key()).node();
    }

    private Known known(String node) {
        return known.computeIfAbsent(node, n -> new Known());
    }

    private void member(KeyValue kv) {
        Known k = known(node(kv));
        k.member = true;
        k.everMember = true;
        try {
            k.membership = Membership.parseFrom(kv.value());
        } catch (InvalidProtocolBufferException e) {
            // Who it is stays as it was known.
            LOG.log(System.Logger.Level.WARNING, "damaged record {0}", kv.key());
        }
    }

    private void memberChanged(WatchEvent e) {
        if (e.kind() == WatchEvent.Kind.PUT) {
            member(e.keyValue());
        } else {
            Known k = known(node(e.keyValue()));
            k.member = false;
            k.everMember = true;
            look(node(e.keyValue()));
        }
    }

    private void sessionChanged(WatchEvent e) {
        Known k = known(node(e.keyValue()));
        if (e.kind() == WatchEvent.Kind.PUT) {
            k.session = e.keyValue().createRevision();
        } else if (!k.member) {
            look(node(e.keyValue()));
        }
    }

    /** An intent that another controller has recorded, a fence that it has done. */
    private void fenceChanged(WatchEvent e) {
        if (e.kind() == WatchEvent.Kind.PUT && e.keyValue().version() == 1) {
            look(node(e.keyValue()));
        }
    }

    // ---- the sweep

    private void sweepForever() {
        long next = monitor.nowNs() + SWEEP_NS;
        while (true) {
            monitor.lock();
            try {
                while (!stopping && !sweepWanted && monitor.nowNs() < next) {
                    sweeper.awaitQuietly(next);
                }
                if (stopping) {
                    return;
                }
                sweepWanted = false;
                next = monitor.nowNs() + SWEEP_NS;
            } finally {
                monitor.unlock();
            }
            try {
                sweep();
            } catch (StoreUnavailableException | StoreRejectedException e) {
                LOG.log(System.Logger.Level.DEBUG, "fence: no sweep: {0}", e.getMessage());
                next = monitor.nowNs() + RETRY_NS;
            }
        }
    }

    private List<KeyValue> all(Key prefix, boolean keysOnly) throws StoreUnavailableException, StoreRejectedException {
        return store.range(prefix, prefix.prefixEnd(), 0, keysOnly, 0, REQUEST_NS).keyValues();
    }

    private void sweep() throws StoreUnavailableException, StoreRejectedException {
        List<KeyValue> ever = all(keys.generations(), true);
        List<KeyValue> departed = all(keys.departures(), true);
        List<KeyValue> done = all(keys.fencesDone(), true);
        List<KeyValue> sessions = all(keys.sessions(), true);
        List<KeyValue> members = all(keys.memberships(), false);
        monitor.lock();
        try {
            known.values().forEach(k -> k.member = false);
            members.forEach(this::member);
            sessions.forEach(s -> known(node(s)).session = s.createRevision());
            Map<String, Long> marks = new HashMap<>();
            departed.forEach(d -> marks.put(node(d), d.modRevision()));
            done.forEach(d -> marks.put(node(d), d.modRevision()));
            for (KeyValue kv : ever) {
                String node = node(kv);
                if (!known(node).member && !(marks.containsKey(node) && marks.get(node).equals(settled.get(node)))) {
                    look(node);
                }
            }
        } finally {
            monitor.unlock();
        }
    }

    // ---- one node

    /** Monitor held. */
    private void look(String node) {
        if (node.equals(self) || stopping) {
            return;
        }
        if (looking.add(node)) {
            tasks.start("fence-" + node, () -> lookAt(node));
        } else {
            lookAgain.add(node);
        }
    }

    private void lookAt(String node) {
        while (true) {
            boolean settledNow = false;
            try {
                while (!stopped() && !settledNow) {
                    settledNow = step(node);
                }
            } catch (StoreUnavailableException | StoreRejectedException e) {
                LOG.log(System.Logger.Level.DEBUG, "fence of {0}: {1}", node, e.getMessage());
                monitor.pause(RETRY_NS);
            } catch (IllegalArgumentException e) {
                // A record that is not one of ours: no reason to end a node that is well. The sweep comes back to it.
                LOG.log(System.Logger.Level.ERROR, "fence of {0} can't go on: {1}", node, e.getMessage());
                settledNow = true;
            }
            monitor.lock();
            try {
                if (stopping || settledNow && !lookAgain.remove(node)) {
                    looking.remove(node);
                    return;
                }
            } finally {
                monitor.unlock();
            }
        }
    }

    /** True: there is nothing to be done before something changes, or the next sweep. */
    private boolean step(String node) throws StoreUnavailableException, StoreRejectedException {
        if (!monitor.with(host::mayJudge)) {
            monitor.pause(RETRY_NS);
            return false;
        }
        NodeRecords found = NodeRecords.read(store, keys, node, REQUEST_NS);
        return switch (found.verdict()) {
            case UNKNOWN, PRESENT -> true;
            case LEFT -> settled(node, found.departed());
            case FENCED -> {
                if (!found.hasOpened()) {
                    yield settled(node, found.done());
                }
                if (monitor.with(this::isFirst)) {
                    host.takeOver(node, found.done().modRevision());
                }
                yield true;
            }
            case NEW, GONE -> {
                if (found.verdict() == NodeRecords.Verdict.NEW && !monitor.with(() -> known(node).everMember)) {
                    yield true;
                }
                if (record(found)) {
                    LOG.log(System.Logger.Level.WARNING, "node {0} vanished: it is to be fenced", node);
                }
                yield false;
            }
            case PENDING -> carryOut(found);
        };
    }

    private boolean settled(String node, KeyValue mark) {
        monitor.lock();
        try {
            settled.put(node, mark.modRevision());
        } finally {
            monitor.unlock();
        }
        return true;
    }

    /** One node takes over what a fenced node had open, lest all do the same at once. */
    private boolean isFirst() {
        for (Map.Entry<String, Known> k : known.entrySet()) {
            if (k.getValue().member) {
                return k.getKey().equals(self);
            }
        }
        return false;
    }

    private boolean record(NodeRecords found) throws StoreUnavailableException, StoreRejectedException {
        Membership last;
        long session;
        monitor.lock();
        try {
            last = known(found.node()).membership;
            session = known(found.node()).session;
        } finally {
            monitor.unlock();
        }
        return fence.record(found, last, session);
    }

    private boolean carryOut(NodeRecords found) throws StoreUnavailableException, StoreRejectedException {
        String node = found.node();
        if (monitor.with(() -> severing.contains(node))) {
            return true;
        }
        String[] saw = {""};
        Fence.Result result = fence.carryOut(found, (intent, claim) -> {
            Severing severed = sever(new Fencer.Vanished(node, found.pending().createRevision(), found.admitted(), found.machines()), claim);
            saw[0] = severed.saw();
            return severed;
        });
        switch (result) {
            case DONE -> LOG.log(System.Logger.Level.WARNING, "node {0} is fenced: {1}", node, saw[0]);
            case NOT_CONFIRMED -> LOG.log(System.Logger.Level.INFO, "node {0} is not fenced: {1}", node, saw[0]);
            case TAKEN -> { }
            case CHANGED -> monitor.pause(RETRY_NS / 5);
        }
        return result == Fence.Result.NOT_CONFIRMED || result == Fence.Result.TAKEN;
    }

    /** On a task of its own, as it may take for ever; the claim is kept meanwhile. */
    private Severing sever(Fencer.Vanished vanished, Fence.Claim claim) {
        String node = vanished.node();
        Severing[] answer = new Severing[1];
        monitor.with(() -> severing.add(node));
        tasks.start("sever-" + node, () -> {
            Severing given;
            try {
                given = fencer.sever(vanished);
            } catch (RuntimeException e) {
                given = new Severing(false, "the fencer failed: " + e);
            }
            monitor.lock();
            try {
                answer[0] = given;
                severing.remove(node);
                monitor.changed();
            } finally {
                monitor.unlock();
            }
        });
        long until = monitor.nowNs() + SEVER_LIMIT_NS;
        while (true) {
            monitor.lock();
            try {
                long keepAt = Math.min(until, monitor.nowNs() + KEEP_CLAIM_NS);
                while (answer[0] == null && !stopping && monitor.nowNs() < keepAt) {
                    monitor.awaitQuietly(keepAt);
                }
                if (answer[0] != null) {
                    return answer[0];
                }
                if (stopping) {
                    return new Severing(false, "the controller on " + self + " stopped");
                }
                if (monitor.nowNs() >= until) {
                    return new Severing(false, "the fencer has not answered for " + SEVER_LIMIT_NS / 1_000_000_000L + " s");
                }
            } finally {
                monitor.unlock();
            }
            try {
                fence.keep(claim);
            } catch (StoreUnavailableException e) {
                // If the claim is lost by that, the next step finds so.
                LOG.log(System.Logger.Level.DEBUG, "fence of {0}: the claim is not renewed: {1}", node, e.getMessage());
            }
        }
    }
}
