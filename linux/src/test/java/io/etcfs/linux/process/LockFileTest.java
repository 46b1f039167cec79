package io.etcfs.linux.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.linux.call.LinuxException;
import io.etcfs.linux.clock.BootClock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
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
