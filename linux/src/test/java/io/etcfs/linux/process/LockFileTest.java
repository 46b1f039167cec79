package io.etcfs.linux.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.linux.call.LinuxException;
import io.etcfs.linux.clock.BootClock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LockFileTest {
    private final BootClock clock = new BootClock();

    @TempDir
    Path directory;

    @Test
    void onlyOneHasIt() throws Exception {
        Path path = directory.resolve("lock");
        LockFile lock = LockFile.tryAcquire(path).orElseThrow();
        assertTrue(LockFile.tryAcquire(path).isEmpty());
        long before = clock.nowNs();
        assertTrue(LockFile.acquire(path, clock, before + 50_000_000L).isEmpty());
        assertTrue(clock.nowNs() - before >= 50_000_000L);
        lock.close();
        lock.close();
        LockFile again = LockFile.acquire(path, clock, 0).orElseThrow();
        assertTrue(Files.exists(path));
        assertTrue(LockFile.tryAcquire(path).isEmpty());
        again.close();
    }

    @Test
    void whoWithdrawsLeavesNoFile() throws Exception {
        Path path = directory.resolve("lock");
        LockFile.tryAcquire(path).orElseThrow().withdraw();
        assertFalse(Files.exists(path));
        LockFile.tryAcquire(path).orElseThrow().close();
        LockFile found = LockFile.tryAcquire(path).orElseThrow();
        found.withdraw();
        assertTrue(Files.exists(path), "it was there before");
    }

    /** A file that was removed under the feet of who waits for it locks nothing: another one is there by then, or will be. */
    @Test
    void aLockOfAFileThatIsGoneIsNone() throws Exception {
        Path path = directory.resolve("lock");
        for (int round = 0; round < 200; round++) {
            LockFile first = LockFile.tryAcquire(path).orElseThrow();
            AtomicInteger holders = new AtomicInteger();
            AtomicInteger most = new AtomicInteger();
            Thread[] waiting = new Thread[3];
            for (int i = 0; i < waiting.length; i++) {
                waiting[i] = Thread.ofPlatform().start(() -> {
                    try {
                        LockFile lock = null;
                        while (lock == null) {
                            lock = LockFile.tryAcquire(path).orElse(null);
                        }
                        most.accumulateAndGet(holders.incrementAndGet(), Math::max);
                        Thread.onSpinWait();
                        holders.decrementAndGet();
                        lock.withdraw();
                    } catch (LinuxException e) {
                        most.set(100);
                    }
                });
            }
            first.withdraw();
            for (Thread thread : waiting) {
                thread.join();
            }
            assertEquals(1, most.get());
            assertFalse(Files.exists(path) && LockFile.tryAcquire(path).isEmpty());
            Files.deleteIfExists(path);
        }
    }

    @Test
    void whoDiesLosesIt() throws Exception {
        Path path = directory.resolve("lock");
        Process holder = new ProcessBuilder("flock", path.toString(), "sh", "-c", "echo held; exec sleep 60").start();
        try {
            assertEquals('h', holder.getInputStream().read());
            assertTrue(LockFile.tryAcquire(path).isEmpty());
            holder.descendants().forEach(ProcessHandle::destroyForcibly);
            holder.destroyForcibly();
            LockFile.acquire(path, clock, clock.nowNs() + TimeUnit.SECONDS.toNanos(5)).orElseThrow().close();
        } finally {
            holder.destroyForcibly();
        }
    }

    @Test
    void childrenDoNotInheritIt() throws Exception {
        Path path = directory.resolve("lock");
        LockFile lock = LockFile.tryAcquire(path).orElseThrow();
        Process child = new ProcessBuilder("sleep", "60").start();
        try {
            lock.close();
            LockFile.tryAcquire(path).orElseThrow().close();
        } finally {
            child.destroyForcibly();
        }
    }

    @Test
    void errorsCarryTheirNumber() {
        LinuxException thrown = assertThrows(LinuxException.class, () -> LockFile.tryAcquire(directory.resolve("no/such/directory")));
        assertEquals(2, thrown.errno());
        assertTrue(thrown.getMessage().endsWith("ENOENT"), thrown.getMessage());
    }
}
