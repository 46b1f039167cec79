package io.etcfs.it.outage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.etcfs.core.fault.Fault;
import io.etcfs.it.cluster.Crew;
import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/**
 * A write in place that is in its system call when the daemon is stopped, and is carried out after the other node has taken over, read and written. strace keeps it
 * there: a system call whose entry is delayed is carried out then, whether or not the process was stopped meanwhile.
 */
@OnCluster
@Timeout(value = 3, unit = TimeUnit.MINUTES)
class LateWriteTest {
    private static final AtomicInteger NUMBER = new AtomicInteger();
    private static final int DELAY_S = 15;
    private static final Path STRACE = Path.of("/usr/bin/strace");

    /** What node 2 saw (and wrote, in the middle) of three blocks, a letter each, before and after the write of node 1 landed; what both see in the end; what the write was answered. */
    private record Seen(String before, String after, String inTheEnd, String answer) {}

    @Test
    void anOverwriteThatLandsAfterATakeoverChangesNothing(DevCluster cluster) throws Exception {
        Seen seen = overwriteLate(cluster);
        assertEquals("aca", seen.before);
        assertEquals("aca", seen.after);
        assertEquals("aca aca", seen.inTheEnd);
        assertEquals("EIO", seen.answer, "others have been shown the file without it");
    }

    /** {@code -Detcfs.planted=.*}: the test above fails where blocks are shown without a copy. */
    @Test
    @EnabledIfSystemProperty(named = "etcfs.planted", matches = ".+")
    void withoutCopiesWhatWasReadChanges() throws Exception {
        plantedShows(Fault.SERVED_WITHOUT_COPY, "bca");
    }

    @Test
    @EnabledIfSystemProperty(named = "etcfs.planted", matches = ".+")
    void withoutEpochsWhatWasWrittenIsLost() throws Exception {
        plantedShows(Fault.EPOCH_IGNORED, "aba");
    }

    private static void plantedShows(Fault fault, String after) throws Exception {
        try (DevCluster cluster = DevCluster.up(2, fault)) {
            Seen seen = overwriteLate(cluster);
            System.out.println("PLANTED " + fault + ": " + seen);
            cluster.markBroken();
            assertNotEquals(seen.before, seen.after);
            assertEquals(after, seen.after);
        }
    }

