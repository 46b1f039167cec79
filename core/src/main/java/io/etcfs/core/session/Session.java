package io.etcfs.core.session;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.clock.Monitor;
import io.etcfs.core.clock.Tasks;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.fence.Fencer;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.BatchMarker;
import io.etcfs.core.record.proto.Generation;
import io.etcfs.core.store.Compare;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.LeaseBeat;
import io.etcfs.core.store.LeaseGrant;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.RangeResult;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.TxnResult;
import io.etcfs.core.store.Watch;
import io.etcfs.core.store.WatchEvent;
import io.etcfs.core.store.WatchListener;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;

/**
 * This node's session: the leased key whose create revision is its identity, and until when it may be trusted. It has the {@link Membership} renewed, too.
 *
 * <pre>
 *   state    entered when                                            left when
 *   NONE     before the first session; after {@link #lost}           the key was put while absent            → LIVE
 *   LIVE     the key is ours                                         the lease or the key is seen to be gone → NONE
 * </pre>
 *
 * LIVE is trusted until the last acknowledged keep-alive was <em>sent</em> + its TTL - {@link #MARGIN_NS}. After that nothing is answered until a
 * linearizable read has found the key at its old revision. All fields are under the node's monitor.
 */
public final class Session {
    public static final long BEAT_NS = 500_000_000L;
    public static final long MARGIN_NS = 250_000_000L;
    static final long BEAT_TIMEOUT_NS = 300_000_000L;
    /** For undoing what a start that fails has begun. */
    private static final long TAKE_BACK_NS = 3_000_000_000L;
    private static final long REQUEST_NS = 2_000_000_000L;
    /** Others fence a node 10 s after its end, or at their next sweep. */
    private static final long FENCED_WITHIN_NS = 45_000_000_000L;
    private static final System.Logger LOG = System.getLogger(Session.class.getName());

    /** What the rest of the node does when a session ends. Called without the monitor. */
    public interface Listener {
        /** Trust is gone for good: drop what depended on the session. */
        void sessionLost();

        /** Returns when every device write issued so far has ended. */
        void awaitDeviceQuiet();

        /** A new session is open (and the marker is read back); take the tokens back. It may be gone when this returns; then another one follows. */
        void sessionReopened(BatchMarker markerFound);
    }

    private final Monitor monitor;
    private final MetadataStore store;
    private final Tasks tasks;
    private final Keys keys;
    private final String node;
    private final String incarnation;
    private final Membership membership;
    private final Admission admission;
    private final long sessionTtlSeconds;
    private final Compare sameFilesystem;
    private Listener listener;

    private volatile boolean live;
    private long revision;
    private long leaseId;
    private volatile long trustedUntilNs;
    private long openedAtNs;
    private boolean everReopened;
    private boolean takingBack;
    private long generation;
    private long generationRevision;
    /** Whether this process made the record: no other one of this node ever joined. */
    private boolean generationIsNew;
    private byte[] marker;
    /** The session is only kept alive any more: it is not opened again, and the membership is not registered again. */
    private volatile boolean leaving;
    private volatile boolean closing;
    /** The membership is no longer kept either: the node has left, or does not go on with leaving. */
    private volatile boolean gone;
    private volatile boolean membershipLost;
    private volatile Watch generationWatch;
    /** Which of the two threads that renew leases have not ended. */
    private boolean sessionBeats;
    private boolean membershipBeats;
    private volatile boolean membershipInDoubt;

