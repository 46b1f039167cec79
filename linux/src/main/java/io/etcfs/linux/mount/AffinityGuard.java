package io.etcfs.linux.mount;

import io.etcfs.linux.call.AffinityCalls;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Lets threads go where they want to that inherited the one CPU of a queue's thread. A thread begins with the CPUs of the one that starts it, and the virtual machine
 * starts carriers of virtual threads from whatever thread has work for them; there is no hook. So the process's threads are looked through from time to
 * time. Those that were there before the queues are never touched.
 */
final class AffinityGuard {
    private static final Path THREADS = Path.of("/proc/self/task");
    private static final long LOOK_EVERY_MS = 250;
    private static final System.Logger LOG = System.getLogger("io.etcfs.fuse");

    private final BitSet allowed;
    private final CountDownLatch stopped = new CountDownLatch(1);
    private Set<Integer> seen;

    private AffinityGuard(BitSet allowed, Set<Integer> seen) {
        this.allowed = allowed;
        this.seen = seen;
    }

    /** To be called on a thread that is bound to no CPU, before the queues' threads are started. */
    static AffinityGuard ofThisProcess() throws IOException {
        // The scheduler of virtual threads counts the CPUs of the thread that uses it first.
        Thread.startVirtualThread(() -> { });
        return new AffinityGuard(AffinityCalls.get(0), threads());
    }

    /** @param bound threads that stay where they are */
    void start(Set<Integer> bound) {
        seen.addAll(bound);
        Thread.ofPlatform().daemon().name("fuse-affinity").start(this::run);
    }

    void stop() {
        stopped.countDown();
    }

    private void run() {
        try {
            while (!stopped.await(LOOK_EVERY_MS, TimeUnit.MILLISECONDS)) {
                look();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (IOException e) {
            LOG.log(System.Logger.Level.WARNING, "new threads may stay on the CPU of the thread that started them: " + e.getMessage());
        }
    }

    private void look() throws IOException {
        Set<Integer> now = threads();
        for (int thread : now) {
            // A thread that has ended meanwhile can't be set, and need not be.
            if (!seen.contains(thread) && AffinityCalls.get(thread).cardinality() == 1) {
                AffinityCalls.set(thread, allowed);
            }
        }
        seen = now;
    }

    private static Set<Integer> threads() throws IOException {
        Set<Integer> numbers = new HashSet<>();
        try (DirectoryStream<Path> directory = Files.newDirectoryStream(THREADS)) {
            for (Path thread : directory) {
                numbers.add(Integer.parseInt(thread.getFileName().toString()));
            }
        } catch (DirectoryIteratorException e) {
            throw e.getCause();
        }
        return numbers;
    }
}
