package io.etcfs.core.fs;

import io.etcfs.core.clock.Monitor;
import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.domain.Dirent;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.domain.PageState;
import io.etcfs.core.domain.ToldEnds;
import io.etcfs.core.domain.Vnode;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.file.IntervalSet;
import io.etcfs.core.kernel.KernelCache;
import io.etcfs.core.record.NameHash;
import io.etcfs.core.session.Session;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

/**
 * What the kernel may believe, and how it is made to forget.
 *
 * <p>Names and attributes are leases: valid until the session's deadline at most, 0 for a domain that was recalled in the last two seconds and while it is
 * being recalled. Notifications only shorten that; where they can't be used or do not come back, the token goes when the granted validity is over.
 *
 * <p>Pages have no time limit: they are dropped before the token goes. A notification blocks on pages that a request of ours holds locked, so requests on bytes
 * are answered while the key is still ours, and what they were answered is dropped again. Requests that wait for a token hold nothing yet: their ranges
 * are left out. Requests that keep coming would keep pages coming: they are made to wait by turns, never for good, as a notification may be stuck behind
 * one of them.
 */
final class KernelView {
    static final long COOL_NS = 2_000_000_000L;
    /** Validity is never more than this, whatever the session's deadline. */
    static final long MAX_VALID_NS = 2_000_000_000L;
    static final long NOTIFY_NS = 50_000_000L;
    /** The same while operations on the domain go on: nobody waits for the notifications, but for the token. */
    private static final long NOTIFY_OPEN_NS = 200_000_000L;
    /** Under a SHARED token as young as this, validity is short: another node changes the domain, and ours may be about to want it EXCLUSIVE. */
    private static final long YOUNG_NS = 150_000_000L;
    /** The kernel counts from when it takes the answer in, in ticks of up to 10 ms, and lets the last one run out. */
    private static final long LATE_NS = 60_000_000L;
    /** An answer that is written later than this after it was made grants nothing: the kernel would believe it for longer than was reckoned with. */
    private static final long STALE_NS = LATE_NS / 2;
    /** A probe that a thread has been sending for this long is stuck behind the request that has the page locked. */
    private static final long PROBE_NS = 50_000_000L;
    /** While pages are dropped, requests on bytes are answered for as long, then kept waiting for as long, by turns. */
    private static final long TURN_NS = 50_000_000L;
    private static final long HOPELESS_NS = 300_000_000L;
    private static final int MAX_NOTIFICATIONS = 4000;
    /** Inodes in one message. */
    private static final int MAX_PRUNED = 256;
    private static final long PAGE = BlockDevice.BLOCK_BYTES;
    private static final long END = Long.MAX_VALUE;

    private final Monitor monitor;
    private final Session session;
    private final Vnodes vnodes;
    private final NameHash nameHash;
    private KernelCache kernel;
    /**
     * Probes on their way, by inode and page. One that is stuck behind a waiting WRITE stays so over many recalls, as the WRITE may wait for longer than
     * that: each recall with a probe of its own would use up the threads that send notifications.
     */
    private final Map<Vnode, Map<Long, Notification>> probes = new IdentityHashMap<>();

    KernelView(Monitor monitor, Session session, Vnodes vnodes, NameHash nameHash) {
        this.monitor = monitor;
        this.session = session;
        this.vnodes = vnodes;
        this.nameHash = nameHash;
    }

    void attach(KernelCache kernel) {
        this.kernel = kernel;
    }

    boolean canPrune() {
        return kernel != null && kernel.canPrune();
    }

    /** Asks the kernel to give back what it does not use; nothing waits for that. */
    void prune(List<Long> inos) {
        if (kernel == null) {
            return;
        }
        for (int i = 0; i < inos.size(); i += MAX_PRUNED) {
            kernel.prune(inos.subList(i, Math.min(inos.size(), i + MAX_PRUNED)).stream().mapToLong(Long::longValue).toArray(), () -> {});
        }
    }

    // ---- granting, monitor held