    /**
     * @param membership what others may know of this process; the generation is filled in
     * @param fencer     by which the device learns of each session, if it has to
     * @param created    the superblock's create revision: the filesystem that is joined is the one that this was read of, and not one made since under the same name
     */
    public Session(Monitor monitor, MetadataStore store, Tasks tasks, Keys keys, String node, String incarnation, io.etcfs.core.record.proto.Membership membership,
            Fencer fencer, long created, long sessionTtlSeconds, long membershipTtlSeconds) {
        this.monitor = monitor;
        this.store = store;
        this.tasks = tasks;
        this.keys = keys;
        this.node = node;
        this.incarnation = incarnation;
        this.membership = new Membership(monitor, store, keys, node, membership, membershipTtlSeconds);
        this.admission = new Admission(store, keys, node, fencer);
        this.sessionTtlSeconds = sessionTtlSeconds;
        this.sameFilesystem = Compare.createRevision(keys.superblock(), created);
    }

    public void listener(Listener listener) {
        this.listener = listener;
    }

    // ---- state, monitor held

    /** Asked without the monitor, too. */
    public boolean trusted() {
        return live && (monitor.nowNs() < trustedUntilNs || Fault.TOKEN_KEPT_PAST_DEADLINE.on());
    }

    public boolean live() {
        return live;
    }

    public long revision() {
        return revision;
    }

    public long leaseId() {
        return leaseId;
    }

    public long generation() {
        return generation;
    }

    public long trustedUntilNs() {
        return live ? trustedUntilNs : 0;
    }

    /** When the present session was opened, if an earlier one of this process was lost; else long ago. */
    public long reopenedAtNs() {
        return everReopened ? openedAtNs : Long.MIN_VALUE / 2;
    }

    public Guard guard() {
        List<Compare> compares = new ArrayList<>();
        if (!Fault.NO_SESSION_COMPARE.on()) {
            compares.add(Compare.createRevision(keys.session(node), revision));
        }
        if (!Fault.NO_GENERATION_COMPARE.on()) {
            compares.add(Compare.modRevision(keys.generation(node), generationRevision));
        }
        return new Guard(compares, List.of(Op.get(keys.session(node)), Op.get(keys.generation(node))));
    }

    public byte[] incarnationMarker(long number) {
        return BatchMarker.newBuilder().setIncarnation(incarnation).setNumber(number).build().toByteArray();
    }

    /** Why a guarded transaction's failure branch was taken, from the two reads it starts with. Throws if the node was fenced. */
    public boolean guardHeld(TxnResult result, int firstRead, long sessionRevision, long generationRevisionThen) {
        KeyValue session = result.ranged(firstRead).only();
        KeyValue gen = result.ranged(firstRead + 1).only();
        if (gen == null || gen.modRevision() != generationRevisionThen) {
            throw fenced();
        }
        return session != null && session.createRevision() == sessionRevision;
    }

    public long generationRevision() {
        return generationRevision;
    }

    // ---- life

    /**
     * Opens the first session. Blocks until an earlier one of this node has gone, but not for ever. Where it can't be opened the node is, if possible, what it was before: one that had left in order has left.
     *
     * @param unwanted asked from time to time: whether to give up
     */
    public void open(BooleanSupplier unwanted) throws StartException {
        awaitPrepared(unwanted);
        boolean opened = false;
        try {
            openPrepared(unwanted);
            opened = true;
        } finally {
            if (!opened) {
                takeBack();
            }
        }
    }

    private void openPrepared(BooleanSupplier unwanted) throws StartException {
        long giveUpAt = monitor.nowNs() + openNs();
        String problem = "etcd does not answer";
        while (monitor.nowNs() < giveUpAt) {
            requireWanted(unwanted);
            try {
                readGeneration();
                if (membership.join(standing(), generation) && putSession(List.of(membership.unchanged()), true)) {
                    monitor.with(() -> sessionBeats = membershipBeats = true);
                    watchGeneration();
                    tasks.startOwn("session", () -> beat(this::beatForever, () -> sessionBeats = false));
                    // Apart: registering again can take many times what a session lives.
                    tasks.startOwn("membership", () -> beat(this::keepMembership, () -> membershipBeats = false));
                    return;
                }
                problem = "node " + node + " is in use: its session is alive in etcd; choose another --node, or stop the daemon that runs it";
            } catch (StoreUnavailableException e) {
                problem = "etcd does not answer: " + e.getMessage();
            } catch (StoreRejectedException e) {
                throw new StartException("etcd refuses: " + e.getMessage());
            } catch (DeviceException e) {
                problem = "the device does not accept this node: " + e.getMessage();
            }
            requireSameFilesystem();
            monitor.pause(200_000_000L);
        }
        throw new StartException(problem);
    }