    private static Seen overwriteLate(DevCluster cluster) throws Exception {
        assumeTrue(Files.isExecutable(STRACE) && System.getProperty("os.arch").equals("amd64"), "needs strace, and knows the number of one system call");
        String directory = "late-" + NUMBER.incrementAndGet();
        Path scratch = Files.createTempDirectory(cluster.scratch(), directory);
        run(cluster, directory, 1, """
                os.mkdir(HERE)
                put(HERE + '/f', b'a' * 3 * BLOCK)
                fd = os.open(HERE + '/f', os.O_RDWR | os.O_DSYNC)
                os.pwrite(fd, b'a' * 3 * BLOCK, 0)
                os.fsync(fd)
                """);
        Process strace = new ProcessBuilder(STRACE.toString(), "-f", "-qq", "-o", scratch.resolve("strace").toString(), "-e", "trace=pwrite64", "-e",
                "inject=pwrite64:delay_enter=" + DELAY_S * 1_000_000L + ":when=1", "-p", Long.toString(cluster.pid(1))).inheritIO().start();
        Crew crew = new Crew(cluster);
        try {
            awaitThat("strace attaches", 20, () -> traced(cluster.pid(1)));
            Thread.sleep(1_000);
            add(crew, cluster, directory, 1, "writer", """
                    fd = os.open(HERE + '/f', os.O_RDWR | os.O_DIRECT | os.O_DSYNC)
                    blocks = mmap.mmap(-1, 2 * BLOCK)
                    blocks.write(b'b' * 2 * BLOCK)
                    idle()
                    try:
                        os.pwrite(fd, blocks, 0)
                        answer = 'written'
                    except OSError as e:
                        answer = errno.errorcode[e.errno]
                    with open(ARGS[0] + '/answer', 'w') as f:
                        f.write(answer)
                    """, scratch);
            add(crew, cluster, directory, 2, "survivor", """
                    def seen(fd, i):
                        block = mmap.mmap(-1, BLOCK)
                        os.preadv(fd, [block], i * BLOCK)
                        check(block[:] == block[:1] * BLOCK, 'block', i, 'is torn')
                        return chr(block[0])

                    def all_seen(fd):
                        return ''.join(seen(fd, i) for i in range(3))

                    def say(what, text):
                        with open(ARGS[0] + '/' + what + '-', 'w') as f:
                            f.write(text)
                        os.rename(ARGS[0] + '/' + what + '-', ARGS[0] + '/' + what)

                    def wait_for(what):
                        idle()
                        while not os.path.exists(ARGS[0] + '/' + what):
                            time.sleep(0.05)
                        busy()

                    wait_for('stopped')
                    fd = os.open(HERE + '/f', os.O_RDWR | os.O_DIRECT)
                    tick()
                    block = mmap.mmap(-1, BLOCK)
                    block.write(b'c' * BLOCK)
                    os.pwrite(fd, block, BLOCK)
                    os.fsync(fd)
                    # What it has written it does not read yet: reading makes a copy of a block that is not of the present epoch.
                    say('before', seen(fd, 0) + 'c' + seen(fd, 2))
                    wait_for('landed')
                    say('after', all_seen(fd))
                    wait_for('answer')
                    other = os.open(THERE + '/f', os.O_RDONLY | os.O_DIRECT)
                    say('inTheEnd', all_seen(other) + ' ' + all_seen(fd))
                    """, scratch);
            crew.start();
            awaitThat("the write is in its system call", 20, () -> delayed(cluster.pid(1)));
            cluster.pause(1);
            Files.createFile(scratch.resolve("stopped"));
            awaitThat("node 2 has read and written", DELAY_S, () -> Files.exists(scratch.resolve("before")));
            assertTrue(delayed(cluster.pid(1)), "the write is not on its way any more");
            awaitThat("the write is carried out", 2 * DELAY_S, () -> Files.readString(scratch.resolve("strace")).contains("= 8192 (DELAYED)"));
            Files.createFile(scratch.resolve("landed"));
            awaitThat("node 2 has read again", DELAY_S, () -> Files.exists(scratch.resolve("after")));
            end(strace);
            cluster.resume(1);
            crew.await(Duration.ofSeconds(60));
        } finally {
            end(strace);
            cluster.resume(1);
            crew.close();
        }
        return new Seen(Files.readString(scratch.resolve("before")), Files.readString(scratch.resolve("after")), Files.readString(scratch.resolve("inTheEnd")), Files.readString(scratch.resolve("answer")));
    }

    private interface Condition {
        boolean holds() throws IOException;
    }

    private static void awaitThat(String what, int seconds, Condition condition) throws Exception {
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        while (!condition.holds()) {
            assertTrue(System.nanoTime() < end, "not within " + seconds + " s: " + what);
            Thread.sleep(50);
        }
    }

    private static boolean traced(long pid) throws IOException {
        return Files.readString(Path.of("/proc/" + pid + "/status")).lines().anyMatch(l -> l.matches("TracerPid:\\s+[1-9].*"));
    }

    /** A thread is kept at the entry of its write, for longer than strace takes to look at it. */
    private static boolean delayed(long pid) throws IOException {
        for (int look = 0; look < 3; look++) {
            boolean any = false;
            try (DirectoryStream<Path> threads = Files.newDirectoryStream(Path.of("/proc/" + pid + "/task"))) {
                for (Path t : threads) {
                    any |= atPwrite(t);
                }
            }
            if (!any) {
                return false;
            }
        }
        return true;
    }

    private static boolean atPwrite(Path thread) {
        try {
            String stat = Files.readString(thread.resolve("stat"));
            return stat.substring(stat.lastIndexOf(')')).startsWith(") t") && Files.readString(thread.resolve("syscall")).startsWith("18 ");
        } catch (IOException e) {
            // It has ended.
            return false;
        }
    }

    private static void end(Process strace) throws InterruptedException {
        strace.destroy();
        if (!strace.waitFor(10, TimeUnit.SECONDS)) {
            strace.destroyForcibly().waitFor();
        }
    }

    private static void add(Crew crew, DevCluster cluster, String directory, int node, String name, String program, Object... args) {
        Object[] all = new Object[args.length + 2];
        all[0] = cluster.mount(node).resolve(directory);
        all[1] = cluster.mount(3 - node).resolve(directory);
        System.arraycopy(args, 0, all, 2, args.length);
        crew.add(name, program, all);
    }

    private static void run(DevCluster cluster, String directory, int node, String program) {
        Crew crew = new Crew(cluster);
        add(crew, cluster, directory, node, "prepare", program);
        crew.await(Duration.ofSeconds(40));
    }
}