    /** For how long the kernel may believe what is said of the domain now; ns. */
    private long validity(Domain d) {
        long now = monitor.nowNs();
        if (kernel == null || d.takeBack || othersWant(d)) {
            return 0;
        }
        long valid = Fault.VALIDITY_UNBOUNDED.on() ? MAX_VALID_NS : Math.min(MAX_VALID_NS, session.trustedUntilNs() - now);
        if (valid <= 0) {
            return 0;
        }
        if (d.held == Mode.SHARED) {
            // Where two nodes that share want EXCLUSIVE, their waiting requests hold the directory's lock and names can only run out: those of a new sharer soon.
            valid = Math.min(valid, Math.max(YOUNG_NS, now - d.heldSinceNs));
        }
        if (d.validUntilNs <= now && d.repliesInFlight == 0) {
            // Nothing that was granted before is believed any more.
            d.grantedNames.clear();
            d.grantedTooMany = false;
        }
        d.validUntilNs = Math.max(d.validUntilNs, now + valid + LATE_NS);
        d.lastGrantNs = now;
        return valid;
    }

    /** Nothing is granted: it would be in the way of a recall. */
    private boolean othersWant(Domain d) {
        return d.recalling || d.giving || monitor.nowNs() - d.lastRecalledNs < COOL_NS;
    }

    /** A name that is not there: often looked for by who is about to make it, and then it is in the way of a recall until it has run out. */
    long grantMissing(Call call, Domain d, byte[] name) {
        return d.held == Mode.SHARED && monitor.nowNs() - d.heldSinceNs < YOUNG_NS ? 0 : grantName(call, d, name);
    }

    long grantName(Call call, Domain d, byte[] name) {
        long valid = validity(d);
        if (valid > 0) {
            remember(d, name);
            call.granted(d, monitor.nowNs());
        }
        return valid;
    }

    private static void remember(Domain d, byte[] name) {
        if (d.grantedNames.size() >= Domain.MAX_GRANTED_NAMES) {
            d.grantedTooMany = true;
        } else {
            d.grantedNames.add(ByteBuffer.wrap(name));
        }
    }

    /**
     * The kernel moves a name when this operation is answered, and goes on to believe it at its new place for as long as it did at the old one (fuse_rename_common leaves
     * the time of the entry that it moves). Where others want the directory it is made to drop it, which waits for that answer; else that is left to the next recall.
     */
    void moved(Domain from, byte[] name, Domain to, byte[] newName, boolean directory) {
        if (kernel == null || from.believedUntilNs() <= monitor.nowNs() || Fault.MOVED_NAMES_FORGOTTEN.on()
                || from.movedNames == 0 && !from.grantedTooMany && !from.grantedNames.contains(ByteBuffer.wrap(name))) {
            return;
        }
        if (!othersWant(to)) {
            remember(to, newName);
            to.validUntilNs = Math.max(to.validUntilNs, from.believedUntilNs());
            to.lastGrantNs = Math.max(to.lastGrantNs, from.lastGrantNs);
            return;
        }
        to.movedNames++;
        to.movedUntilNs = Math.max(to.movedUntilNs, from.believedUntilNs());
        if (directory && !kernel.canExpireEntries()) {
            // It runs out.
            return;
        }
        kernel.invalidateEntry(to.id, newName, directory, () -> monitor.with(() -> {
            if (--to.movedNames == 0) {
                to.movedUntilNs = 0;
                monitor.changed();
            }
            return null;
        }));
    }

    long grantAttributes(Call call, Domain d, Vnode v, Inode i) {
        if (kernel != null && v.handles > 0 && i.size % PAGE != 0) {
            if (v.toldEnds == null) {
                v.toldEnds = new ToldEnds();
            }
            v.toldEnds.told(i.size, monitor.nowNs(), d.heldSinceNs);
        }
        // Before it uses an ACL the kernel looks whether the attributes are still valid; if it has to ask for them, it forgets the ACL.
        long valid = v.aclStale ? 0 : validity(d);
        if (valid > 0) {
            v.attributesUntilNs = Math.max(v.attributesUntilNs, monitor.nowNs() + valid + LATE_NS);
            call.granted(d, monitor.nowNs());
        }
        return valid;
    }

    /** The kernel keeps an ACL for as long as the attributes are believed, however often these are granted anew. */
    void aclAnswered(Call call, Domain d, Vnode v) {
        if (kernel != null) {
            v.aclCached = true;
            call.granted(d, monitor.nowNs());
        }
    }

    /**
     * Whether the answer may still grant what it was made with: a daemon that was stopped, or got no processor, can have lost its session since. Without the
     * monitor, which might not be had for long.
     */
    boolean grantsStand(Call call) {
        if (!call.hasGrants() || !call.grantsWithdrawn() && monitor.nowNs() - call.grantedNs() <= STALE_NS || Fault.LATE_ANSWER_GRANTS.on()) {
            return true;
        }
        call.withdrawGrants();
        return false;
    }