    private static void requireWanted(BooleanSupplier unwanted) throws StartException {
        if (unwanted.getAsBoolean()) {
            throw new StartException("stopped before it had started");
        }
    }

    /** Says so where that is why the node could not join. */
    private void requireSameFilesystem() throws StartException {
        try {
            KeyValue superblock = store.range(keys.superblock(), null, 0, true, 0, REQUEST_NS).only();
            if (superblock == null || superblock.createRevision() != sameFilesystem.number()) {
                throw new StartException("the filesystem was " + (superblock == null ? "deleted" : "made anew") + " while this node was starting: mount it again if that was meant");
            }
        } catch (StoreUnavailableException | StoreRejectedException e) {
            LOG.log(System.Logger.Level.DEBUG, "the superblock could not be read again: {0}", e.getMessage());
        }
    }

    /** Nothing of this process was written: without arenas, open files and a session the node has left, if it had before. Else it counts as vanished once its membership ends, as it did. */
    private void takeBack() {
        if (Fault.REFUSED_NOT_TAKEN_BACK.on() || !membership.hadLeft() && !monitor.with(() -> generationIsNew)) {
            return;
        }
        try {
            List<Compare> standing = new ArrayList<>(standing());
            standing.add(Compare.absent(keys.session(node)));
            if (!membership.depart(standing, admission.takenBack(), monitor.nowNs() + TAKE_BACK_NS)) {
                LOG.log(System.Logger.Level.WARNING, "if this node became a member it could not be made what it was before: then it counts as vanished in {0} s", membership.ttlSeconds());
            }
        } catch (StoreUnavailableException | StoreRejectedException e) {
            LOG.log(System.Logger.Level.WARNING, "this node could not be made what it was before, and may count as vanished in {0} s: {1}", membership.ttlSeconds(), e.getMessage());
        }
    }

    private long openNs() {
        return (2 * sessionTtlSeconds + 6) * 1_000_000_000L;
    }

    /** As a member the node would not be fenced, which is what the device may be waiting for. */
    private void awaitPrepared(BooleanSupplier unwanted) throws StartException {
        long began = monitor.nowNs();
        while (true) {
            requireWanted(unwanted);
            String problem;
            long limitNs;
            try {
                admission.prepare();
                return;
            } catch (StoreUnavailableException e) {
                problem = "etcd does not answer: " + e.getMessage();
                limitNs = openNs();
            } catch (StoreRejectedException e) {
                throw new StartException("etcd refuses: " + e.getMessage());
            } catch (DeviceException e) {
                problem = "the device does not accept this node: " + e.getMessage();
                limitNs = FENCED_WITHIN_NS;
            }
            if (monitor.nowNs() - began > limitNs) {
                throw new StartException(problem);
            }
            if (monitor.nowNs() - began < 1_000_000_000L) {
                LOG.log(System.Logger.Level.INFO, "waits: {0}", problem);
            }
            monitor.pause(2_000_000_000L);
        }
    }

