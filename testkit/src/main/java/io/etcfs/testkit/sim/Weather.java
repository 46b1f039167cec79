package io.etcfs.testkit.sim;

import java.util.Collections;
import java.util.EnumSet;
import java.util.Random;
import java.util.Set;

/**
 * What goes wrong in a run. Each seed draws its own mix.
 *
 * <p>Nothing here may ever lose what fsync acknowledged, mix up bytes, or show two nodes different filesystems.
 */
public final class Weather {
    public enum Kind {
        /** Messages take up to 30 ms, some up to 300: every network has a tail, and order between connections is nobody's promise. */
        SLOW_NETWORK,
        /** Requests or answers are lost (a connection breaks): etcd's client can't tell which, so an outcome is unknown. */
        LOST_MESSAGES,
        /** A request is carried out long after it was given up (a member was slow): guards must make it harmless. */
        LATE_REQUESTS,
        /** A request arrives twice (a proxy sends again): each transaction may count once. */
        TWICE,
        /** A node can't reach etcd for up to 5 s, longer than a session lives. */
        PARTITION,
        /** Outages last for 5 to 12 s: sessions end one after the other, and who comes back finds that others have come and gone. */
        LONG_OUTAGES,
        /** etcd answers nobody for up to 5 s: all sessions end at once. */
        ETCD_STOPS,
        /** Watch events come up to 400 ms late: wake-ups may be late, decisions may not depend on them. */
        SLOW_WATCHES,
        /** A watch breaks and misses what was compacted. */
        WATCH_GAPS,
        /** etcd ends leases up to 1 s late, never early. */
        LATE_LEASES,
        /** A daemon is stopped for up to 5 s and goes on in the belief that no time has passed (SIGSTOP, a long garbage collection, a paused machine). */
        PAUSE,
        /** A daemon is killed at any step, and mounted again. What it sent to the device before still arrives. */
        KILL,
        /** A node is fenced, one that can't reach etcd or one that can: its generation is raised. It must publish nothing more and end. */
        FENCED,
        /** All daemons end and the device loses, by sectors of 512 bytes, any part of what was not flushed. */
        POWER_LOSS,
        /** The daemon's threads get no processor for up to 250 ms, an answer made and not yet written. */
        BUSY_DAEMON,
        /** Clocks are up to 1 % fast or slow. */
        DRIFT,
        /** Somebody sets the wall clock by hours: it is for timestamps only. */
        WALL_CLOCK_STEPS,
        /** Device accesses take up to 100 ms, each for itself: there is no order without a wait. */
        SLOW_DEVICE,
        /** The kernel takes up to 25 ms to take an answer in, and notifications to be sent. */
        SLOW_KERNEL,
        /**
         * A write is on its way to the device for up to 15 s (a path that hangs and comes back), and its daemon is killed, stopped or cut off meanwhile: it lands long
         * after others have taken over.
         */
        LATE_WRITES,
        /** A daemon is killed and not mounted again in this epoch: the others fence it, or wait for it. */
        GOES,
        /** A node leaves in order, and is mounted again: nobody may take it for one that vanished. */
        LEAVES,
        /** There is a fencer, which is slow, fails, hangs and confirms. Else nobody is ever severed. */
        FENCER
    }

    /** Added later, and drawn apart: what a seed plays does not change with a kind that is added. */
    private static final Set<Kind> LATER = EnumSet.of(Kind.LATE_WRITES, Kind.GOES, Kind.LEAVES, Kind.FENCER);

    private static final Set<Kind> CUTTING_OFF = EnumSet.of(Kind.PARTITION, Kind.LONG_OUTAGES, Kind.ETCD_STOPS, Kind.PAUSE, Kind.KILL, Kind.FENCED, Kind.POWER_LOSS, Kind.LATE_WRITES, Kind.GOES,
            Kind.LEAVES);

    final Set<Kind> kinds = EnumSet.noneOf(Kind.class);

    static Weather draw(Random random) {
        Weather w = new Weather();
        int odds = 2 + random.nextInt(6);
        for (Kind k : Kind.values()) {
            if (!LATER.contains(k) && random.nextInt(odds) == 0) {
                w.kinds.add(k);
            }
        }
        return w;
    }

    /** Of the kinds that are drawn apart. */
    static Set<Kind> drawLater(Random random) {
        Set<Kind> kinds = EnumSet.noneOf(Kind.class);
        if (random.nextInt(8) == 0) {
            kinds.add(Kind.GOES);
        }
        if (random.nextInt(4) == 0) {
            kinds.add(Kind.LEAVES);
        }
        if (random.nextInt(2) == 0) {
            kinds.add(Kind.FENCER);
        }
        return kinds;
    }

    static Weather of(Set<Kind> kinds) {
        Weather w = new Weather();
        w.kinds.addAll(kinds);
        return w;
    }

    /** Whether daemons end or lose sessions in it as a rule: of what is lost then each possibility is tried, so that the run must not be long. */
    boolean cutsOff() {
        return !Collections.disjoint(kinds, CUTTING_OFF);
    }

    boolean has(Kind kind) {
        return kinds.contains(kind);
    }

    /** Whether a node may lose acknowledged, unpublished work in it, by ending or by losing its session for good. */
    boolean endsNodes() {
        return has(Kind.PARTITION) || has(Kind.FENCED) || has(Kind.ETCD_STOPS) || has(Kind.PAUSE) || has(Kind.KILL) || has(Kind.GOES) || has(Kind.POWER_LOSS) || has(Kind.LOST_MESSAGES) || has(Kind.LATE_REQUESTS)
                || has(Kind.SLOW_NETWORK) || has(Kind.LATE_WRITES);
    }

    @Override
    public String toString() {
        return kinds.toString();
    }
}
