package io.etcfs.testkit.store;

import io.etcfs.core.clock.Clock;
import java.time.Instant;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;

/** The machine's real time, for tests against real servers. Does not go on while the machine is suspended. */
public final class MonotonicClock implements Clock {
    @Override
    public long nowNs() {
        return System.nanoTime();
    }

    @Override
    public long realtimeNs() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000_000L + now.getNano();
    }

    @Override
    public void await(Lock lock, Condition condition, long untilNs) throws InterruptedException {
        long left = untilNs - nowNs();
        // As the clock of production: nobody is let in by a wait that is over.
        if (left > 0) {
            condition.awaitNanos(left);
        }
    }

    @Override
    public void sleep(long durationNs) throws InterruptedException {
        TimeUnit.NANOSECONDS.sleep(durationNs);
    }
}
