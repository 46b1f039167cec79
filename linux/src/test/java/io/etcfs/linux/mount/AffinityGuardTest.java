package io.etcfs.linux.mount;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.linux.call.AffinityCalls;
import java.util.BitSet;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class AffinityGuardTest {
    @Test
    void aThreadStartedByABoundOneIsLetGoAndTheBoundOneStays() throws Exception {
        BitSet allowed = AffinityCalls.get(0);
        AffinityGuard guard = AffinityGuard.ofThisProcess();
        BlockingQueue<Integer> numbers = new ArrayBlockingQueue<>(2);
        CountDownLatch end = new CountDownLatch(1);
        Thread.ofPlatform().daemon().start(() -> {
            BitSet one = new BitSet();
            one.set(allowed.nextSetBit(0));
            assertEquals(0, AffinityCalls.set(0, one));
            numbers.add(UringTransport.currentThreadNumber());
            Thread.ofPlatform().daemon().start(() -> {
                numbers.add(UringTransport.currentThreadNumber());
                awaitQuietly(end);
            });
            awaitQuietly(end);
        });
        int bound = numbers.poll(5, TimeUnit.SECONDS);
        int child = numbers.poll(5, TimeUnit.SECONDS);
        try {
            assertEquals(1, AffinityCalls.get(child).cardinality());
            guard.start(Set.of(bound));
            long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(5);
            while (!AffinityCalls.get(child).equals(allowed)) {
                assertTrue(System.nanoTime() < until, "still on " + AffinityCalls.get(child));
                Thread.sleep(10);
            }
            assertEquals(1, AffinityCalls.get(bound).cardinality());
        } finally {
            guard.stop();
            end.countDown();
        }
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
