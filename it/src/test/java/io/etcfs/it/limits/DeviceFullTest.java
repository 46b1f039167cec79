package io.etcfs.it.limits;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

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
import java.util.Random;
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
    /** In the middle of an arena. */
    private static final String GROWN_SIZE = "200M";
    private static final long GROWN_BYTES = 200L << 20;
    /** Label and marks. */
    private static final long RESERVED_BYTES = 16 * 4096;
    private static final Duration LIMIT = Duration.ofSeconds(100);
    private static DevCluster cluster;

    @BeforeAll
    static void up() {
        cluster = DevCluster.up(2, Map.of("DEV_SIZE", SIZE));
    }

    @AfterAll
    static void down() {
        if (cluster != null) {
            cluster.close();
        }
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
        // The first has every arena by now, and gives some away.
        fill("two", 1, 2, "two");
    }

    /** The device grows under two nodes that are mounted, and both fill it to its new end. */
    @Test
    @Order(5)
    void theDeviceGrows() throws Exception {
        Path state = cluster.scratch().getParent();
        command("truncate", "-s", GROWN_SIZE, state.resolve("device.img").toString());
        command("losetup", "-c", Files.readString(state.resolve("device")).strip());
        long until = System.nanoTime() + Duration.ofSeconds(20).toNanos();
        while (Files.getFileStore(cluster.mount(1)).getTotalSpace() < GROWN_BYTES - RESERVED_BYTES || Files.getFileStore(cluster.mount(2)).getTotalSpace() < GROWN_BYTES - RESERVED_BYTES) {
            assertTrue(System.nanoTime() < until, "the new size is not seen");
            Thread.sleep(50);
        }
        byte[] mib = new byte[1 << 20];
        new Random(7).nextBytes(mib);
        for (int i = 0; i < 80; i++) {
            Files.write(cluster.mount(1 + i % 2).resolve("grown" + i), mib);
        }
        for (int i = 0; i < 80; i++) {
            assertArrayEquals(mib, Files.readAllBytes(cluster.mount(2 - i % 2).resolve("grown" + i)));
        }
        DevCluster.Result fsck = cluster.tryEtcfsctl("fsck");
        assertEquals(0, fsck.code(), fsck.toString());
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
