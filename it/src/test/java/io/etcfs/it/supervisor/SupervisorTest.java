package io.etcfs.it.supervisor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.etcfs.it.cluster.DevCluster;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A daemon that hangs or is killed, and what becomes of programs that use its mount. The device is not asked: one node alone does. */
@Timeout(value = 3, unit = TimeUnit.MINUTES)
class SupervisorTest {
    private static final int LIMIT_S = 6;
    private static final Duration LIMIT = Duration.ofSeconds(60);
    /** Makes a name that nobody knows, tells the errno. */
    private static final String MAKE = "import os, sys\ntry:\n    os.close(os.open(sys.argv[1], os.O_CREAT | os.O_EXCL | os.O_WRONLY))\n    print(0)\nexcept OSError as e:\n    print(e.errno)\n";

    private static final boolean OVER_URING = System.getProperty("etcfs.it.transport", "dev").equals("uring");

    private static DevCluster cluster;
    private static int made;

    @BeforeAll
    static void up() {
        cluster = DevCluster.up(1, Map.of("DEV_MOUNT_ARGS", "--transport " + (OVER_URING ? "uring" : "dev") + " --hang-limit " + LIMIT_S));
    }

    @AfterAll
    static void down() {
        if (cluster != null) {
            cluster.close();
        }
    }

    @AfterEach
    void serves() throws Exception {
        DevCluster.signal("CONT", cluster.pid(1));
        cluster.await("it works, or has left", LIMIT, () -> !cluster.isServing(1) || errno(making()) == 0);
        if (!cluster.isServing(1)) {
            cluster.remount(1);
        }
    }

    /** Those of a daemon. */
    private static List<Long> supervisorsOf(long daemon) throws IOException {
        List<Long> found = new ArrayList<>();
        try (DirectoryStream<Path> processes = Files.newDirectoryStream(Path.of("/proc"), "[0-9]*")) {
            for (Path p : processes) {
                try {
                    List<String> words = List.of(Files.readString(p.resolve("cmdline"), StandardCharsets.ISO_8859_1).split("\0"));
                    if (words.size() > 4 && words.get(1).endsWith("/supervisor.sh") && words.get(3).equals(Long.toString(daemon))) {
                        found.add(Long.parseLong(p.getFileName().toString()));
                    }
                } catch (IOException e) {
                    // It has ended meanwhile.
                }
            }
        }
        return found;
    }

    private static long supervisor() throws Exception {
        long daemon = cluster.pid(1);
        cluster.await("its supervisor", LIMIT, () -> supervisorsOf(daemon).size() == 1);
        return supervisorsOf(daemon).getFirst();
    }

    private static Process making() throws IOException {
        return new ProcessBuilder("python3", "-c", MAKE, cluster.mount(1).resolve("made" + ++made).toString()).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    }

    private static int errno(Process making) throws Exception {
        assertTrue(making.waitFor(LIMIT.toSeconds(), TimeUnit.SECONDS), "it hangs");
        return Integer.parseInt(new String(making.getInputStream().readAllBytes()).strip());
    }

    private static void assertCutOff(int errno) {
        // ENOTCONN, ECONNABORTED, and ECANCELED over io_uring.
        assertTrue(List.of(107, 103, 125).contains(errno), "errno " + errno);
    }

    private static void assertWorks() throws Exception {
        assertEquals(0, errno(making()));
        // Where the mount has gone from its place, the directory below it takes names, too.
        assertTrue(cluster.isServing(1), cluster.logTails());
        DevCluster.Result fsck = cluster.tryEtcfsctl("fsck");
        assertEquals(0, fsck.code(), fsck.toString());
    }

    @Test
    void whoHangsIsCutOffAndLeavesInOrderWhenItGoesOn() throws Exception {
        long supervisor = supervisor();
        assertEquals(0, errno(making()));
        cluster.pause(1);
        Process waits = making();
        // The last sign of life can be some seconds old on a busy machine.
        assertTrue(!waits.waitFor(LIMIT_S / 3, TimeUnit.SECONDS), "it is only slow until then");
        assertTrue(OVER_URING || waits.waitFor(LIMIT.toSeconds(), TimeUnit.SECONDS), "it hangs");
        cluster.await("it is cut off", LIMIT, () -> cluster.logOf(1).contains("has given no sign of life for " + LIMIT_S + " s"));
        assertCutOff(errno(making()));
        cluster.resume(1);
        // Over io_uring Linux ends what it was handing to a stopped process only when that goes on, or is killed.
        assertCutOff(errno(waits));
        cluster.await("the daemon leaves", LIMIT, () -> !cluster.isServing(1));
        cluster.await("and its supervisor", LIMIT, () -> supervisorsOf(cluster.pid(1)).isEmpty());
        assertTrue(cluster.keys("departed:n1").contains("departed:n1"), cluster.logTails());
        // Not in the directory below.
        assertCutOff(errno(making()));
        cluster.remount(1);
        assertNotEquals(supervisor, supervisor());
        assertWorks();
    }

    @Test
    void aShortStopIsOnlyAWait() throws Exception {
        supervisor();
        cluster.pause(1);
        Process waits = making();
        Thread.sleep((LIMIT_S - 3) * 1_000L);
        cluster.resume(1);
        assertEquals(0, errno(waits));
        Thread.sleep((LIMIT_S + 2) * 1_000L);
        assertWorks();
    }

