package io.etcfs.it.outage;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fault.Fault;
import io.etcfs.it.cluster.DevCluster;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** etcd comes back with data that it had some time before, under nodes that have it mounted: an older snapshot of it, or of its machine. */
@Timeout(value = 4, unit = TimeUnit.MINUTES)
class OlderSnapshotTest {
    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final String WENT_BACK = "stopping: etcd's history went back";

    private static byte[] bytes(int seed) {
        byte[] bytes = new byte[300_000];
        new Random(seed).nextBytes(bytes);
        return bytes;
    }

    @Test
    void bothNodesStop() throws Exception {
        try (DevCluster cluster = DevCluster.up(2)) {
            goBack(cluster);
            cluster.await("both stop", LIMIT, () -> !cluster.isServing(1) && !cluster.isServing(2));
            for (int node = 1; node <= 2; node++) {
                Path directory = cluster.mount(node).resolve("d");
                assertTrue(cluster.logOf(node).contains(WENT_BACK), cluster.logTails());
                assertFalse(cluster.logOf(node).contains("leaving"), cluster.logTails());
                assertThrows(IOException.class, () -> Files.readAllBytes(directory.resolve("one")));
            }
        }
    }

    /** Both go on as if nothing were, and who mounts it then is shown a file that was removed. */
    @Test
    void thatTheyGoOnIsSeen() throws Exception {
        try (DevCluster cluster = DevCluster.up(2, Fault.HISTORY_GOES_BACK, Fault.MARKS_IGNORED)) {
            byte[] removed = goBack(cluster);
            Thread.sleep(5_000);
            assertTrue(cluster.isServing(1) && cluster.isServing(2), cluster.logTails());
            cluster.kill(2);
            cluster.remount(2);
            assertEquals(removed.length, Files.size(cluster.mount(2).resolve("d/one")));
            cluster.markBroken();
        }
    }

    /** All have left when it comes back: the device remembers, unless it is put back to what it was then, too. */
    @Test
    void nobodyMountsItButWithTheDevicesCopyOfThatTime() throws Exception {
        try (DevCluster cluster = DevCluster.up(1)) {
            Path d = cluster.mount(1).resolve("d");
            Files.createDirectory(d);
            Files.write(d.resolve("one"), bytes(1));
            cluster.umount(1);
            Path image = cluster.scratch().resolve("image");
            cluster.copyDevice(image, false);
            cluster.saveEtcd();
            Files.delete(d.resolve("one"));
            Files.write(d.resolve("two"), bytes(2));
            cluster.umount(1);
            DevCluster.Result refused = cluster.tryRestoreEtcd();
            assertTrue(refused.code() != 0 && refused.error().contains("etcd's history went back: it is at revision "), refused.toString());
            cluster.copyDevice(image, true);
            cluster.remount(1);
            assertArrayEquals(bytes(1), Files.readAllBytes(d.resolve("one")));
            assertFalse(Files.exists(d.resolve("two")));
        }
    }

    /** Returns the bytes of a file that was there then, and was removed since. */
    private static byte[] goBack(DevCluster cluster) throws Exception {
        byte[] one = bytes(1);
        Path d = cluster.mount(1).resolve("d");
        Files.createDirectory(d);
        Files.write(d.resolve("one"), one);
        assertEquals(0, cluster.tryEtcfsctl("sync").code());
        assertArrayEquals(one, Files.readAllBytes(cluster.mount(2).resolve("d/one")));
        cluster.saveEtcd();
        Files.delete(d.resolve("one"));
        Files.write(d.resolve("two"), bytes(2));
        assertEquals(0, cluster.tryEtcfsctl("sync").code());
        assertArrayEquals(bytes(2), Files.readAllBytes(cluster.mount(2).resolve("d/two")));
        cluster.restoreEtcd();
        return one;
    }
}
