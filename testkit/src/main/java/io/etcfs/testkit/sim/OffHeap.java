package io.etcfs.testkit.sim;

import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;

/**
 * Memory outside of the heap, which only the garbage collector gives back. Where it is short, the JVM has whoever asks for some wait, in real time, for that. In a
 * run this would be a simulated thread: virtual time would go on without it, and its request had no answer for minutes. So there has to be enough before a run.
 */
final class OffHeap {
    /** A run uses some MiB. By default the JVM's limit is its largest heap. */
    static final long ENOUGH_USED_BYTES = Math.min(256L << 20, Runtime.getRuntime().maxMemory() / 4);
    private static final long PATIENCE_NS = 10_000_000_000L;
    private static final BufferPoolMXBean DIRECT = ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream().filter(p -> p.getName().equals("direct")).findFirst().orElseThrow();

    private OffHeap() {}

    static long usedBytes() {
        return DIRECT.getMemoryUsed();
    }

    /** Not on a simulated thread. */
    static void makeRoom() {
        if (usedBytes() <= ENOUGH_USED_BYTES) {
            return;
        }
        long until = System.nanoTime() + PATIENCE_NS;
        do {
            System.gc();
            try {
                Thread.sleep(5);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        } while (usedBytes() > ENOUGH_USED_BYTES / 2 && System.nanoTime() < until);
    }
}
