package io.etcfs.it.fsck;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.it.cluster.Crew;
import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@OnCluster
@Timeout(value = 2, unit = TimeUnit.MINUTES)
class FsckTest {
    /** While the load goes on for at least so long, and so many looks at it. */
    private static final Duration LOAD = Duration.ofSeconds(8);
    private static final int LOOKS = 5;

    /** Whatever two nodes are in the middle of, the records agree. */
    @Test
    void aBusyFilesystemIsCleanAllTheTime(DevCluster cluster) throws Exception {
        Crew.run(cluster, Duration.ofSeconds(20), "prepare", "for d in 'abc':\n    os.makedirs(HERE + '/' + d)\n", cluster.mount(1).resolve("fsck"), "");
        Path enough = cluster.scratch().resolve("enough");
        int clean = 0;
        try (Crew crew = new Crew(cluster)) {
            for (int node = 1; node <= 2; node++) {
                crew.add("load", load(), cluster.mount(node).resolve("fsck"), "", node, enough);
            }
            crew.start();
            long end = System.nanoTime() + LOAD.toNanos();
            while (clean < LOOKS || System.nanoTime() < end) {
                assertClean(cluster);
                clean++;
            }
            Files.createFile(enough);
            crew.await(Duration.ofSeconds(30));
        }
        assertClean(cluster);
        System.out.println("clean " + clean + " times: " + cluster.etcfsctl("fsck").strip());
    }

    /** Sessions end while directories are removed: what is left of those goes once they are back. */
    @Test
    void nothingIsLeftOverOnceAnOutageIsOver(DevCluster cluster) throws Exception {
        Crew.run(cluster, Duration.ofSeconds(20), "prepare", "for d in 'abc':\n    os.makedirs(HERE + '/' + d, exist_ok=True)\n", cluster.mount(1).resolve("fsck"), "");
        List<String> before = leftByCrashes(cluster);
        Path enough = cluster.scratch().resolve("enough-" + System.nanoTime());
        try (Crew crew = new Crew(cluster)) {
            for (int node = 1; node <= 2; node++) {
                crew.add("load", load(), cluster.mount(node).resolve("fsck"), "", node, enough);
            }
            crew.start();
            for (int i = 0; i < 2; i++) {
                Thread.sleep(2_000);
                cluster.pauseEtcd();
                Thread.sleep(4_000);
                cluster.resumeEtcd();
            }
            Thread.sleep(3_000);
            Files.createFile(enough);
            crew.await(Duration.ofSeconds(30));
        }
        List<String> left = leftByCrashes(cluster);
        left.removeAll(before);
        for (int i = 0; i < 50 && !left.isEmpty(); i++) {
            Thread.sleep(100);
            left.retainAll(leftByCrashes(cluster));
        }
        assertEquals(List.of(), left);
        assertClean(cluster);
    }

    private static List<String> leftByCrashes(DevCluster cluster) {
        return new ArrayList<>(cluster.etcfsctl("fsck").lines().filter(l -> l.contains("owner_left")).toList());
    }

    /** Opened with O_TMPFILE and still open when the daemon is killed: freed when the node is back. Those that got a name stay. */
    @Test
    void filesWithoutANameGoWithACrash(DevCluster cluster) throws Exception {
        String directory = "unnamed";
        // Another test's may be on their way out: an inode stays while a kernel remembers it.
        Set<String> others = orphans(cluster);
        Crew.run(cluster, Duration.ofSeconds(20), "prepare", "os.mkdir(HERE)\n", cluster.mount(2).resolve(directory), "");
        try (Crew crew = new Crew(cluster)) {
            Crew.Child child = crew.add("open", """
                    held = []
                    for i in range(30):
                        fd = os.open(HERE, os.O_TMPFILE | os.O_RDWR)
                        held.append(fd)
                        os.write(fd, os.urandom(50_000))
                        if i % 3 == 0 and libc.linkat(-100, b'/proc/self/fd/%d' % fd, -100, os.fsencode(HERE + '/%d' % i), 0x400) < 0:
                            raise OSError(ctypes.get_errno(), 'linkat')
                        os.fsync(fd)
                        tick()
                    time.sleep(60)
                    """, cluster.mount(1).resolve(directory), "");
            crew.start();
            child.awaitTicks(29, Duration.ofSeconds(30));
            Set<String> made = orphans(cluster);
            made.removeAll(others);
            assertTrue(made.size() >= 20, "only " + made);
            cluster.kill(1);
        }
        cluster.remount(1);
        long end = System.nanoTime() + Duration.ofSeconds(20).toNanos();
        Set<String> left = orphans(cluster);
        left.removeAll(others);
        while (!left.isEmpty() && System.nanoTime() < end) {
            Thread.sleep(100);
            left.retainAll(orphans(cluster));
        }
        assertEquals(Set.of(), left, () -> cluster.keys("open:") + cluster.keys("opened:"));
        assertClean(cluster);
        Crew.run(cluster, Duration.ofSeconds(20), "names", "check(sorted(os.stat(HERE + '/%d' % i).st_size for i in range(0, 30, 3)) == [50_000] * 10 and len(os.listdir(HERE)) == 10)\n",
                cluster.mount(2).resolve(directory), "");
    }

    private static Set<String> orphans(DevCluster cluster) {
        return cluster.keys("orphan:").lines().filter(l -> !l.isBlank()).collect(Collectors.toSet());
    }

    @Test
    void plantedRecordsAreFoundAndNoMoreOnceTheyAreGone(DevCluster cluster) {
        assertClean(cluster);
        String number = "00000000000fffff";
        plantAndRemove(cluster, "mystery:1", "unknown_key");
        plantAndRemove(cluster, "orphan:" + number, "orphan");
        plantAndRemove(cluster, "opened:n9/" + number + "/" + number, "open_unpaired");
        plantAndRemove(cluster, "departed:n1", "node_departed");
        plantAndRemove(cluster, "extents:" + number + "/0000000000000000", "extent_record");
        assertClean(cluster);
    }

    private static void plantAndRemove(DevCluster cluster, String key, String kind) {
        cluster.etcdctl("put", cluster.prefix() + key, "");
        try {
            DevCluster.Result found = cluster.tryEtcfsctl("fsck", "-o", "json");
            assertEquals(4, found.code(), found.toString());
            assertTrue(found.output().contains("\"severity\":\"damage\",\"kind\":\"" + kind + "\"") && found.output().contains("\"" + key + "\""), found.output());
        } finally {
            cluster.etcdctl("del", cluster.prefix() + key);
        }
    }

    /**
     * No damage, and nothing left over but what a crash leaves: nodes of the cluster may have been killed in another test, each in the moment between the removal
     * of a directory and of its owner record.
     */
    private static void assertClean(DevCluster cluster) {
        DevCluster.Result result = cluster.tryEtcfsctl("fsck");
        assertEquals(0, result.code(), result.toString());
        assertTrue(result.output().contains("clean: "), result.output());
        assertEquals(List.of(), result.output().lines().filter(l -> l.startsWith("leftover") && !l.contains("owner_left") || l.startsWith("damage")).toList(), result.output());
    }

    private static String load() throws IOException {
        try (InputStream in = FsckTest.class.getResourceAsStream("load.py")) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
