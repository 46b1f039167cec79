package io.etcfs.core.clock;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The one lock of a node: all cached state of core is read and changed while holding it, and no device, store or kernel access is made under
 * it. Whoever waits for a change of that state waits here and looks again after every {@link #changed}; who waits for one kind of change only does so
 * among {@link Waiters} of its own, whom the many others leave asleep.
 */
public final class Monitor {
    /** What a wait takes at least, also one whose time is over. */
    private static final long MIN_WAIT_NS = 200_000L;

    private final ReentrantLock lock = new ReentrantLock();
    private final Clock clock;
    private final List<Waiters> all = new ArrayList<>();
    private final Waiters any = new Waiters();

    public Monitor(Clock clock) {
        this.clock = clock;
    }

    public Clock clock() {
        return clock;
    }

    public long nowNs() {
        return clock.nowNs();
    }

    public void lock() {
        lock.lock();
    }

    public void unlock() {
        lock.unlock();
    }

    public boolean held() {
        return lock.isHeldByCurrentThread();
    }

    /** Something that others may be waiting for is different now, apart from what has {@link Waiters} of its own. Lock held. */
    public void changed() {
        any.wake();
    }

    /** Everybody who waits looks again, whatever for. Lock held. */
    public void everythingChanged() {
        all.forEach(Waiters::wake);
    }

    /** Those who wait for one kind of change. */
    public final class Waiters {
        private final Condition condition = lock.newCondition();
        private int count;

        /** Before the first wait. */
        public Waiters() {
            all.add(this);
        }

        /** What they wait for may be there. Lock held. */
        public void wake() {
            if (count > 0) {
                condition.signalAll();
            }
        }

        /** One of them looks again, the one that waits longest: for those any of whom can do what there is to do. Lock held. */
        public void wakeOne() {
            if (count > 0) {
                condition.signal();
            }
        }

        /** As {@link Monitor#await}. */
        public void await(long untilNs) throws InterruptedException {
            count++;
            try {
                clock.await(lock, condition, Math.max(untilNs, clock.nowNs() + MIN_WAIT_NS));
            } finally {
                count--;
            }
        }

        /** As {@link Monitor#awaitQuietly}. */
        public void awaitQuietly(long untilNs) {
            try {
                await(untilNs);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new Stopped();
            }
        }
    }

    /**
     * Waits for a change or until {@code untilNs}; lock held. May return early, but always lets others have the lock meanwhile: a loop whose time is
     * over and whose condition does not hold must not keep away those who would make it hold.
     */
    public void await(long untilNs) throws InterruptedException {
        any.await(untilNs);
    }

    /** Waits until {@code deadlineNs}, on a background task that nobody interrupts but the end of the node. Lock held. */
    public void awaitQuietly(long untilNs) {
        any.awaitQuietly(untilNs);
    }

    /** Sleeps, on such a task. Lock not held. */
    public void pause(long durationNs) {
        try {
            clock.sleep(durationNs);
        } catch (InterruptedException e) {
            throw new Stopped();
        }
    }

    /** Ends a background task of a node that is stopping. */
    public static final class Stopped extends RuntimeException {
        private static final long serialVersionUID = 1L;

        public Stopped() {
            super("the node is stopping", null, false, false);
        }
    }

    public interface Body<R, E extends Exception> {
        R run() throws E;
    }

    public <R, E extends Exception> R with(Body<R, E> body) throws E {
        lock.lock();
        try {
            return body.run();
        } finally {
            lock.unlock();
        }
    }
}
