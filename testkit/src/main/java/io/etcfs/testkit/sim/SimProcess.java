package io.etcfs.testkit.sim;

import io.etcfs.core.clock.Clock;
import io.etcfs.core.clock.Monitor;
import io.etcfs.core.clock.Tasks;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;

/**
 * A process: threads that can be stopped and continued together (SIGSTOP, SIGCONT), or end for good at any step (SIGKILL), and the clocks that they see.
 * What it has asked of the network and the device before it was killed still happens.
 */
final class SimProcess implements Tasks, Clock {
    private final Scheduler scheduler;
    private final String name;
    /** How much faster than true time its clock goes. */
    private final double drift;
    private final long startedNs;
    private final List<Runnable> held = new ArrayList<>();
    private long wallClockOffsetNs = 1_700_000_000_000_000_000L;
    private boolean paused;
    private boolean dead;

    SimProcess(Scheduler scheduler, String name, double drift) {
        this.scheduler = scheduler;
        this.name = name;
        this.drift = drift;
        this.startedNs = scheduler.nowNs();
    }

    Scheduler scheduler() {
        return scheduler;
    }

    boolean isDead() {
        return dead;
    }

    void pause() {
        paused = true;
    }

    void resume() {
        paused = false;
        held.forEach(scheduler::ready);
        held.clear();
    }

    void kill() {
        dead = true;
        held.clear();
    }

    /** Somebody sets the wall clock. */
    void stepWallClock(long byNs) {
        wallClockOffsetNs += byNs;
    }

    /** A step of one of its threads. */
    void ready(Runnable step) {
        if (!dead) {
            scheduler.ready(() -> {
                if (dead) {
                    return;
                }
                if (paused) {
                    held.add(step);
                } else {
                    step.run();
                }
            });
        }
    }

    @Override
    public Thread start(String threadName, Runnable body) {
        return SimThread.start(this, name + "/" + threadName, () -> {
            try {
                body.run();
            } catch (Monitor.Stopped e) {
                // The node it belonged to has stopped.
            } catch (Throwable e) {
                scheduler.failed(e);
            }
        });
    }

    @Override
    public long nowNs() {
        return startedNs + (long) ((scheduler.nowNs() - startedNs) * (1 + drift));
    }

    private long trueTimeNs(long ownNs) {
        return startedNs + (long) ((ownNs - startedNs) / (1 + drift)) + 1;
    }

    @Override
    public long realtimeNs() {
        return scheduler.nowNs() + wallClockOffsetNs;
    }

    @Override
    public void await(Lock lock, Condition condition, long untilNs) throws InterruptedException {
        if (untilNs <= nowNs()) {
            return;
        }
        Scheduler.Timer timer = scheduler.at(trueTimeNs(untilNs), () -> start("timer", () -> {
            lock.lock();
            try {
                condition.signalAll();
            } finally {
                lock.unlock();
            }
        }));
        try {
            condition.await();
        } finally {
            timer.cancel();
        }
    }

    @Override
    public void sleep(long durationNs) {
        scheduler.sleep((long) (durationNs / (1 + drift)));
    }

    @Override
    public String toString() {
        return name;
    }
}