    /**
     * An answer that grants something of the domain was written, {@code afterNs} after it was made: where that is long, the thread was held up between the last
     * look and the write, and the kernel believes it that much longer.
     */
    void replied(Domain d, long afterNs) {
        if (afterNs > STALE_NS && !Fault.REPLY_NOT_AWAITED.on()) {
            d.validUntilNs = Math.max(d.validUntilNs, monitor.nowNs() + MAX_VALID_NS + LATE_NS);
            // Which names and inodes it was about is not known any more: they are waited for.
            d.grantedTooMany = true;
        }
    }

    /** The kernel may keep pages of the range now. */
    void answered(Vnode v, long from, long to) {
        v.pagesCached = true;
        if (Fault.NOTIFY_FROM_HANDLER.on()) {
            dropRangeBriefly(v, from, to - from);
        }
        if (v.pages != null && !Fault.ANSWERED_NOT_DROPPED_AGAIN.on()) {
            v.pages.answered(from / PAGE * PAGE, (to + PAGE - 1) / PAGE * PAGE);
        }
    }

    /** The same, to a READ. */
    void answeredRead(Vnode v, long from, long to) {
        answered(v, from, to);
        v.refills.read(from / PAGE * PAGE, (to + PAGE - 1) / PAGE * PAGE);
    }

    /** Whether the kernel may cut what it is given of the file, up to {@code to}, at an end that it was told before: {@link #dropAnswered} once that is answered. Monitor held. */
    boolean mayCut(Domain d, Vnode v, long from, long to) {
        return v.toldEnds != null && !Fault.CUT_PAGES_KEPT.on() && v.toldEnds.mayCut(from, to, PAGE, monitor.nowNs(), d.heldSinceNs);
    }

    /** Has pages dropped that a READ brings which is about to be answered: until then the kernel holds them. */
    void dropAnswered(Vnode v, long from, long to) {
        invalidatePages(v, from / PAGE * PAGE, (to + PAGE - 1) / PAGE * PAGE - from / PAGE * PAGE, () -> {});
    }

    /** Pages that the kernel may have without what a WRITE of the range changes. Monitor held. */
    List<long[]> refilled(Vnode v, long from, long to) {
        return kernel == null || Fault.REFILLED_PAGES_KEPT.on() ? List.of() : v.refills.within(from / PAGE * PAGE, (to + PAGE - 1) / PAGE * PAGE);
    }

    // ---- dropping, without the monitor

    private void invalidatePages(Vnode v, long from, long length, Runnable sending, Runnable done) {
        monitor.with(() -> {
            v.refills.dropBegins();
            return null;
        });
        kernel.invalidatePages(v.ino, from, length, sending, () -> {
            monitor.with(() -> {
                v.refills.dropEnds();
                return null;
            });
            done.run();
        });
    }

    private void invalidatePages(Vnode v, long from, long length, Runnable done) {
        invalidatePages(v, from, length, () -> {}, done);
    }

    void dropCached(Domain d, boolean keepShared) {
        if (kernel == null || Fault.CACHE_KEPT_AFTER_RECALL.on()) {
            return;
        }
        if (!keepShared) {
            dropNames(d);
            dropAcls(d);
        }
        dropPages(d, keepShared);
    }

    /** No operation is admitted any more, and this notification waits for nothing that a request of ours holds. */
    private void dropAcls(Domain d) {
        List<Long> inodes = new ArrayList<>();
        monitor.lock();
        try {
            for (Vnode v : vnodes.withHome(d.id)) {
                if (v.aclCached && !Fault.ACL_KEPT_AFTER_RECALL.on()) {
                    v.aclCached = false;
                    inodes.add(v.ino);
                }
            }
        } finally {
            monitor.unlock();
        }
        Pending pending = new Pending(inodes.size());
        for (long ino : inodes) {
            kernel.invalidateAttributes(ino, pending::done);
        }
        pending.await(END / 2);
    }

    private void dropNames(Domain d) {
        notifyNames(d, NOTIFY_NS);
        monitor.lock();
        try {
            while (monitor.nowNs() < d.believedUntilNs()) {
                monitor.awaitQuietly(d.believedUntilNs());
            }
            forgotten(d);
        } finally {
            monitor.unlock();
        }
    }

    boolean forgetNames(Domain d) {
        return kernel == null || Fault.CACHE_KEPT_AFTER_RECALL.on() || notifyNames(d, NOTIFY_OPEN_NS);
    }

