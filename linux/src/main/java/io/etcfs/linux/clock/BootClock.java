package io.etcfs.linux.clock;

import io.etcfs.core.clock.Clock;
import io.etcfs.linux.call.ProcessCalls;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;

/**
 * CLOCK_BOOTTIME and CLOCK_REALTIME.
 *
 * <p>The waits of java.util.concurrent stand still while the machine is suspended (CLOCK_MONOTONIC). Waits here are therefore made of slices, with a look at
 * the clock in between: after a suspension one ends at most a slice late.
 */
public final class BootClock implements Clock {
    private static final long SLICE_NS = 250_000_000L;

    @Override
    public long nowNs() {
        return ProcessCalls.clock(ProcessCalls.CLOCK_BOOTTIME);
    }

    @Override
    public long realtimeNs() {
        return ProcessCalls.clock(ProcessCalls.CLOCK_REALTIME);
    }

    @Override
    public void await(Lock lock, Condition condition, long untilNs) throws InterruptedException {
        long left = untilNs - nowNs();
        while (left > 0) {
            if (condition.awaitNanos(Math.min(left, SLICE_NS)) > 0) {
                return;
            }
            left = untilNs - nowNs();
        }
    }

    @Override
    public void sleep(long durationNs) throws InterruptedException {
        long until = nowNs() + durationNs;
        long left = durationNs;
        while (left > 0) {
            TimeUnit.NANOSECONDS.sleep(Math.min(left, SLICE_NS));
            left = until - nowNs();
        }
    }
}
