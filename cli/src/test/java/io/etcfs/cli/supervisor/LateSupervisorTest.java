package io.etcfs.cli.supervisor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.clock.Clock;
import io.etcfs.node.supervisor.Supervisor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * A daemon's signs and lib/supervisor.sh, which gets to run only when its wait for a sign is over and the sign there: bash takes a character of it, and says that the time is over. Both
 * have a period of a second, so that on a busy machine this happens many times in a row.
 */
@Timeout(60)
class LateSupervisorTest {
    private static final int LIMIT_S = 3;
    private static final long LATE_MS = 1_200;
    private static final long RUN_MS = 400;

    @TempDir
    Path directory;

    private final Semaphore due = new Semaphore(0);
    private final Semaphore given = new Semaphore(0);
    private Supervisor daemon;
    private ProcessHandle script;

    @BeforeEach
    void start() throws Exception {
        daemon = new Supervisor(new OnDemand(), Path.of("src/main/dist/lib").toAbsolutePath().toString(), LIMIT_S, Path.of("/mnt/a b"), log(), new Supervisor.Mount() {
            @Override
            public Path abortFile() {
                return directory.resolve("abort");
            }

            @Override
            public boolean hasEnded() {
                return false;
            }
        }, () -> { });
        daemon.start();
        given.acquire();
        script = ProcessHandle.of(daemon.status().pid()).orElseThrow();
        Thread.sleep(RUN_MS);
    }

    @AfterEach
    void stop() {
        script.destroyForcibly();
        daemon.close();
    }

    private Path log() {
        return directory.resolve("log");
    }

    private String said() throws IOException {
        return Files.readString(directory.resolve("abort")) + (Files.exists(log()) ? Files.readString(log()) : "");
    }

    private void signal(String signal) throws IOException, InterruptedException {
        assertEquals(0, new ProcessBuilder("kill", "-" + signal, Long.toString(script.pid())).start().waitFor());
    }

    private void readLate(Runnable what) throws IOException, InterruptedException {
        signal("STOP");
        what.run();
        Thread.sleep(LATE_MS);
        signal("CONT");
    }

    @Test
    void aSignThatIsReadWhenTheTimeIsOverCounts() throws Exception {
        for (int i = 0; i < LIMIT_S + 2; i++) {
            readLate(() -> {
                due.release();
                given.acquireUninterruptibly();
            });
            Thread.sleep(RUN_MS);
        }
        assertEquals("", said());
        assertTrue(script.isAlive());
    }

    @Test
    void soDoesTheEnd() throws Exception {
        readLate(() -> Thread.ofVirtual().start(daemon::close));
        script.onExit().get(10, TimeUnit.SECONDS);
        assertFalse(script.isAlive());
        assertEquals("", said());
    }

    /** A sign is given when it is due and no sooner. */
    private final class OnDemand implements Clock {
        @Override
        public long nowNs() {
            return System.nanoTime();
        }

        @Override
        public long realtimeNs() {
            throw new UnsupportedOperationException();
        }

        @Override
        public void await(Lock lock, Condition condition, long untilNs) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void sleep(long durationNs) throws InterruptedException {
            given.release();
            due.acquire();
        }
    }
}