    private void readGeneration() throws StoreUnavailableException, StoreRejectedException {
        RangeResult read = store.range(keys.generation(node), null, 0, false, 0, REQUEST_NS);
        if (read.only() == null) {
            Outcome outcome = store.commit(new Txn(List.of(Compare.absent(keys.generation(node))), List.of(Op.put(keys.generation(node), Generation.getDefaultInstance().toByteArray())), List.of()), REQUEST_NS);
            boolean ours = outcome instanceof Outcome.Committed;
            monitor.with(() -> generationIsNew |= ours);
            read = store.range(keys.generation(node), null, 0, false, 0, REQUEST_NS);
            if (read.only() == null) {
                throw new StoreUnavailableException("the generation could not be written");
            }
        }
        KeyValue found = read.only();
        monitor.lock();
        try {
            generation = Generation.parseFrom(found.value()).getGeneration();
            generationRevision = found.modRevision();
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record " + found.key());
        } finally {
            monitor.unlock();
        }
    }

    /**
     * Puts the session key if it is absent. An intent to fence the node goes in the same step: each is younger than all sessions of its node, so that what is severed by it
     * is all that they wrote. False: somebody else's is there, or what else was to hold does not.
     *
     * @param first of this process: the batch marker becomes its own, so that an earlier process of the node that was only cut off finds that there was another, whatever
     *              that did and whether it is there still
     */
    private boolean putSession(List<Compare> more, boolean first) throws StoreUnavailableException, StoreRejectedException, DeviceException {
        LeaseGrant lease = store.grantLease(sessionTtlSeconds, REQUEST_NS);
        byte[] value = io.etcfs.core.record.proto.Session.newBuilder().setIncarnation(incarnation).setLease(lease.leaseId()).build().toByteArray();
        List<Compare> compares = new ArrayList<>(more);
        compares.add(Compare.absent(keys.session(node)));
        compares.addAll(standing());
        List<Op> ops = new ArrayList<>(List.of(Op.put(keys.session(node), value, lease.leaseId()), Op.get(keys.batch(node)), Op.delete(keys.fencePending(node))));
        ops.addAll(admission.reads());
        if (first) {
            ops.add(Op.put(keys.batch(node), incarnationMarker(0)));
        }
        Txn txn = new Txn(compares, ops,
                List.of(Op.get(keys.session(node)), Op.get(keys.generation(node)), Op.get(keys.batch(node))));
        Outcome outcome = store.commit(txn, REQUEST_NS);
        byte[] markerFound;
        KeyValue registeredFound;
        long created;
        switch (outcome) {
            case Outcome.Committed(TxnResult r) -> {
                created = r.revision();
                markerFound = first ? incarnationMarker(0) : value(r.ranged(1).only());
                registeredFound = r.ranged(3).only();
            }
            case Outcome.Conflict(TxnResult r) -> {
                KeyValue gen = r.ranged(1).only();
                if (gen == null || gen.modRevision() != generationRevision) {
                    throw new StoreUnavailableException("the generation changed meanwhile");
                }
                store.revokeLease(lease.leaseId(), REQUEST_NS);
                return false;
            }
            case Outcome.Unknown(String cause, boolean noSpace) -> {
                RangeResult read = store.range(keys.session(node), null, 0, false, 0, REQUEST_NS);
                if (read.only() == null || read.only().leaseId() != lease.leaseId()) {
                    store.revokeLease(lease.leaseId(), REQUEST_NS);
                    throw new StoreUnavailableException(cause);
                }
                created = read.only().createRevision();
                markerFound = value(store.range(keys.batch(node), null, 0, false, 0, REQUEST_NS).only());
                registeredFound = store.range(keys.registered(node), null, 0, false, 0, REQUEST_NS).only();
            }
        }
        boolean admitted = false;
        try {
            admission.admit(created, registeredFound, monitor.with(this::generationCompare), () -> keep(lease));
            admitted = true;
        } finally {
            if (!admitted) {
                store.revokeLease(lease.leaseId(), REQUEST_NS);
            }
        }
        monitor.lock();
        try {
            live = true;
            revision = created;
            leaseId = lease.leaseId();
            trustedUntilNs = lease.sentAtNs() + lease.ttlSeconds() * 1_000_000_000L - MARGIN_NS;
            openedAtNs = monitor.nowNs();
            marker = markerFound;
            monitor.changed();
        } finally {
            monitor.unlock();
        }
        return true;
    }

