package io.etcfs.core.clock;

import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;

/**
 * All time and every timed wait of core. In production CLOCK_BOOTTIME (it goes on while the machine is suspended) and
 * CLOCK_REALTIME; under the simulator both are virtual.
 */
public interface Clock {
    /** Monotonic time, in ns from an arbitrary start, including time spent suspended. */
    long nowNs();

    /** Wall-clock time in ns since the epoch, for timestamps of files. */
    long realtimeNs();

    /**
     * Waits on a condition of {@code lock}, which the caller holds, until signalled or {@code untilNs} on {@link #nowNs}. May return early. Where that time
     * is over it may return at once, without letting anybody else have the lock.
     */
    void await(Lock lock, Condition condition, long untilNs) throws InterruptedException;

    void sleep(long durationNs) throws InterruptedException;
}
