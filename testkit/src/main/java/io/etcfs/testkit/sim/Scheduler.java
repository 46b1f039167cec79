package io.etcfs.testkit.sim;

import java.util.ArrayList;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/**
 * Runs all threads of a simulation on one platform thread, a step at a time: which of those that can go on goes on next is drawn from the seed, and time passes
 * only when none can (and a little with each step). A step ends where the thread waits.
 */
final class Scheduler {
    /** Steps without the next timer coming due: something spins. */
    private static final int SPIN_STEPS = 300_000;
    private static final int STEP_NS = 2_000;

    /** Something to be done at a time; not a thread: it must not wait. */
    final class Timer implements Comparable<Timer> {
        private final long atNs;
        private final long number;
        private Runnable action;

        private Timer(long atNs, long number, Runnable action) {
            this.atNs = atNs;
            this.number = number;
            this.action = action;
        }

        void cancel() {
            action = null;
        }

        @Override
        public int compareTo(Timer other) {
            int byTime = Long.compare(atNs, other.atNs);
            return byTime != 0 ? byTime : Long.compare(number, other.number);
        }
    }

    /** Runs all steps. */
    private final Thread carrier = Thread.currentThread();
    private final Random random;
    private final PriorityQueue<Timer> timers = new PriorityQueue<>();
    private final List<Runnable> ready = new ArrayList<>();
    private final List<Throwable> failures = new ArrayList<>();
    private long nowNs = 1_000_000_000_000L;
    private long timersMade;
    private long steps;
    private long digest = 17;

    Scheduler(long seed) {
        this.random = new Random(seed);
    }

    long nowNs() {
        return nowNs;
    }

    Thread carrier() {
        return carrier;
    }

    long steps() {
        return steps;
    }

    /** A number that depends on every decision so far: two runs of one seed have the same. */
    long digest() {
        return digest;
    }

    /** Errors that ended a thread. */
    List<Throwable> failures() {
        return failures;
    }

    void failed(Throwable e) {
        failures.add(e);
    }

    /** A thread that can go on. */
    void ready(Runnable step) {
        ready.add(step);
    }

    Timer at(long atNs, Runnable action) {
        Timer timer = new Timer(Math.max(atNs, nowNs), timersMade++, action);
        timers.add(timer);
        return timer;
    }

    Timer after(long delayNs, Runnable action) {
        return at(nowNs + delayNs, action);
    }

    /** The calling simulated thread waits until somebody unparks it or the time comes; it may return early. */
    void parkUntil(long atNs) {
        Thread thread = Thread.currentThread();
        Timer timer = at(atNs, () -> LockSupport.unpark(thread));
        LockSupport.park();
        timer.cancel();
    }

    void sleep(long durationNs) {
        long until = nowNs + durationNs;
        while (nowNs < until) {
            parkUntil(until);
        }
    }

    /** Goes on until {@code done}. False: it was not by {@code untilNs}, or nothing can go on any more, or a thread failed. */
    boolean run(BooleanSupplier done, long untilNs) {
        int spinning = 0;
        while (!done.getAsBoolean()) {
            if (!failures.isEmpty()) {
                return false;
            }
            if (!ready.isEmpty() && (timers.isEmpty() || timers.peek().atNs > nowNs)) {
                int at = random.nextInt(ready.size());
                Runnable step = ready.get(at);
                Runnable last = ready.removeLast();
                if (at < ready.size()) {
                    ready.set(at, last);
                }
                steps++;
                digest = digest * 31 + at;
                nowNs += random.nextInt(STEP_NS);
                step.run();
                if (++spinning > SPIN_STEPS) {
                    failures.add(new IllegalStateException("threads spin: " + SPIN_STEPS + " steps without a timer"));
                }
                continue;
            }
            Timer timer = timers.poll();
            if (timer == null || timer.atNs > untilNs) {
                return false;
            }
            if (timer.action == null) {
                continue;
            }
            spinning = 0;
            nowNs = Math.max(nowNs, timer.atNs);
            digest = digest * 31 + nowNs;
            timer.action.run();
        }
        return failures.isEmpty();
    }
}
