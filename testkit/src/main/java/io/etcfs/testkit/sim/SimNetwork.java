package io.etcfs.testkit.sim;

import java.util.Random;

/** One node's way to etcd: what becomes of each message. */
final class SimNetwork {
    private static final long MS = 1_000_000L;

    private final Scheduler scheduler;
    private final Weather weather;
    private final Random random;
    /** Nothing passes until then (ns of true time). */
    private long cutUntilNs;
    /** etcd carries nothing out before then. */
    private long heldUntilNs;
    private boolean calm;

    SimNetwork(Scheduler scheduler, Weather weather, Random random) {
        this.scheduler = scheduler;
        this.weather = weather;
        this.random = random;
    }

    void cut(long durationNs) {
        cutUntilNs = Math.max(cutUntilNs, scheduler.nowNs() + durationNs);
    }

    void hold(long durationNs) {
        heldUntilNs = Math.max(heldUntilNs, scheduler.nowNs() + durationNs);
    }

    /** From now on all goes well. */
    void calm() {
        calm = true;
        cutUntilNs = 0;
        heldUntilNs = 0;
    }

    void rough() {
        calm = false;
    }

    boolean isCut() {
        return scheduler.nowNs() < cutUntilNs;
    }

    long cutUntilNs() {
        return cutUntilNs;
    }

    private boolean one(Weather.Kind kind, int in) {
        return !calm && weather.has(kind) && random.nextInt(in) == 0;
    }

    private long travelNs() {
        long ns = 50_000L + random.nextInt(200_000);
        ns += Math.max(0, heldUntilNs - scheduler.nowNs());
        if (one(Weather.Kind.SLOW_NETWORK, 4)) {
            ns += random.nextLong(random.nextInt(8) == 0 ? 300 * MS : 30 * MS);
        }
        return ns;
    }

    /** What a message is about: trouble looks for those that hurt most. */
    enum Cargo {
        /** May be carried out late or twice. */
        TRANSACTION,
        /** Takes a key away: carried out late it may meet another one. */
        DELETE,
        /** The answer tells of a token: without it a key stays that its owner does not know. */
        TOKEN_ANSWER, OTHER
    }

    /** Sends: {@code arrival} runs where it goes, or never does. */
    void send(Cargo cargo, Runnable arrival) {
        boolean mayBeLate = cargo == Cargo.TRANSACTION || cargo == Cargo.DELETE;
        if (cargo == Cargo.TOKEN_ANSWER && one(Weather.Kind.LOST_MESSAGES, 6)) {
            return;
        }
        if (cargo == Cargo.DELETE && one(Weather.Kind.LATE_REQUESTS, 2)) {
            scheduler.after(random.nextLong(3_000 * MS), arrival);
            return;
        }
        if (isCut() || one(Weather.Kind.LOST_MESSAGES, 25)) {
            if (mayBeLate && one(Weather.Kind.LATE_REQUESTS, 3)) {
                scheduler.after(random.nextLong(5_000 * MS), arrival);
            }
            return;
        }
        if (mayBeLate && one(Weather.Kind.LATE_REQUESTS, 12)) {
            scheduler.after(random.nextLong(4_000 * MS), arrival);
            return;
        }
        scheduler.after(travelNs(), arrival);
        if (mayBeLate && one(Weather.Kind.TWICE, 20)) {
            scheduler.after(travelNs() + random.nextLong(1_000 * MS), arrival);
        }
    }

    /** How long a watch event is on its way. */
    long watchNs() {
        return travelNs() + (one(Weather.Kind.SLOW_WATCHES, 3) ? random.nextLong(400 * MS) : 0);
    }

    boolean watchBreaks() {
        return one(Weather.Kind.WATCH_GAPS, 60);
    }
}