    /** False: where notifications can't be used, or were not all back in time. */
    private boolean notifyNames(Domain d, long limitNs) {
        List<byte[]> names = new ArrayList<>();
        List<Boolean> directories = new ArrayList<>();
        List<Long> inodes = new ArrayList<>();
        boolean notify;
        monitor.lock();
        try {
            long now = monitor.nowNs();
            if (d.validUntilNs <= now) {
                forgotten(d);
                return true;
            }
            for (ByteBuffer b : d.grantedNames) {
                byte[] name = b.array();
                long hash = nameHash.hash63(name);
                Dirent e = d.entry(hash, name);
                names.add(name);
                // One that was dropped from our cache since it was granted can be a directory.
                boolean mayBeDirectory = e == null ? !d.knowsName(hash) : e.isDirectory();
                directories.add(mayBeDirectory && !Fault.DIRECTORIES_NOT_ONLY_EXPIRED.on());
            }
            for (Vnode v : vnodes.withHome(d.id)) {
                if (v.attributesUntilNs > now) {
                    inodes.add(v.ino);
                }
            }
            notify = d.namesCanBeDropped() && names.size() + inodes.size() <= MAX_NOTIFICATIONS
                    && (kernel.canExpireEntries() || !directories.contains(true));
        } finally {
            monitor.unlock();
        }
        if (!notify) {
            return false;
        }
        Pending entries = new Pending(names.size());
        for (int i = 0; i < names.size(); i++) {
            kernel.invalidateEntry(d.id, names.get(i), directories.get(i), entries::done);
        }
        if (!entries.await(Fault.NOTIFY_WITHOUT_LIMIT.on() ? END / 2 : limitNs)) {
            return false;
        }
        Pending attributes = new Pending(inodes.size());
        for (long ino : inodes) {
            kernel.invalidateAttributes(ino, attributes::done);
        }
        if (!attributes.await(limitNs)) {
            return false;
        }
        monitor.lock();
        try {
            forgotten(d);
        } finally {
            monitor.unlock();
        }
        return true;
    }

    private void forgotten(Domain d) {
        d.validUntilNs = 0;
        d.grantedNames.clear();
        d.grantedTooMany = false;
        for (Vnode v : vnodes.withHome(d.id)) {
            v.attributesUntilNs = 0;
        }
    }

    /** Notifications on their way. */
    private final class Pending {
        private int missing;

        Pending(int count) {
            missing = count;
        }

        void done() {
            monitor.lock();
            try {
                missing--;
                monitor.changed();
            } finally {
                monitor.unlock();
            }
        }

        boolean await(long ns) {
            monitor.lock();
            try {
                long until = monitor.nowNs() + ns;
                while (missing > 0 && monitor.nowNs() < until) {
                    monitor.awaitQuietly(until);
                }
                return missing <= 0;
            } finally {
                monitor.unlock();
            }
        }
    }

    /**
     * Makes the kernel drop names that are not the directory's any more. Such a name can be in a directory that is locked for the request that asks: then it is
     * dropped when that has its answer. Monitor held.
     *
     * @return true: nothing is to be waited for
     */
    boolean dropPlaces(Vnode v, List<Vnode.Place> places) {
        if (kernel == null) {
            return true;
        }
        long untilNs = monitor.nowNs() + NOTIFY_NS;
        v.dropsUntilNs = untilNs;
        int[] left = {places.size()};
        for (Vnode.Place p : places) {
            kernel.invalidateEntry(p.parent(), p.name().array(), false, () -> monitor.with(() -> {
                if (--left[0] == 0 && v.dropsUntilNs == untilNs) {
                    v.dropsUntilNs = 0;
                    monitor.changed();
                }
                return null;
            }));
        }
        return v.dropsUntilNs == 0;
    }

    // ---- pages

    /** One notification about a range, and what was answered in it since it was sent. */
    private final class Notification {
        final Vnode vnode;
        final long from;
        final long to;
        PageState state;
        long queuedNs;
        /** When a thread set about sending it; before that its not being back says nothing. */
        long sendingNs;
        boolean sending;
        IntervalSet answered = new IntervalSet();
        boolean back;

        Notification(Vnode vnode, long from, long to) {
            this.vnode = vnode;
            this.state = vnode.pages;
            this.from = from;
            this.to = to;
            this.queuedNs = monitor.nowNs();
        }

        void sending() {
            monitor.lock();
            try {
                sending = true;
                sendingNs = monitor.nowNs();
            } finally {
                monitor.unlock();
            }
        }