    private static byte[] value(KeyValue kv) {
        return kv == null ? null : kv.value();
    }

    private void keep(LeaseGrant lease) {
        try {
            store.keepAlive(lease.leaseId(), BEAT_TIMEOUT_NS);
        } catch (StoreUnavailableException e) {
            LOG.log(System.Logger.Level.DEBUG, "no answer to a keep-alive: {0}", e.getMessage());
        }
    }

    /** The batch marker as it was when the session was opened; null if there was none. */
    public byte[] markerAtOpen() {
        return marker;
    }

    /** A node that has nothing to publish learns, too, that it was fenced. */
    private void watchGeneration() {
        generationWatch = store.watch(keys.generation(node), null, 0, new WatchListener() {
            @Override
            public void changed(long changedAt, List<WatchEvent> events) {
                tasks.start("generation", () -> stopIfFenced());
            }

            @Override
            public void resynced(long upTo) {
                tasks.start("generation", () -> stopIfFenced());
            }
        });
    }

    private void stopIfFenced() {
        while (!closing) {
            try {
                KeyValue found = store.range(keys.generation(node), null, 0, false, 0, REQUEST_NS).only();
                if (!closing && (found == null || found.modRevision() != monitor.with(() -> generationRevision))) {
                    throw fenced();
                }
                return;
            } catch (StoreUnavailableException | StoreRejectedException e) {
                monitor.pause(200_000_000L);
            }
        }
    }

    private static NodeStoppedError fenced() {
        return new NodeStoppedError("this node was fenced: its generation was raised");
    }

    private void stopWatching() {
        Watch watch = generationWatch;
        if (watch != null) {
            watch.close();
        }
    }

    private void beat(Runnable forever, Runnable ended) {
        try {
            forever.run();
        } finally {
            monitor.lock();
            try {
                ended.run();
                monitor.changed();
            } finally {
                monitor.unlock();
            }
        }
    }

    private void keepMembership() {
        long next = monitor.nowNs() + membership.beatNs();
        while (!closing && !leaving) {
            monitor.pause(BEAT_NS);
            if (!closing && !leaving && (membershipInDoubt || monitor.nowNs() >= next)) {
                next = monitor.nowNs() + membership.beatNs();
                membershipInDoubt = false;
                try {
                    renewMembership();
                } catch (StoreUnavailableException e) {
                    LOG.log(System.Logger.Level.DEBUG, "the membership is not renewed: {0}", e.getMessage());
                    membershipInDoubt = true;
                } catch (StoreRejectedException e) {
                    LOG.log(System.Logger.Level.WARNING, "etcd refused a membership: {0}", e.getMessage());
                }
            }
        }
    }

    /** Between the end of the session and the departure, which many arenas can put off for longer than a membership lives. */
    private void keepMembershipWhileLeaving() {
        long next = monitor.nowNs() + membership.beatNs();
        while (!gone && !membershipLost) {
            monitor.pause(BEAT_NS);
            if (!gone && monitor.nowNs() >= next) {
                try {
                    membershipLost = !membership.keep();
                    next = monitor.nowNs() + membership.beatNs();
                } catch (StoreUnavailableException e) {
                    LOG.log(System.Logger.Level.DEBUG, "the membership is not renewed: {0}", e.getMessage());
                }
            }
        }
    }

    private void renewMembership() throws StoreUnavailableException, StoreRejectedException {
        List<Compare> standing;
        long generationNow;
        long session;
        monitor.lock();
        try {
            standing = standing();
            generationNow = generation;
            session = revision;
        } finally {
            monitor.unlock();
        }
        membership.renew(standing, generationNow, session);
    }

