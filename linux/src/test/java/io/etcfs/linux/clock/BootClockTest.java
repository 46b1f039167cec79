package io.etcfs.linux.clock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class BootClockTest {
    private static final long MS = 1_000_000L;
    private final BootClock clock = new BootClock();

    @Test
    void isTheTimeSinceBoot() throws Exception {
        double uptime = Double.parseDouble(Files.readString(Path.of("/proc/uptime")).split(" ")[0]);
        assertEquals(uptime, clock.nowNs() / 1e9, 1.0);
        assertEquals(System.currentTimeMillis(), clock.realtimeNs() / 1e6, 1_000);
    }

    @Test
    void goesForwardsOnAnyThread() throws Exception {
        try (var executor = Executors.newVirtualThreadPerTaskExecutor()) {
            List<Future<Boolean>> results = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
                results.add(executor.submit(() -> {
                    long last = clock.nowNs();
                    for (int j = 0; j < 1_000; j++) {
                        long now = clock.nowNs();
                        if (now < last) {
                            return false;
                        }
                        last = now;
                    }
                    return true;
                }));
            }
            for (Future<Boolean> result : results) {
                assertTrue(result.get());
            }
        }
    }

    @Test
    void waitsUntilATimeOrASignal() throws Exception {
        ReentrantLock lock = new ReentrantLock();
        Condition condition = lock.newCondition();
        lock.lock();
        try {
            long start = clock.nowNs();
            clock.await(lock, condition, start - 1);
            clock.await(lock, condition, start + 300 * MS);
            assertTrue(clock.nowNs() - start >= 300 * MS);
            Thread.ofVirtual().start(() -> {
                lock.lock();
                try {
                    condition.signal();
                } finally {
                    lock.unlock();
                }
            });
            start = clock.nowNs();
            clock.await(lock, condition, start + 10_000 * MS);
            assertFalse(clock.nowNs() - start >= 5_000 * MS);
        } finally {
            lock.unlock();
        }
    }

    @Test
    void sleeps() throws Exception {
        long start = clock.nowNs();
        clock.sleep(20 * MS);
        assertTrue(clock.nowNs() - start >= 20 * MS);
    }
}