        /** Not back, and sent long enough ago for the page to be locked. */
        boolean stuck() {
            return sending && monitor.nowNs() - sendingNs >= PROBE_NS;
        }

        /** From an earlier recall and not back yet: counts for this one as if it was sent now. */
        void takeOver() {
            state = vnode.pages;
            queuedNs = monitor.nowNs();
            sendingNs = queuedNs;
            answered = new IntervalSet();
            state.outstanding.put(this, answered);
        }

        void send() {
            invalidatePages(vnode, from, to == END ? 0 : to - from, this::sending, this::done);
        }

        void done() {
            monitor.lock();
            try {
                back = true;
                state.outstanding.remove(this);
                forgetProbe(this);
                state.dropped.add(from, to);
                for (long[] gap : answered.intervals()) {
                    state.dropped.remove(gap[0], gap[1]);
                }
                monitor.changed();
            } finally {
                monitor.unlock();
            }
        }
    }

    private void forgetProbe(Notification n) {
        Map<Long, Notification> ofInode = probes.get(n.vnode);
        if (ofInode != null && ofInode.remove(n.from, n) && ofInode.isEmpty()) {
            probes.remove(n.vnode);
        }
    }

    private void dropPages(Domain d, boolean keepShared) {
        List<Vnode> targets = new ArrayList<>();
        monitor.lock();
        try {
            for (Vnode v : vnodes.withHome(d.id)) {
                if (v.pagesCached && (!keepShared || v.writableHandles > 0)) {
                    v.pages = new PageState();
                    targets.add(v);
                }
            }
            if (targets.isEmpty()) {
                d.dataClosed = !keepShared;
                return;
            }
            // Write-backs of these inodes wait for room no longer.
            monitor.changed();
        } finally {
            monitor.unlock();
        }
        long startedNs = monitor.nowNs();
        while (true) {
            List<Notification> toSend = new ArrayList<>();
            monitor.lock();
            try {
                boolean clean = true;
                closePages(d, (monitor.nowNs() - startedNs) / TURN_NS % 2 == 1 && !Fault.PAGES_NEVER_CLOSED.on());
                // What became cached meanwhile (a file opened during the recall) has to go, too.
                if (!keepShared) {
                    for (Vnode v : vnodes.withHome(d.id)) {
                        if (v.pagesCached && v.pages == null) {
                            v.pages = new PageState();
                            targets.add(v);
                            monitor.changed();
                        }
                    }
                }
                for (Vnode v : targets) {
                    clean &= plan(v, toSend);
                }
                if (clean || keepShared && toSend.isEmpty() && targets.stream().allMatch(v -> v.pages.outstanding.isEmpty())) {
                    d.dataClosed = !keepShared;
                    closePages(d, false);
                    for (Vnode v : targets) {
                        v.pagesCached = keepShared && !v.pages.dropped.missing(0, END).isEmpty();
                        v.pages = null;
                    }
                    return;
                }
            } finally {
                monitor.unlock();
            }
            toSend.forEach(Notification::send);
            monitor.lock();
            try {
                if (toSend.stream().noneMatch(n -> n.back)) {
                    monitor.awaitQuietly(monitor.nowNs() + PROBE_NS);
                }
            } finally {
                monitor.unlock();
            }
        }
    }

    private void closePages(Domain d, boolean closed) {
        if (d.pagesClosed != closed) {
            d.pagesClosed = closed;
            monitor.changed();
        }
    }