    private void beatForever() {
        while (!closing) {
            long start = monitor.nowNs();
            try {
                LeaseBeat beat = store.keepAlive(leaseId, BEAT_TIMEOUT_NS);
                if (beat.ttlSeconds() <= 0) {
                    reopen("its lease is gone");
                } else {
                    acknowledge(beat);
                }
            } catch (StoreUnavailableException e) {
                LOG.log(System.Logger.Level.DEBUG, "no answer to a keep-alive: {0}", e.getMessage());
                if (monitor.with(() -> monitor.nowNs() > trustedUntilNs)) {
                    // Answers may be lost while the key is fine: nothing to do but to try again at once.
                    monitor.pause(20_000_000L);
                    continue;
                }
            } catch (StoreRejectedException e) {
                LOG.log(System.Logger.Level.WARNING, "etcd refused a renewal: {0}", e.getMessage());
            }
            long sleep = start + BEAT_NS - monitor.nowNs();
            if (sleep > 0) {
                monitor.pause(sleep);
            }
        }
    }

    private void acknowledge(LeaseBeat beat) throws StoreUnavailableException, StoreRejectedException {
        long until = beat.sentAtNs() + beat.ttlSeconds() * 1_000_000_000L - MARGIN_NS;
        boolean lapsed = monitor.with(() -> !trusted());
        if (lapsed) {
            KeyValue found = store.range(keys.session(node), null, 0, false, 0, BEAT_TIMEOUT_NS).only();
            if (found == null || found.createRevision() != revision) {
                reopen("its key is gone");
                return;
            }
        }
        monitor.lock();
        try {
            trustedUntilNs = Math.max(trustedUntilNs, until);
            if (lapsed) {
                LOG.log(System.Logger.Level.INFO, "session trusted again");
            }
            monitor.changed();
        } finally {
            monitor.unlock();
        }
    }

    private void reopen(String why) {
        if (closing || leaving) {
            return;
        }
        LOG.log(System.Logger.Level.WARNING, "session lost: {0}", why);
        monitor.lock();
        try {
            live = false;
            monitor.changed();
            // Tokens that are still being taken back: that ends well, or finds the session gone.
            while (takingBack && !closing) {
                monitor.awaitQuietly(monitor.nowNs() + BEAT_NS);
            }
        } finally {
            monitor.unlock();
        }
        listener.sessionLost();
        if (!Fault.SESSION_OVER_WRITES.on()) {
            listener.awaitDeviceQuiet();
        }
        Repeated noSession = new Repeated();
        while (true) {
            if (closing) {
                return;
            }
            try {
                long before = generationRevision;
                readGeneration();
                if (generationRevision != before) {
                    throw fenced();
                }
                Compare noOtherProcess = noOtherProcess();
                everReopened = true;
                if (putSession(List.of(noOtherProcess), false)) {
                    break;
                }
            } catch (StoreUnavailableException e) {
                LOG.log(noSession.level(monitor.nowNs()), "no new session yet: {0}", e.getMessage());
            } catch (StoreRejectedException e) {
                LOG.log(noSession.level(monitor.nowNs()), "etcd refuses a new session: {0}", e.getMessage());
            } catch (DeviceException e) {
                LOG.log(noSession.level(monitor.nowNs()), "the device does not accept a new session: {0}", e.getMessage());
            }
            monitor.pause(200_000_000L);
        }
        // Whatever took the session may have taken the membership, too.
        membershipInDoubt = true;
        LOG.log(System.Logger.Level.INFO, "session opened again at revision {0}", Long.toString(revision));
        byte[] markerFound = marker;
        monitor.lock();
        try {
            takingBack = true;
        } finally {
            monitor.unlock();
        }
        // On a task of its own: the beats go on meanwhile, however long etcd takes.
        tasks.start("take-back", () -> takeBack(markerFound));
    }

