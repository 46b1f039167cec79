package io.etcfs.core.clock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class MonitorTest {
    /** As the clocks of production: a wait whose time is over returns at once, with the lock held all the time. */
    private static final Clock CLOCK = new Clock() {
        @Override
        public long nowNs() {
            return System.nanoTime();
        }

        @Override
        public long realtimeNs() {
            return 0;
        }

        @Override
        public void await(Lock lock, Condition condition, long untilNs) throws InterruptedException {
            long left = untilNs - nowNs();
            if (left > 0) {
                condition.awaitNanos(left);
            }
        }

        @Override
        public void sleep(long durationNs) throws InterruptedException {
            TimeUnit.NANOSECONDS.sleep(durationNs);
        }
    };

    @Test
    @Timeout(20)
    void whoWaitsForATimeThatIsOverLetsOthersIn() throws Exception {
        Monitor monitor = new Monitor(CLOCK);
        boolean[] go = {false};
        CountDownLatch waits = new CountDownLatch(1);
        CountDownLatch ended = new CountDownLatch(1);
        Thread.ofPlatform().daemon().start(() -> {
            monitor.lock();
            try {
                while (!go[0]) {
                    monitor.awaitQuietly(monitor.nowNs() - 1);
                    waits.countDown();
                }
            } finally {
                monitor.unlock();
            }
            ended.countDown();
        });
        waits.await();
        Thread other = Thread.ofPlatform().daemon().start(() -> {
            monitor.lock();
            go[0] = true;
            monitor.changed();
            monitor.unlock();
        });
        other.join(5_000);
        assertTrue(!other.isAlive() && ended.await(5, TimeUnit.SECONDS), "the loop keeps the lock to itself");
    }

    @Test
    @Timeout(20)
    void whoWaitsForOneKindOfChangeSleepsThroughOthers() throws Exception {
        Monitor monitor = new Monitor(CLOCK);
        Monitor.Waiters kind = monitor.new Waiters();
        AtomicInteger looks = new AtomicInteger();
        Thread waiter = Thread.ofPlatform().daemon().start(() -> {
            monitor.lock();
            try {
                while (looks.get() < 3) {
                    looks.incrementAndGet();
                    kind.awaitQuietly(monitor.nowNs() + 60_000_000_000L);
                }
            } finally {
                monitor.unlock();
            }
        });
        awaitSleeping(waiter);
        withLock(monitor, monitor::changed);
        awaitSleeping(waiter);
        assertEquals(1, looks.get());
        withLock(monitor, kind::wake);
        while (looks.get() < 2) {
            Thread.sleep(1);
        }
        awaitSleeping(waiter);
        withLock(monitor, monitor::everythingChanged);
        while (looks.get() < 3) {
            Thread.sleep(1);
        }
        withLock(monitor, kind::wake);
        waiter.join(10_000);
        assertFalse(waiter.isAlive());
    }

    private static void withLock(Monitor monitor, Runnable action) {
        monitor.lock();
        try {
            action.run();
        } finally {
            monitor.unlock();
        }
    }

    private static void awaitSleeping(Thread thread) throws InterruptedException {
        while (thread.getState() != Thread.State.TIMED_WAITING) {
            Thread.sleep(1);
        }
    }
}
