package io.etcfs.it.membership;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.it.cluster.Crew;
import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@OnCluster
@Timeout(value = 4, unit = TimeUnit.MINUTES)
class MembershipTest {
    private static final Duration LIMIT = Duration.ofSeconds(60);
    /** More than one arena of the device has. */
    private static final String FILL = """
            os.makedirs(HERE, exist_ok=True)
            with open(HERE + '/' + ARGS[0], 'wb') as f:
                for i in range(40):
                    f.write(ARGS[0].encode() * (1 << 18)); tick()
                os.fsync(f.fileno())
            """;
    private static final String CHECK = """
            with open(HERE + '/' + ARGS[0], 'rb') as f:
                for i in range(40):
                    check(f.read(4 << 18) == ARGS[0].encode() * (1 << 18), ARGS[0], i); tick()
            """;
    /** Has a file open that has no name any more, until it is killed. */
    private static final String HOLD = """
            import os, sys, time
            f = open(sys.argv[1] + '/nameless', 'wb')
            f.write(b'x' * (1 << 20))
            os.fsync(f.fileno())
            os.unlink(sys.argv[1] + '/nameless')
            os.fsync(f.fileno())
            open(sys.argv[2], 'w').close()
            time.sleep(600)
            """;

    private static void run(DevCluster cluster, int node, String program, String name) {
        Crew.run(cluster, LIMIT, "member", program, cluster.mount(node).resolve("members"), "", name);
    }

    private static void assertSound(DevCluster cluster) {
        DevCluster.Result fsck = cluster.tryEtcfsctl("fsck");
        assertEquals(0, fsck.code(), fsck.toString());
        assertTrue(fsck.output().lines().noneMatch(l -> l.startsWith("leftover") && !l.contains("owner_left")), fsck.output());
    }

    @Test
    void whoUnmountsGivesItsSpaceToTheOther(DevCluster cluster) throws Exception {
        run(cluster, 2, FILL, "left");
        assertTrue(cluster.count("arena:n2/") >= 3);
        long used = used(cluster);
        cluster.umount(2);
        assertEquals(1, cluster.count("departed:n2"));
        assertEquals(0, cluster.count("arena:n2/") + cluster.count("membership:n2") + cluster.count("session:n2") + cluster.count("opened:n2"));
        long pool = cluster.count("free_arena:");
        assertTrue(pool >= 3);
        assertEquals(used, used(cluster));
        run(cluster, 1, CHECK, "left");
        run(cluster, 1, FILL, "next");
        assertTrue(cluster.count("free_arena:") < pool, "the other node uses what was given back");
        assertSound(cluster);
        Thread.sleep(12_000);
        assertEquals(0, cluster.count("fence_"), "nobody is fenced that left");
        cluster.remount(2);
        assertEquals(0, cluster.count("departed:n2"));
        run(cluster, 2, CHECK, "left");
        run(cluster, 2, CHECK, "next");
        assertEquals(0, cluster.tryEtcfsctl("status").code());
    }

    /** Of the device, in bytes, as all nodes' records say. */
    private static long used(DevCluster cluster) {
        String json = cluster.etcfsctl("df", "-o", "json");
        return Long.parseLong(json.replaceFirst("(?s).*?\"used_bytes\":([0-9]+).*", "$1"));
    }

    @Test
    void umountSaysWhoDidNotLeaveInOrder(DevCluster cluster) throws Exception {
        run(cluster, 2, FILL, "oddl");
        Ended unclean;
        cluster.pauseEtcd();
        try {
            unclean = umount(cluster, 2);
        } finally {
            cluster.resumeEtcd();
        }
        assertEquals(2, unclean.code(), unclean.toString());
        assertTrue(unclean.error().contains("node 'n2' did not leave in order"), unclean.toString());
        assertEquals(0, cluster.count("departed:n2"));
        cluster.remount(2);
        cluster.kill(2);
        Ended killed = umount(cluster, 2);
        assertEquals(2, killed.code(), killed.toString());
        assertTrue(killed.error().contains("no daemon of this host served"), killed.toString());
        cluster.remount(2);
        assertEquals(new Ended(0, ""), umount(cluster, 2));
        assertEquals(1, cluster.count("departed:n2"));
        cluster.remount(2);
        run(cluster, 2, CHECK, "oddl");
        assertSound(cluster);
    }

    private record Ended(int code, String error) {}