    /**
     * That no other process of this node was started since, elsewhere: it may have given away or changed whatever this one remembers as its own, and have left by now. Nothing of
     * this one can commit meanwhile, as it has no session.
     */
    private Compare noOtherProcess() throws StoreUnavailableException, StoreRejectedException {
        KeyValue found = store.range(keys.batch(node), null, 0, false, 0, REQUEST_NS).only();
        try {
            if (found == null || !BatchMarker.parseFrom(found.value()).getIncarnation().equals(incarnation)) {
                throw new NodeStoppedError("another process was started as node " + node + " while this one was cut off");
            }
            return Compare.modRevision(found.key(), found.modRevision());
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record " + found.key());
        }
    }

    private void takeBack(byte[] markerFound) {
        try {
            listener.sessionReopened(markerFound == null ? null : BatchMarker.parseFrom(markerFound));
            monitor.lock();
            try {
                takingBack = false;
                monitor.changed();
            } finally {
                monitor.unlock();
            }
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record " + keys.batch(node));
        }
    }

    /** Same generation as when it was last read. Monitor held. */
    private Compare generationCompare() {
        return Compare.modRevision(keys.generation(node), generationRevision);
    }

    /** What each change of the node's place among the others compares: it was not fenced, and the filesystem is the one that it read. */
    private List<Compare> standing() {
        Compare sameGeneration = monitor.with(this::generationCompare);
        return Fault.SUPERBLOCK_NOT_COMPARED.on() ? List.of(sameGeneration) : List.of(sameGeneration, sameFilesystem);
    }

    /** What the last steps of leaving compare, without a session: the node was not fenced, and no other process of it has joined. Monitor held. */
    public List<Compare> stillLeaving() {
        return List.of(generationCompare(), membership.unchanged());
    }

    /** Waits for a session that can be trusted, where there has just been an outage. */
    public void awaitTrust(long untilNs) {
        monitor.lock();
        try {
            while (!trusted() && !closing && monitor.nowNs() < untilNs) {
                monitor.awaitQuietly(Math.min(untilNs, monitor.nowNs() + BEAT_NS));
            }
        } finally {
            monitor.unlock();
        }
    }

    /**
     * Ends the session for good, after everything was published and the tokens given back. False: it could not be ended in time. The membership is kept until
     * {@link #depart} or {@link #abandon}.
     */
    public boolean end(long untilNs) {
        leaving = true;
        await(() -> !membershipBeats, untilNs);
        // Where an outage took it and no beat has registered again since: without it there is no clean departure. It takes a session, and may take longer than one lives without beats.
        Insist.on("keep the membership", monitor, untilNs, () -> {
            renewMembership();
            return true;
        });
        tasks.startOwn("membership", this::keepMembershipWhileLeaving);
        closing = true;
        stopWatching();
        // A beat that is under way can end in a new session: that one is to be closed, too.
        await(() -> !sessionBeats, untilNs);
        boolean ended = Insist.on("end the session", monitor, untilNs, () -> {
            store.revokeLease(leaseId, REQUEST_NS);
            return true;
        });
        monitor.lock();
        try {
            live = false;
            monitor.changed();
        } finally {
            monitor.unlock();
        }
        return ended;
    }

    /** As far as is known the membership is still there. Without it there is no departure any more, as it can't be registered without a session. */
    public boolean departurePossible() {
        return !gone && !membershipLost;
    }

    /** Puts the mark of a clean departure in place of the membership. The node owns no arena any more. False: it stays without, and is fenced. */
    public boolean depart(long untilNs) {
        gone = true;
        return membership.depart(standing(), admission.departed(revision), untilNs);
    }

    private void await(BooleanSupplier condition, long untilNs) {
        monitor.lock();
        try {
            while (!condition.getAsBoolean() && monitor.nowNs() < untilNs) {
                monitor.awaitQuietly(untilNs);
            }
        } finally {
            monitor.unlock();
        }
    }

    /** Stops the beats without leaving: for a node that stops as if it had crashed. */
    public void abandon() {
        closing = true;
        gone = true;
        stopWatching();
    }
}
