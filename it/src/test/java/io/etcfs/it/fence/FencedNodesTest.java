package io.etcfs.it.fence;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fault.Fault;
import io.etcfs.it.cluster.Crew;
import io.etcfs.it.cluster.DevCluster;
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
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/** Two nodes on a target of tgt: who vanishes is cut off from the device. */
@Timeout(value = 6, unit = TimeUnit.MINUTES)
class FencedNodesTest {
    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final String WRITE = """
            os.makedirs(HERE, exist_ok=True)
            fd = os.open(HERE + '/' + ARGS[0], os.O_RDWR | os.O_CREAT, 0o644)
            os.pwrite(fd, ARGS[1].encode() * (1 << 20), 0)
            os.fsync(fd); tick()
            """;
    private static final String CHECK = """
            with open(HERE + '/' + ARGS[0], 'rb') as f:
                check(f.read() == ARGS[1].encode() * (1 << 20), ARGS[0])
            """;
    /** Overwrites a file in place, past all caches, for as long as that works. */
    private static final String OVERWRITE = """
            import mmap, os, sys
            fd = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
            m = mmap.mmap(-1, 4096)
            m.write(sys.argv[2].encode() * 4096)
            while True:
                for i in range(256):
                    os.pwrite(fd, m, i * 4096)
            """;

    private static DevCluster cluster;

    @BeforeAll
    static void up() {
        cluster = DevCluster.up(2, Map.of("DEV_DEVICE", "iscsi"));
    }

    @AfterAll
    static void down() {
        if (cluster != null) {
            cluster.close();
        }
    }

    @AfterEach
    void bothServe() {
        for (int node = 1; node <= 2; node++) {
            if (!cluster.isServing(node)) {
                cluster.remount(node);
            }
        }
    }

    private static void run(int node, String program, String... args) {
        List<Object> all = new ArrayList<>(List.of(cluster.mount(node).resolve("fenced"), ""));
        all.addAll(List.of(args));
        Crew.run(cluster, LIMIT, "fenced", program, all.toArray());
    }

    private static long times(String what, String log) {
        return log.lines().filter(l -> l.contains(what)).count();
    }

    private static void assertSound() {
        DevCluster.Result fsck = cluster.tryEtcfsctl("fsck");
        assertEquals(0, fsck.code(), fsck.toString());
    }

    @Test
    void whoIsKilledIsFencedOnce() throws Exception {
        long fencedBefore = times("node n2 is fenced", cluster.logOf(1));
        run(2, WRITE, "killed", "a");
        assertTrue(cluster.count("arena:n2/") > 0);
        cluster.kill(2);
        long begin = System.nanoTime();
        run(1, WRITE, "killed", "b");
        System.out.println("the other wrote its file " + (System.nanoTime() - begin) / 1_000_000 + " ms after the kill");
        System.out.println("fence_done " + cluster.await("the fence", LIMIT, () -> cluster.count("fence_done:n2") == 1) + " ms after the other's write");
        assertEquals(0, cluster.count("arena:n2/") + cluster.count("fence_pending:"));
        // Who has freed blocks in them may have claimed them already.
        assertTrue(cluster.count("free_arena:") + cluster.count("arena:n1/") > 1);
        run(1, CHECK, "killed", "b");
        assertEquals(0, cluster.tryEtcfsctl("status").code());
        assertSound();
        Thread.sleep(35_000);
        assertEquals(fencedBefore + 1, times("node n2 is fenced", cluster.logOf(1)), "once, the next sweep included");
        cluster.remount(2);
        assertEquals(0, cluster.count("fence_"));
        run(2, CHECK, "killed", "b");
        run(2, WRITE, "killed", "c");
        run(1, CHECK, "killed", "c");
        assertSound();
    }

