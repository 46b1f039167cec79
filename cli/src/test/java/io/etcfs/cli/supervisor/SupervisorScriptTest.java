package io.etcfs.cli.supervisor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** lib/supervisor.sh with a file in the place of fusectl's and a process that sleeps in the place of the daemon. */
@Timeout(60)
class SupervisorScriptTest {
    private static final Path SCRIPT = Path.of("src/main/dist/lib/supervisor.sh");
    private static final int LIMIT_S = 3;

    @TempDir
    Path directory;

    private Process daemon;
    private Process supervisor;

    @BeforeEach
    void start() throws IOException {
        daemon = new ProcessBuilder("sleep", "600").start();
        supervisor = start(daemon, LIMIT_S, 3);
    }

    private Process start(Process watched, int limitS, int killAfterS) throws IOException {
        return start(watched.pid(), limitS, killAfterS);
    }

    private Process start(long watched, int limitS, int killAfterS) throws IOException {
        return new ProcessBuilder("bash", SCRIPT.toAbsolutePath().toString(), Integer.toString(limitS), Long.toString(watched), "/mnt/a b", log().toString(), Integer.toString(killAfterS))
                .redirectOutput(abort().toFile()).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    }

    @AfterEach
    void stop() throws InterruptedException {
        supervisor.destroyForcibly().waitFor();
        daemon.destroyForcibly().waitFor();
    }

    private Path abort() {
        return directory.resolve("abort");
    }

    private Path log() {
        return directory.resolve("log");
    }

    private String logged() throws IOException {
        return Files.exists(log()) ? Files.readString(log()) : "";
    }

    private String aborted() throws IOException {
        return Files.readString(abort());
    }

    private void say(String line) throws IOException {
        OutputStream to = supervisor.getOutputStream();
        to.write(line.getBytes());
        to.flush();
    }

    private static void signal(String signal, Process process) throws IOException, InterruptedException {
        assertEquals(0, new ProcessBuilder("kill", "-" + signal, Long.toString(process.pid())).start().waitFor());
    }

    private void beatFor(int seconds) throws IOException, InterruptedException {
        for (int i = 0; i < seconds * 2; i++) {
            say("\n");
            Thread.sleep(500);
        }
    }

    private void awaitAbort() throws IOException, InterruptedException {
        for (int i = 0; i < 200 && aborted().isEmpty(); i++) {
            Thread.sleep(100);
        }
        assertEquals("1", aborted());
    }

    @Test
    void whoIsSilentIsCutOffAndThenKilled() throws Exception {
        beatFor(LIMIT_S + 2);
        assertEquals("", aborted());
        long begin = System.nanoTime();
        awaitAbort();
        assertTrue(System.nanoTime() - begin > (LIMIT_S - 1) * 1_000_000_000L);
        assertTrue(logged().contains("ERROR supervisor the daemon (process " + daemon.pid() + ", state S (sleeping)) has given no sign of life for 3 s: /mnt/a b is cut off"), logged());
        assertTrue(daemon.waitFor(20, TimeUnit.SECONDS), "it is killed");
        assertEquals(128 + 9, daemon.exitValue());
        assertTrue(supervisor.waitFor(5, TimeUnit.SECONDS));
    }

    @Test
    void whoWakesUpAfterItWasCutOffIsNotKilled() throws Exception {
        awaitAbort();
        beatFor(5);
        assertTrue(daemon.isAlive());
        say("end\n");
        assertTrue(supervisor.waitFor(5, TimeUnit.SECONDS));
        assertTrue(daemon.isAlive());
    }

    @Test
    void theEndOfTheMountEndsIt() throws Exception {
        beatFor(1);
        say("end\n");
        assertTrue(supervisor.waitFor(5, TimeUnit.SECONDS));
        assertEquals(0, supervisor.exitValue());
        assertEquals("", aborted() + logged());
    }

    @Test
    void theEndOfTheDaemonIsSaid() throws Exception {
        beatFor(1);
        supervisor.getOutputStream().close();
        assertTrue(supervisor.waitFor(5, TimeUnit.SECONDS));
        assertEquals("1", aborted());
        assertTrue(logged().contains("WARN supervisor the daemon (process " + daemon.pid() + ") has ended and /mnt/a b is still mounted"), logged());
    }

    /** As a daemon that was killed and has a thread that can't end, its first one is a zombie and its pipe is open. */
    @Test
    void whoWasKilledAndCannotEndIsCutOffAtOnce() throws Exception {
        supervisor.destroyForcibly().waitFor();
        // A child that its parent does not wait for.
        Process parent = new ProcessBuilder("bash", "-c", "sleep 0.1 & echo $!; exec sleep 600").start();
        try {
            long zombie = Long.parseLong(parent.inputReader().readLine());
            supervisor = start(zombie, 600, 600);
            awaitAbort();
            assertTrue(supervisor.isAlive());
            assertTrue(logged().contains("WARN supervisor the daemon (process " + zombie + ") was killed and can't end, as it waits for its own mount: /mnt/a b is cut off"), logged());
        } finally {
            parent.destroyForcibly().waitFor();
        }
    }

    /** As a suspended machine, a stopped virtual machine or a frozen container does it: neither runs. */
    @Test
    void timeInWhichItDidNotRunDoesNotCount() throws Exception {
        beatFor(1);
        signal("STOP", supervisor);
        Thread.sleep((LIMIT_S + 3) * 1_000L);
        signal("CONT", supervisor);
        Thread.sleep(1_000);
        beatFor(2);
        assertEquals("", aborted());
        assertTrue(supervisor.isAlive());
    }

    @Test
    void itOutlivesTheSignalsThatEndADaemonInOrder() throws Exception {
        // It takes this name when it ignores them.
        while (!Files.readString(Path.of("/proc", Long.toString(supervisor.pid()), "comm")).strip().equals("etcfs-watch")) {
            Thread.sleep(10);
        }
        for (String signal : List.of("TERM", "INT", "HUP", "QUIT")) {
            signal(signal, supervisor);
        }
        beatFor(1);
        assertTrue(supervisor.isAlive());
        awaitAbort();
    }

    @Test
    void whoIsDebuggedIsLeftAlone() throws Exception {
        Process tracer;
        try {
            tracer = new ProcessBuilder("strace", "-o", "/dev/null", "-p", Long.toString(daemon.pid())).redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
        } catch (IOException e) {
            tracer = null;
        }
        assumeTrue(tracer != null, "no strace");
        try {
            Thread.sleep((LIMIT_S + 4) * 1_000L);
            assumeTrue(tracer.isAlive(), "ptrace is not allowed here");
            assertEquals("", aborted());
        } finally {
            tracer.destroy();
            tracer.waitFor();
        }
        awaitAbort();
    }

    /** The agent stops the threads from inside: nothing but its option is to be seen. */
    @Test
    void whoHasADebuggerInsideIsLeftAlone() throws Exception {
        Process debugged = new ProcessBuilder("bash", "-c", "exec -a \"$0\" sleep 600", "-agentlib:jdwp=transport=dt_socket").start();
        Process other = start(debugged, 2, 2);
        try {
            Thread.sleep(5_000);
            assertFalse(logged().contains("process " + debugged.pid()), logged());
        } finally {
            other.destroyForcibly().waitFor();
            debugged.destroyForcibly().waitFor();
        }
    }
}
