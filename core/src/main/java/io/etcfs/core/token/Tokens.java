package io.etcfs.core.token;

import io.etcfs.core.clock.Monitor;
import io.etcfs.core.clock.Tasks;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.fault.Rare;
import io.etcfs.core.pipeline.Pipeline;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.SessionRef;
import io.etcfs.core.session.Session;
import io.etcfs.core.store.MetadataStore;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * The tokens of this node: getting them, giving them on when others want them, losing and taking them back.
 *
 * <p>Operations ask with {@link #require}. A task for each resource gets what is asked for, as long as somebody still wants it; a task for each recalled
 * resource gives it on with the batch that publishes the last of what was done under it ({@link Acquirer}, {@link Recaller}). Both watch {@code lock:} and
 * {@code want:} ({@link TokenWatch}), and neither relies on it: waiters try again every {@link Acquirer#RETRY_NS} and renew their wants.
 */
public final class Tokens {
    /** A demand that no waiting operation renewed is given up after this. */
    static final long DEMAND_NS = 3_000_000_000L;
    static final long OWNER_REVISION_UNKNOWN = -1;
    /** A token recalled from here is not asked for ahead of its use for so long: somebody changes the domain. */
    private static final long ASK_AHEAD_AFTER_NS = 2_000_000_000L;
    /** Who changed a domain so short a time ago will change more of it: longer than all others' turns take. */
    private static final long CHANGES_ON_NS = 1_000_000_000L;
    /** How many of the domains changed last are remembered. */
    private static final int LAST_CHANGED = 8;
    /** A directory deeper than that below another is not looked for. */
    private static final int MAX_DEPTH = 16;
    static final int MAX_TOKENS = 16_384;
    static final int TRIM_AT_ONCE = 2_000;
    /** Names and inodes dropped under one hold of the monitor, and in one go. */
    private static final int DROP_AT_ONCE = 40_000;
    private static final int DROP_STEP = 4_000;
    private static final long RARELY_NS = 150_000_000L;
    private static final long TRIM_IDLE_NS = 1_000_000_000L;
    /** What alone takes half of what may be cached is soon read again where it is used at all. */
    private static final long TRIM_LARGE_IDLE_NS = 10_000_000_000L;
    /** The cluster-wide token that moving a directory to another parent takes; no inode has this number. */
    public static final long RENAME_TOKEN = 0;
    static final long REQUEST_NS = 2_000_000_000L;

    private final Monitor monitor;
    private final Tasks tasks;
    private final Session session;
    private final Pipeline pipeline;
    private final Keys keys;
    private final String node;
    private final long maxCachedBytes;
    private final TokenRecords records;
    private final Recaller recaller;
    private final Acquirer acquirer;
    private final Resurrection resurrection;
    private final TokenWatch watch;
    private final DirectoryReads reads;
    private final Map<Long, Domain> domains = new TreeMap<>();
    /** By resource: the highest revision of a key of this session's that a delete was sent for as an unknown one, which may still be on its way. */
    private final Map<Long, Long> givenBack = new TreeMap<>();
    /** The domains changed last, the latest first; 0 after them. */
    private final long[] lastChanged = new long[LAST_CHANGED];
    private Host host;
    private long trimmed;
    /** {@link Rare#DIRECTORIES_IN_PART} */
    private long rarelyDroppedNs;
    private long rarelyDroppedBatch;
    private boolean leaving;
    private boolean stopping;

    /** @param maxCachedBytes about how much of the heap may be taken by what is cached under tokens that are not in use */
    public Tokens(Monitor monitor, MetadataStore store, Tasks tasks, Session session, Pipeline pipeline, Keys keys, String node, long maxCachedBytes) {
        this.maxCachedBytes = maxCachedBytes;
        this.monitor = monitor;
        this.tasks = tasks;
        this.session = session;
        this.pipeline = pipeline;
        this.keys = keys;
        this.node = node;
        Parts parts = new Parts(monitor, store, new Convoy(monitor, store, Convoy.MOST_READS), new Convoy(monitor, store, Convoy.MOST_WRITES), tasks, session, pipeline, keys, node);
        records = new TokenRecords(parts);
        recaller = new Recaller(this, parts);
        acquirer = new Acquirer(this, parts, records, recaller);
        resurrection = new Resurrection(this, parts, recaller);
        watch = new TokenWatch(this, parts, records, recaller);
        reads = new DirectoryReads(parts, () -> maxCachedBytes / 8 * 7 - cachedBytes());
    }

    public void host(Host host) {
        this.host = host;
    }

    Host host() {
        return host;
    }

    public void start() {
        watch.start();
    }

    public void stop() {
        monitor.lock();
        try {
            stopping = true;
            monitor.changed();
        } finally {
            monitor.unlock();
        }
        watch.stop();
    }

    /** The node ends: nothing is asked for, given on or waited for any more. Monitor held. */
    boolean stopping() {
        return stopping;
    }

    /** All tokens are being given up: none is asked for any more. Monitor held. */
    boolean leaving() {
        return leaving;
    }

    public Domain domain(long resource) {
        return domains.computeIfAbsent(resource, id -> new Domain(id, Recaller.MIN_HOLD_NS));
    }

    /** The domain if anything is known of it, else null. */
    public Domain known(long resource) {
        return domains.get(resource);
    }

    public Collection<Domain> all() {
        return domains.values();
    }

    /** Of a token that is not held nothing is kept where there are too many. Monitor held. */
    void dropIfUnused(Domain d) {
        if (domains.size() > maxTokens() && droppable(d)) {
            domains.remove(d.id);
        }
    }

    /** A delete of our key at that revision, outside of a batch, is about to be sent. Monitor held. */
    void givingBack(long resource, long lockRevision) {
        givenBack.merge(resource, lockRevision, Math::max);
    }

    /** It committed, and can do nothing any more. Monitor held. */
    void gaveBack(long resource, long lockRevision) {
        givenBack.remove(resource, lockRevision);
    }

    /** Whether our key at that revision can be deleted by a request that is still on its way. Monitor held. */
    boolean mayBeGivenBack(long resource, long lockRevision) {
        return givenBack.getOrDefault(resource, 0L) >= lockRevision;
    }

    /** Nobody relies on anything that is remembered of it. */
    private boolean droppable(Domain d) {
        return d.held == Mode.NONE && !d.acquiring && !d.recalling && !d.giving && !d.takeBack && d.pins == 0 && d.namespaceWaiters == 0 && d.repliesInFlight == 0 && d.id != RENAME_TOKEN
                && d.wants.isEmpty() && d.demand == Mode.NONE && d.believedUntilNs() <= monitor.nowNs();
    }

    private static int maxTokens() {
        return Rare.SMALL_CACHE.on() ? 2 : MAX_TOKENS;
    }

    /** @param partReads transactions that read what was not cached of a domain that is cached in part */
    public record Counters(int held, long acquires, long recalls, long trimmed, long cachedBytes, long partReads) {}

    /** What is not cached of domains that are cached in part. */
    public DirectoryReads reads() {
        return reads;
    }

    /** When a page of a directory that is being read came last (ns of the clock): large ones take longer than an operation waits for an answer. */
    public long lastPageNs() {
        return Math.max(records.lastPageNs(), reads.lastPageNs());
    }

    public Counters counters() {
        int held = 0;
        for (Domain d : domains.values()) {
            if (d.held != Mode.NONE) {
                held++;
            }
        }
        return new Counters(held, acquirer.acquires(), recaller.recalls(), trimmed, cachedBytes(), reads.reads());
    }

    private long cachedBytes() {
        long cached = 0;
        for (Domain d : domains.values()) {
            if (d.held != Mode.NONE) {
                cached += d.cachedBytes();
            }
        }
        return cached;
    }

    // ---- operations ask, monitor held

    /** All of them usable for names and attributes, or {@link Blocked}. */
    public void require(Attempt attempt, Need... needs) {
        if (!session.trusted()) {
            throw Blocked.INSTANCE;
        }
        boolean all = true;
        for (Need n : needs) {
            Domain d = domain(n.resource());
            if (!d.usable(n.mode())) {
                all = false;
                demand(d, n.mode());
            }
        }
        if (all) {
            for (Need n : needs) {
                used(domain(n.resource()), n.mode());
            }
            return;
        }
        if (needs.length > 1 && attempt.mayWait) {
            List<Domain> before = List.copyOf(attempt.pinned);
            attempt.unpin();
            Need[] ordered = needs.clone();
            java.util.Arrays.sort(ordered, Comparator.comparingLong(Need::resource));
            for (Need n : ordered) {
                Domain d = domain(n.resource());
                if (!d.usable(n.mode())) {
                    break;
                }
                attempt.pin(d);
            }
            // Not otherwise: two operations that both wait would wake each other for as long as they do.
            if (!attempt.pinned.containsAll(before)) {
                monitor.changed();
            }
        }
        throw Blocked.INSTANCE;
    }

    /** Usable for an operation on bytes: also while the kernel's cache is being dropped. */
    public Domain requireForData(long resource, Mode mode) {
        Domain d = domain(resource);
        if (!session.trusted()) {
            throw Blocked.INSTANCE;
        }
        if (!d.usableForData(mode)) {
            demand(d, mode);
            throw Blocked.INSTANCE;
        }
        used(d, mode);
        return d;
    }

    private void used(Domain d, Mode mode) {
        // While a change is not published, once: not at each try of an operation that waits for what was dropped.
        if (Rare.DIRECTORIES_IN_PART.on() && (monitor.nowNs() - rarelyDroppedNs > RARELY_NS || d.lastBatch == pipeline.openNumber() && d.lastBatch != rarelyDroppedBatch)) {
            rarelyDroppedNs = monitor.nowNs();
            rarelyDroppedBatch = d.lastBatch;
            dropParts(Long.MAX_VALUE);
        }
        d.unserved = false;
        d.lastUsedNs = monitor.nowNs();
        if (mode == Mode.EXCLUSIVE) {
            d.lastChangedNs = d.lastUsedNs;
            if (lastChanged[0] != d.id) {
                noteChanged(d.id);
            }
        }
    }

    private void noteChanged(long resource) {
        int at = 1;
        while (at < LAST_CHANGED - 1 && lastChanged[at] != resource) {
            at++;
        }
        System.arraycopy(lastChanged, 0, lastChanged, 1, at);
        lastChanged[0] = resource;
    }

    /** The directory in this one on the way to what was changed here last below it, or null. Monitor held. */
    Domain towardsLastChange(Domain d) {
        for (long resource : lastChanged) {
            Domain below = known(resource);
            for (int depth = 0; depth < MAX_DEPTH && below != null && below != d && below.directory() != null; depth++) {
                long parent = below.directory().parent;
                if (parent == d.id && below.id != d.id) {
                    return below;
                }
                below = parent == below.id ? null : known(parent);
            }
        }
        return null;
    }

    void demand(Domain d, Mode mode) {
        demand(d, mode, false);
    }

    private void demand(Domain d, Mode mode, boolean ahead) {
        if (d.held.atLeast(mode) && !d.giving) {
            return;
        }
        long now = monitor.nowNs();
        if (now > d.demandUntilNs) {
            d.demand = Mode.NONE;
        }
        if (!d.demand.atLeast(mode)) {
            d.demand = mode;
            d.events++;
        }
        d.demandUntilNs = now + DEMAND_NS;
        d.demandAhead = ahead;
        startAcquire(d);
    }

    /**
     * Asks for SHARED of a domain that nobody waits for yet. False: it is held or on its way already, or was recalled a moment ago. Monitor held.
     *
     * @param likelyElsewhere another node is likely to hold it in the way
     */
    public boolean askAhead(long resource, boolean likelyElsewhere) {
        Domain d = domain(resource);
        if (d.held != Mode.NONE || d.acquiring || d.recalling || d.giving || monitor.nowNs() - d.lastRecalledNs < ASK_AHEAD_AFTER_NS) {
            dropIfUnused(d);
            return false;
        }
        d.likelyElsewhere = likelyElsewhere;
        demand(d, Mode.SHARED, true);
        return d.acquiring;
    }

    /** If the token is not here, another node is likely to hold it in the way. Monitor held. */
    public void expectElsewhere(long resource) {
        Domain d = domain(resource);
        d.likelyElsewhere |= d.held == Mode.NONE && !d.acquiring;
    }

    void startAcquire(Domain d) {
        if (!d.acquiring && !d.giving && !d.namesClosed && !leaving && !stopping && d.demand != Mode.NONE) {
            if (changesOn(d)) {
                d.demand = Mode.EXCLUSIVE;
            }
            d.acquiring = true;
            tasks.start("acquire-" + d.id, () -> acquirer.acquire(d));
        }
    }

    /**
     * Several nodes change the domain by turns, and this is one of them. Before a name is made it is looked up: to share for that and want the rest then costs two
     * handovers a turn, and both wait for what the kernel was told meanwhile.
     */
    private boolean changesOn(Domain d) {
        return d.held == Mode.NONE && !d.demandAhead && d.handedRevision == 0 && monitor.nowNs() - d.lastChangedNs < CHANGES_ON_NS;
    }

    /** A directory made under its parent's EXCLUSIVE: held from birth. Monitor held; the directory's inode joins the open batch beside it. */
    public Domain born(long ino) {
        Domain d = domain(ino);
        d.held = Mode.EXCLUSIVE;
        d.loaded = true;
        d.birthUnpublished = true;
        d.bornBatch = pipeline.openNumber();
        d.epoch = session.revision();
        d.suspects = List.of();
        d.heldSinceNs = monitor.nowNs();
        d.lastUsedNs = d.heldSinceNs;
        pipeline.ride(new Birth(session, keys, node, d));
        pipeline.touch(d);
        return d;
    }

    // ---- giving back

    /** Gives up a token that nobody asked for: an idle one, or that of a removed directory. Monitor held. */
    public void release(Domain d) {
        if (releasable(d)) {
            recaller.startRecall(d, true);
        }
    }

    private static boolean releasable(Domain d) {
        return d.held != Mode.NONE && d.loaded && !d.recalling && !d.giving && !d.takeBack && !d.birthUnpublished && d.pins == 0;
    }

    /**
     * Gives idle tokens back, longest unused first, while there are too many or too much is cached under them. Those of which the kernel may still believe
     * something wait for a later call: nothing has to be notified then. Of large ones that are in use a part is dropped and the token stays. Monitor held. Returns
     * whether there is more to drop.
     */
    public boolean trim() {
        List<Domain> held = new ArrayList<>();
        long cached = 0;
        for (Domain d : domains.values()) {
            if (d.held != Mode.NONE && d.loaded) {
                held.add(d);
                cached += d.cachedBytes();
            }
        }
        int left = held.size();
        if (left > maxTokens() || cached > maxCachedBytes) {
            held.sort(Comparator.comparingLong(d -> d.lastUsedNs));
            long now = monitor.nowNs();
            int started = 0;
            for (Domain d : held) {
                long idle = now - d.lastUsedNs;
                if (started == TRIM_AT_ONCE || left <= maxTokens() / 8 * 7 && cached <= maxCachedBytes / 8 * 7 || idle < (Rare.SMALL_CACHE.on() ? 10_000_000L : TRIM_IDLE_NS)) {
                    break;
                }
                if (d.believedUntilNs() > now && !Rare.SMALL_CACHE.on() || d.cachedBytes() > maxCachedBytes / 2 && idle < TRIM_LARGE_IDLE_NS || !releasable(d)) {
                    continue;
                }
                left--;
                cached -= d.cachedBytes();
                started++;
                trimmed++;
                release(d);
            }
        }
        if (domains.size() > maxTokens()) {
            domains.values().removeIf(this::droppable);
        }
        return dropParts(cached);
    }

    /** Returns whether there is more to drop. */
    private boolean dropParts(long cached) {
        long tooMuch = cached > maxCachedBytes ? cached - maxCachedBytes / 8 * 7 : 0;
        if (tooMuch == 0) {
            return false;
        }
        List<Domain> large = new ArrayList<>();
        for (Domain d : domains.values()) {
            if (droppableInPart(d)) {
                large.add(d);
            }
        }
        large.sort(Comparator.comparingLong(d -> d.lastUsedNs));
        int left = DROP_AT_ONCE;
        for (Domain d : large) {
            while (tooMuch > 0 && left > 0) {
                long before = d.cachedBytes();
                int names = d.entries.size();
                int inodes = d.inodes.size();
                int most = Math.min(left, DROP_STEP);
                d.dropInodes(most, pipeline.committedNumber(), i -> host.inUse(i.ino));
                d.dropNames(most, pipeline.committedNumber());
                int gone = names + inodes - d.entries.size() - d.inodes.size();
                tooMuch -= before - d.cachedBytes();
                left -= Math.max(gone, 1);
                if (gone < most) {
                    break;
                }
            }
        }
        return left <= 0 && tooMuch > 0;
    }

    /** Of what is about to change hands, or is not settled, nothing is dropped; nor of a directory that was removed, in whose domain what lives is counted. */
    private boolean droppableInPart(Domain d) {
        return d.held != Mode.NONE && d.loaded && !d.giving && !d.takeBack && !d.birthUnpublished && d.directory() != null && d.wholeUntilNs <= monitor.nowNs()
                && d.cachedPieces() > 2 * TokenRecords.page();
    }

    /** Gives up all tokens; returns when none is left or the time is over. */
    public boolean releaseAll(long untilNs) {
        monitor.lock();
        try {
            leaving = true;
            while (monitor.nowNs() < untilNs && !stopping) {
                boolean any = false;
                for (Domain d : List.copyOf(domains.values())) {
                    if (d.held != Mode.NONE) {
                        any = true;
                        release(d);
                    }
                }
                if (!any) {
                    return true;
                }
                monitor.awaitQuietly(monitor.nowNs() + 100_000_000L);
            }
            return false;
        } finally {
            monitor.unlock();
        }
    }

    // ---- suspects

    /**
     * Clears suspects of domains that are held: those whose sessions have ended. What they wrote is made durable before, as whoever is shown it may have nothing
     * of its own to flush. Asks etcd and the device; without the monitor.
     */
    public void clearSuspects() throws DeviceException {
        Map<String, Long> endedBefore = records.endedBefore(monitor.with(this::suspectNodes));
        if (!monitor.with(() -> anyEnded(endedBefore))) {
            return;
        }
        if (!Fault.TAKEN_BEFORE_FLUSH.on()) {
            pipeline.flushWhatOthersWrote();
        }
        monitor.lock();
        try {
            for (Domain d : domains.values()) {
                if (!d.suspects.isEmpty()) {
                    d.suspects = d.suspects.stream().filter(s -> !ended(s, endedBefore)).toList();
                }
            }
            monitor.changed();
        } finally {
            monitor.unlock();
        }
    }

    private Set<String> suspectNodes() {
        Set<String> nodes = new TreeSet<>();
        for (Domain d : domains.values()) {
            if (d.held != Mode.NONE) {
                d.suspects.forEach(s -> nodes.add(s.getNode()));
            }
        }
        return nodes;
    }

    private boolean anyEnded(Map<String, Long> endedBefore) {
        return domains.values().stream().anyMatch(d -> d.suspects.stream().anyMatch(s -> ended(s, endedBefore)));
    }

    private static boolean ended(SessionRef suspect, Map<String, Long> endedBefore) {
        return endedBefore.getOrDefault(suspect.getNode(), 0L) > suspect.getSession();
    }

    // ---- losing and taking back

    /** The session is gone. What unpublished changes depend on is kept, to be taken back; all else is forgotten. Monitor held. */
    public void sessionLost() {
        givenBack.clear();
        resurrection.sessionLost();
    }

    /**
     * Takes the journal's tokens back under the new session, each only if nobody was its holder meanwhile: all, or the node stops. False: that session is gone,
     * too, and what is left is for the next. Without the monitor.
     */
    public boolean takeBack() {
        return resurrection.takeBack();
    }
}