    /** The rule that a node without a session does not write is broken in it: the device alone holds it back. */
    @Test
    void whoIsCutOffFromEtcdIsRefusedByTheDevice() throws Exception {
        cluster.umount(2);
        String endpoint = cluster.etcdEndpoint();
        try (Relay relay = new Relay(Integer.parseInt(endpoint.substring(endpoint.lastIndexOf(':') + 1)))) {
            cluster.reachEtcdBy(2, "127.0.0.1:" + relay.port());
            cluster.remount(2, Fault.TOKEN_KEPT_PAST_DEADLINE);
            run(2, WRITE, "cut", "a");
            Process writer = new ProcessBuilder("python3", "-c", OVERWRITE, cluster.mount(2).resolve("fenced/cut").toString(), "x").redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
            try {
                Thread.sleep(1_000);
                assertTrue(writer.isAlive());
                relay.silence();
                cluster.await("the fence", LIMIT, () -> cluster.count("fence_done:n2") == 1);
                cluster.await("it stops", LIMIT, () -> !cluster.isServing(2));
                assertTrue(cluster.logOf(2).contains("reservation conflict"), cluster.logTails());
                run(1, WRITE, "cut", "b");
                run(1, CHECK, "cut", "b");
                assertSound();
            } finally {
                writer.destroyForcibly().waitFor();
                cluster.reachEtcd(2);
            }
        }
        cluster.remount(2);
        run(2, CHECK, "cut", "b");
    }

    @Test
    void whoWasStoppedForLongerFindsItselfFenced() throws Exception {
        run(2, WRITE, "stopped", "a");
        Process writer = new ProcessBuilder("python3", "-c", OVERWRITE, cluster.mount(2).resolve("fenced/stopped").toString(), "x").redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
        try {
            Thread.sleep(1_000);
            cluster.pause(2);
            cluster.await("the fence", LIMIT, () -> cluster.count("fence_done:n2") == 1);
            run(1, WRITE, "stopped", "b");
            cluster.resume(2);
            cluster.await("it stops", LIMIT, () -> !cluster.isServing(2));
            assertTrue(cluster.logOf(2).contains("this node was fenced"), cluster.logTails());
            run(1, CHECK, "stopped", "b");
            assertSound();
        } finally {
            writer.destroyForcibly().waitFor();
        }
        cluster.remount(2);
        run(2, CHECK, "stopped", "b");
    }

    @Test
    void whoUnmountsIsNeverFenced() throws Exception {
        for (int i = 0; i < 5; i++) {
            run(2, WRITE, "left", Integer.toString(i));
            cluster.umount(2);
            assertEquals(1, cluster.count("departed:n2"));
            assertEquals(0, cluster.count("fence_") + cluster.count("arena:n2/"));
            run(1, CHECK, "left", Integer.toString(i));
            cluster.remount(2);
        }
        Thread.sleep(12_000);
        assertEquals(0, cluster.count("fence_"));
        assertSound();
    }

    /** {@code -Detcfs.it.fence.rounds=100}. */
    @Test
    @Timeout(value = 2, unit = TimeUnit.HOURS)
    @EnabledIfSystemProperty(named = "etcfs.it.fence.rounds", matches = "[1-9][0-9]*")
    void eachCrashIsFencedOnceAndNoLeaveIs() throws Exception {
        int rounds = Integer.getInteger("etcfs.it.fence.rounds");
        List<Long> fenceMs = new ArrayList<>();
        for (int i = 1; i <= rounds; i++) {
            run(2, WRITE, "counted", "a");
            cluster.kill(2);
            run(1, WRITE, "counted", "b");
            fenceMs.add(cluster.await("the fence", LIMIT, () -> cluster.count("fence_done:n2") == 1));
            int fences = i;
            // It is said once etcd has answered.
            cluster.await("the word of it", LIMIT, () -> times("node n2 is fenced", cluster.logOf(1)) >= fences);
            assertEquals(i, times("node n2 is fenced", cluster.logOf(1)), "fences after " + i + " crashes");
            cluster.remount(2);
            run(2, CHECK, "counted", "b");
            cluster.umount(2);
            assertEquals(1, cluster.count("departed:n2"));
            assertEquals(0, cluster.count("fence_") + cluster.count("arena:n2/"));
            cluster.remount(2);
        }
        cluster.umount(2);
        Thread.sleep(45_000);
        assertEquals(0, cluster.count("fence_"), "a sweep finds nobody");
        assertEquals(rounds, times("node n2 is fenced", cluster.logOf(1)));
        assertSound();
        fenceMs.sort(null);
        System.out.println(rounds + " crashes fenced once each, " + (rounds + 1) + " leaves not; ms from the other's write to fence_done: median " + fenceMs.get(rounds / 2) + ", worst "
                + fenceMs.getLast());
    }
}
