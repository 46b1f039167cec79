package io.etcfs.it.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** {@code ./dev down} where more is mounted than its nodes. */
@OnCluster
@Timeout(value = 4, unit = TimeUnit.MINUTES)
class DownTest {
    /** A node without etcd hangs: it is either unmounted before, or everything goes on. */
    @Test
    void nothingIsTouchedWhileSomethingElseIsMounted(DevCluster cluster) throws Exception {
        Path place = Files.createDirectories(cluster.scratch().resolve("mounted"));
        List<Long> etcd = cluster.etcdPids();
        for (String[] arguments : new String[][] {{}, {"--keep"}}) {
            assertEquals(0, new ProcessBuilder("mount", "-t", "tmpfs", "none", place.toString()).inheritIO().start().waitFor());
            try {
                DevCluster.Result refused = cluster.tryDown(arguments);
                assertEquals(1, refused.code(), refused.toString());
                assertTrue(refused.error().contains(place + " is mounted"), refused.toString());
            } finally {
                new ProcessBuilder("umount", place.toString()).inheritIO().start().waitFor();
            }
            assertEquals(etcd, cluster.etcdPids());
            cluster.requireServing();
            assertEquals(0, cluster.tryEtcfsctl("status").code());
        }
    }
}
