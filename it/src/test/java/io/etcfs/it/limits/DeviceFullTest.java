package io.etcfs.it.limits;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.etcfs.it.cluster.Crew;
import io.etcfs.it.cluster.DevCluster;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.Timeout;

/** A device that is filled to its last block: what is refused, what goes on, and that nothing acknowledged is lost. The same first on a local filesystem of that size. */
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
@Timeout(240)
class DeviceFullTest {
    private static final String SIZE = "96M";
    private static final Duration LIMIT = Duration.ofSeconds(100);
    private static DevCluster cluster;

    @BeforeAll
    static void up() {
        cluster = DevCluster.up(2, Map.of("DEV_SIZE", SIZE));
    }

    @AfterAll
    static void down() {
        cluster.close();
    }

    @Test
    @Order(1)
    void locally() throws Exception {
        Path image = cluster.scratch().resolve("ext4.img");
        Path mount = Files.createDirectories(cluster.scratch().resolve("ext4"));
        command("truncate", "-s", SIZE, image.toString());
        command("mkfs.ext4", "-q", "-m", "0", image.toString());
        command("mount", "-o", "loop", image.toString(), mount.toString());
        try {
            Crew.run(cluster, LIMIT, "full-local", program(), mount.resolve("d"), mount.resolve("d"), "local", "one");
        } finally {
            command("umount", mount.toString());
        }
    }

    @Test
    @Order(2)
    void onOneNode() {
        fill("one", 1, 1, "one");
    }

    /** The second node sees it, and gives room to the first. */
    @Test
    @Order(3)
    void whileAnotherNodeLooksAndFrees() {
        fill("looked-at", 1, 2, "one");
    }

    @Test
    @Order(4)
    void fromTwoNodesAtOnce() {
        // The first has every arena by now, and no other node can use them before it has left.
        cluster.umount(1);
        cluster.remount(1);
        fill("two", 1, 2, "two");
    }

    private static void fill(String name, int here, int there, String how) {
        Crew.run(cluster, LIMIT, "full-" + name, program(), cluster.mount(here).resolve(name), cluster.mount(there).resolve(name), "ours", how);
        // Pages that were written back while the token was elsewhere: the program expects their loss.
        assertEquals(List.of(), cluster.newErrors().stream().filter(e -> !e.contains("bytes of a shared mapping")).toList());
        DevCluster.Result fsck = cluster.tryEtcfsctl("fsck");
        assertEquals(0, fsck.code(), fsck.toString());
    }

    private static void command(String... words) {
        DevCluster.Result result = DevCluster.run(List.of(words), Map.of(), Duration.ofSeconds(30));
        assertEquals(0, result.code(), result.toString());
    }

    private static String program() {
        try (InputStream in = DeviceFullTest.class.getResourceAsStream("full.py")) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }
}
