package io.etcfs.testkit.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class SchedulerTest {
    /** A thread that is not simulated holds a monitor for a while, as the JVM's own do: no simulated time passes for that. */
    @Test
    void aMonitorOfTheJvmTakesNoTime() throws Exception {
        Scheduler scheduler = new Scheduler(1);
        SimProcess process = new SimProcess(scheduler, "p", 0);
        Object monitor = new Object();
        CountDownLatch held = new CountDownLatch(1);
        AtomicReference<Thread> waiter = new AtomicReference<>();
        Thread holder = Thread.ofPlatform().start(() -> {
            synchronized (monitor) {
                held.countDown();
                while (waiter.get() == null || waiter.get().getState() != Thread.State.BLOCKED) {
                    Thread.onSpinWait();
                }
                try {
                    Thread.sleep(100);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
        });
        held.await();
        List<String> events = new ArrayList<>();
        process.start("sleeper", () -> {
            scheduler.sleep(1_000_000);
            events.add("slept");
        });
        process.start("waiter", () -> {
            waiter.set(Thread.currentThread());
            synchronized (monitor) {
                events.add("entered");
            }
            scheduler.sleep(2_000_000);
            events.add("waited");
        });
        assertTrue(scheduler.run(() -> events.size() == 3, scheduler.nowNs() + 1_000_000_000L));
        assertEquals(List.of("entered", "slept", "waited"), events);
        holder.join();
    }

    /** What would hang a run without a word. */
    @Test
    void aMonitorHeldByAThreadThatWaitsIsAFailure() {
        Scheduler scheduler = new Scheduler(1);
        SimProcess process = new SimProcess(scheduler, "p", 0);
        Object monitor = new Object();
        boolean[] held = {false};
        process.start("holder", () -> {
            synchronized (monitor) {
                held[0] = true;
                scheduler.sleep(1_000_000_000L);
            }
        });
        assertTrue(scheduler.run(() -> held[0], scheduler.nowNs() + 1_000_000_000L));
        process.start("waiter", () -> {
            synchronized (monitor) {
                held[0] = false;
            }
        });
        assertEquals(false, scheduler.run(() -> !held[0], scheduler.nowNs() + 10_000_000_000L));
        assertTrue(scheduler.failures().getFirst().getMessage().contains("monitor"));
    }
}