    /** Which notifications the inode needs now; true if nothing is left to drop. Monitor held. */
    private boolean plan(Vnode v, List<Notification> toSend) {
        IntervalSet left = new IntervalSet();
        for (long[] gap : v.pages.dropped.missing(0, END)) {
            left.add(gap[0], gap[1]);
        }
        boolean clean = true;
        for (Vnode.WaitingRange w : v.waiting) {
            if (w.lockedFrom() == w.lockedTo() || Fault.WAITING_RANGES_IGNORED.on()) {
                continue;
            }
            boolean dropped = v.pages.dropped.contains(w.lockedFrom(), w.lockedTo());
            left.remove(w.lockedFrom(), w.lockedTo());
            if (w.write() && !dropped) {
                // The page is locked only if the kernel did not have it whole. A probe tells: soon back means dropped, else it holds nothing.
                Map<Long, Notification> ofInode = probes.computeIfAbsent(v, x -> new HashMap<>());
                Notification probe = ofInode.get(w.lockedFrom());
                if (probe == null) {
                    // Also where the last one is back and the page was answered since.
                    probe = new Notification(v, w.lockedFrom(), w.lockedTo());
                    ofInode.put(w.lockedFrom(), probe);
                    v.pages.outstanding.put(probe, probe.answered);
                    toSend.add(probe);
                    clean = false;
                } else if (probe.state != v.pages) {
                    probe.takeOver();
                    clean = false;
                } else if (!probe.stuck()) {
                    clean = false;
                }
            }
        }
        for (long[] range : left.intervals()) {
            clean = false;
            boolean onItsWay = false;
            for (Object o : v.pages.outstanding.keySet()) {
                Notification n = (Notification) o;
                // One that may be stuck behind a request that waits does not count.
                onItsWay |= n.from <= range[0] && n.to >= range[1] && !stuck(v, n);
            }
            if (!onItsWay) {
                Notification n = new Notification(v, range[0], range[1]);
                v.pages.outstanding.put(n, n.answered);
                toSend.add(n);
            }
        }
        return clean;
    }

    private boolean stuck(Vnode v, Notification n) {
        for (Vnode.WaitingRange w : v.waiting) {
            if (w.lockedFrom() < n.to && w.lockedTo() > n.from) {
                return true;
            }
        }
        return false;
    }

    /** A change of size that waits while an invalidation of the inode is stuck behind the write-back it holds up. Monitor held. */
    boolean sizeChangeIsHopeless(Vnode v) {
        if (v.pages == null) {
            return false;
        }
        for (Object o : v.pages.outstanding.keySet()) {
            if (monitor.nowNs() > ((Notification) o).queuedNs + HOPELESS_NS) {
                return true;
            }
        }
        return false;
    }

    /** Drops a range and the attributes on this node after a write that the kernel did not place itself. Waits a little at most. */
    void dropRangeBriefly(Vnode v, long from, long length) {
        dropRange(v, from, length, Fault.NOTIFY_FROM_HANDLER.on() ? END / 2 : NOTIFY_NS);
    }

    /** Writes back and drops a range, and drops the attributes, on this node; false: that was not done within this time. */
    boolean dropRange(Vnode v, long from, long length, long ns) {
        if (kernel == null) {
            return true;
        }
        Pending pending = new Pending(1);
        invalidatePages(v, from, length, pending::done);
        return pending.await(ns);
    }

    /**
     * Drops what {@link #refilled} told, before the WRITE is answered: until then no other write(2) puts bytes into pages of this inode. Waits a little at most: only the
     * READ that brought a page may hold it.
     */
    void dropRefilled(Vnode v, List<long[]> ranges) {
        Pending pending = new Pending(ranges.size());
        for (long[] r : ranges) {
            kernel.invalidatePages(v.ino, r[0], r[1] - r[0], pending::done);
        }
        if (!pending.await(NOTIFY_NS)) {
            // On its way still when the next write(2) begins: as any other notification.
            invalidatePages(v, ranges.getFirst()[0], ranges.getLast()[1] - ranges.getFirst()[0], () -> {});
        }
    }

    /**
     * Drops the attributes on this node after a change that the kernel does not count as one of them: it would believe an answer from before that comes later. Waits
     * a little at most.
     */
    void dropAttributesBriefly(long ino) {
        if (kernel != null) {
            Pending pending = new Pending(1);
            kernel.invalidateAttributes(ino, pending::done);
            pending.await(NOTIFY_NS);
        }
    }

    /** Asks the kernel once to drop the inode's pages, whatever is cached under which token. Monitor held. */
    void dropPagesOnce(Vnode v) {
        if (kernel != null) {
            invalidatePages(v, 0, 0, () -> {});
        }
    }

    /** The session is gone: pages that were cached under its tokens go as soon as the kernel lets them. Monitor held. */
    void lost(Domain d) {
        for (Vnode v : vnodes.withHome(d.id)) {
            if (v.aclCached && kernel != null && !Fault.ACL_OUTLIVES_SESSION.on()) {
                v.aclCached = false;
                v.aclStale = true;
                kernel.invalidateAttributes(v.ino, () -> monitor.with(() -> v.aclStale = false));
            }
            if (v.pagesCached && kernel != null && !Fault.PAGES_OUTLIVE_SESSION.on()) {
                v.pagesCached = false;
                invalidatePages(v, 0, 0, () -> {});
            }
        }
        d.grantedNames.clear();
        d.grantedTooMany = false;
    }
}
