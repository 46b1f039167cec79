package io.etcfs.testkit.sim;

import java.util.concurrent.locks.LockSupport;

/** What one simulated thread waits for and somebody else gives, once. */
final class Answer<T> {
    private Thread waiter;
    private T value;
    private boolean given;

    void give(T answer) {
        if (!given) {
            given = true;
            value = answer;
            LockSupport.unpark(waiter);
        }
    }

    boolean given() {
        return given;
    }

    T value() {
        return value;
    }

    /** Waits until it is given or the time has come (ns of true time). */
    boolean await(Scheduler scheduler, long untilNs) {
        waiter = Thread.currentThread();
        while (!given && scheduler.nowNs() < untilNs) {
            scheduler.parkUntil(untilNs);
        }
        return given;
    }
}