    /** {@code etcfs umount} itself. */
    private static Ended umount(DevCluster cluster, int node) throws Exception {
        Process process = new ProcessBuilder(cluster.root().resolve("cli/target/dist/bin/etcfs").toString(), "umount", cluster.mount(node).toString()).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes());
        return new Ended(process.waitFor(), said);
    }

    /** What a mount makes before it is refused goes again; what another one holds does not. */
    @Test
    void aRefusedMountLeavesNoFiles(DevCluster cluster) throws Exception {
        String name = cluster.prefix().split("/")[1];
        Path lock = Path.of("/run/etcfs", name + "-refused.lock");
        Path log = cluster.scratch().resolve("refused.log");
        for (String[] wrong : new String[][] {{"refused", "/dev/none"}, {"n1", "/dev/none"}, {"refused", "/dev/null"}}) {
            Process process = new ProcessBuilder(cluster.root().resolve("cli/target/dist/bin/etcfs").toString(), "mount", name, cluster.scratch().toString(), "--device", wrong[1], "--node", wrong[0],
                    "--no-fencer", "--etcd", cluster.etcdEndpoint(), "--log-file", log.toString()).redirectErrorStream(true).start();
            String said = new String(process.getInputStream().readAllBytes());
            assertEquals(32, process.waitFor(), said);
            assertTrue(!Files.exists(log) && !Files.exists(lock), said);
            assertTrue(Files.exists(Path.of("/run/etcfs", name + "-n1.lock")));
        }
    }

    @Test
    void whoIsKilledIsToBeFencedUntilItIsBack(DevCluster cluster) throws Exception {
        run(cluster, 2, FILL, "kept");
        cluster.kill(2);
        long ms = cluster.await("the intent to fence it", Duration.ofSeconds(25), () -> cluster.count("fence_pending:n2") == 1);
        System.out.println("fence_pending " + ms + " ms after the kill");
        assertTrue(ms > 5_000, "it was given up after " + ms + " ms");
        DevCluster.Result status = cluster.tryEtcfsctl("status");
        assertEquals(1, status.code(), status.toString());
        assertTrue(status.output().contains("node n2 vanished and is not fenced yet"), status.output());
        assertTrue(cluster.etcfsctl("fsck").contains("node_vanished"));
        assertTrue(cluster.count("arena:n2/") > 0, "without a fencer nothing is taken");
        cluster.remount(2);
        assertEquals(0, cluster.count("fence_"));
        run(cluster, 2, CHECK, "kept");
        run(cluster, 2, FILL, "more");
        assertEquals(0, cluster.tryEtcfsctl("status").code());
        assertSound(cluster);
    }

    @Test
    void whoIsDeclaredDeadGivesAllItHad(DevCluster cluster) throws Exception {
        run(cluster, 2, FILL, "dead");
        Path ready = cluster.scratch().resolve("held");
        Files.deleteIfExists(ready);
        Process holder = new ProcessBuilder("python3", "-c", HOLD, cluster.mount(2).toString(), ready.toString()).redirectErrorStream(true)
                .redirectOutput(cluster.scratch().resolve("holder").toFile()).start();
        try {
            cluster.await("the file without a name", LIMIT, () -> Files.exists(ready));
            cluster.etcfsctl("sync");
            assertEquals(1, cluster.count("orphan:"));
            assertNotEquals(0, declareDead(cluster, "-y").code(), "it is alive");
            cluster.kill(2);
            cluster.await("the intent to fence it", Duration.ofSeconds(25), () -> cluster.count("fence_pending:n2") == 1);
            assertEquals(1, cluster.count("orphan:"), "what it had open is kept for as long as it may come back");
            DevCluster.Result unconfirmed = declareDead(cluster);
            assertEquals(1, unconfirmed.code());
            assertTrue(unconfirmed.error().contains("give -y"), unconfirmed.toString());
            assertEquals(1, cluster.count("fence_pending:n2"));
            DevCluster.Result done = declareDead(cluster, "-y");
            assertEquals(0, done.code(), done.toString());
            assertEquals(0, cluster.count("arena:n2/") + cluster.count("fence_pending:"));
            assertEquals(1, cluster.count("fence_done:n2"));
            cluster.await("what only it had open is freed", LIMIT, () -> cluster.count("orphan:") + cluster.count("opened:n2") + cluster.count("opened:n1") == 0);
            run(cluster, 1, CHECK, "dead");
            assertEquals(0, cluster.tryEtcfsctl("status").code(), "nothing is waited for");
            assertSound(cluster);
        } finally {
            holder.destroyForcibly().waitFor();
        }
        cluster.remount(2);
        assertEquals(0, cluster.count("fence_"));
        assertTrue(cluster.etcfsctl("status", "-o", "json").contains("\"generation\":1"), "it joined with the generation that it found");
        run(cluster, 2, CHECK, "dead");
        run(cluster, 2, FILL, "again");
        assertSound(cluster);
    }

    private static DevCluster.Result declareDead(DevCluster cluster, String... more) throws IOException {
        String[] words = new String[3 + more.length];
        System.arraycopy(new String[] {"node", "declare-dead", "n2"}, 0, words, 0, 3);
        System.arraycopy(more, 0, words, 3, more.length);
        return cluster.tryEtcfsctl(words);
    }
}