    @Test
    void whoStaysSilentIsKilled() throws Exception {
        supervisor();
        cluster.pause(1);
        assertCutOff(errno(making()));
        cluster.await("it is killed", LIMIT, () -> !cluster.isServing(1));
        cluster.await("the supervisor ends", LIMIT, () -> supervisorsOf(cluster.pid(1)).isEmpty());
        assertCutOff(errno(making()));
        cluster.remount(1);
        assertWorks();
    }

    @Test
    void whoIsKilledIsReported() throws Exception {
        supervisor();
        cluster.kill(1);
        assertCutOff(errno(making()));
        cluster.await("the supervisor ends", LIMIT, () -> supervisorsOf(cluster.pid(1)).isEmpty());
        assertTrue(cluster.logOf(1).contains("the daemon (process " + cluster.pid(1) + ") has ended and " + cluster.mount(1) + " is still mounted"), cluster.logTails());
        cluster.remount(1);
        assertWorks();
    }

    /** Nothing kills a thread that waits in the kernel for its own mount: of the daemon's, the one that opens a log file there, which needs an answer of etcd. */
    @Test
    void whoIsKilledWhileItWaitsForItsOwnMountEnds() throws Exception {
        long supervisor = supervisor();
        killWhileItWaitsForItself(false);
        cluster.await("it ends", LIMIT, () -> !Files.exists(Path.of("/proc", Long.toString(supervisor))));
        assertTrue(cluster.logOf(1).contains("was killed and can't end, as it waits for its own mount"), cluster.logTails());
        cluster.remount(1);
        assertWorks();
    }

    @Test
    void itIsMountedAgainWhereTheSupervisorIsGoneAsWell() throws Exception {
        killWhileItWaitsForItself(true);
        cluster.remount(1);
        assertTrue(cluster.logOf(1).contains("an earlier daemon of this node was killed and can't end"), cluster.logTails());
        assertWorks();
    }

    private static void killWhileItWaitsForItself(boolean supervisorToo) throws Exception {
        long daemon = cluster.pid(1);
        Path log = cluster.logFile(1);
        Path aside = log.resolveSibling("aside");
        assertWorks();
        Path own = Files.createDirectories(cluster.mount(1).resolve("logs"));
        cluster.pauseEtcd();
        try {
            Files.move(log, aside);
            Files.createSymbolicLink(log, own.resolve("log" + ++made));
            DevCluster.signal("HUP", daemon);
            cluster.await("it waits for itself", LIMIT, () -> waitsForItself(daemon));
            if (supervisorToo) {
                DevCluster.signal("KILL", supervisor());
            }
            DevCluster.signal("KILL", daemon);
        } finally {
            Files.move(aside, log, StandardCopyOption.REPLACE_EXISTING);
            cluster.resumeEtcd();
        }
        assertTrue(waitsForItself(daemon), "nothing holds it");
    }

    private static boolean waitsForItself(long daemon) throws IOException {
        try (DirectoryStream<Path> threads = Files.newDirectoryStream(Path.of("/proc", Long.toString(daemon), "task"))) {
            for (Path thread : threads) {
                try {
                    if (Files.readString(thread.resolve("wchan")).equals("request_wait_answer")) {
                        return true;
                    }
                } catch (NoSuchFileException e) {
                    // It has ended meanwhile.
                }
            }
            return false;
        }
    }

    @Test
    void anUnmountLeavesNone() throws Exception {
        long daemon = cluster.pid(1);
        long errors = cluster.logOf(1).lines().filter(l -> l.contains(" supervisor ")).count();
        supervisor();
        cluster.umount(1);
        assertEquals(List.of(), supervisorsOf(daemon));
        assertEquals(errors, cluster.logOf(1).lines().filter(l -> l.contains(" supervisor ")).count(), cluster.logTails());
        cluster.remount(1);
    }

    @Test
    void whereItIsKilledAnotherOneWatches() throws Exception {
        long first = supervisor();
        DevCluster.signal("KILL", first);
        cluster.await("another one", LIMIT, () -> !supervisorsOf(cluster.pid(1)).isEmpty() && supervisor() != first);
        assertTrue(cluster.logOf(1).contains("the supervisor (process " + first + ") has ended, another one is started"), cluster.logTails());
        assertWorks();
        cluster.pause(1);
        assertCutOff(errno(making()));
        cluster.resume(1);
        cluster.await("the daemon leaves", LIMIT, () -> !cluster.isServing(1));
    }

    /** It comes to see that its daemon has ended only when another mount has had the number of its connection for long. */
    @Test
    void aMountThatGetsTheSameNumberIsNotMeant() throws Exception {
        boolean same = false;
        // The kernel gives the lowest number that is free, and others mount and unmount, too.
        for (int i = 0; i < 10 && !same; i++) {
            long late = supervisor();
            int number = number();
            DevCluster.signal("STOP", late);
            try {
                cluster.kill(1);
                cluster.remount(1);
                same = number == number();
            } finally {
                DevCluster.signal("CONT", late);
            }
            cluster.await("the late one ends", LIMIT, () -> !Files.exists(Path.of("/proc", Long.toString(late))));
            assertWorks();
        }
        assumeTrue(same, "the number was never given again");
    }

    private static int number() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/mountinfo"))) {
            String[] field = line.split(" ");
            if (field[4].equals(cluster.mount(1).toString())) {
                return Integer.parseInt(field[2].substring(field[2].indexOf(':') + 1));
            }
        }
        throw new AssertionError("not mounted");
    }
}
