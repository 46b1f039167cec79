package io.etcfs.it.limits;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fault.Fault;
import io.etcfs.it.cluster.Crew;
import io.etcfs.it.cluster.DevCluster;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/** An etcd of 64 MiB that is filled up: by this filesystem, which stops in time and needs nobody's help; and by others, until its alarm is raised. */
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
@Timeout(240)
class EtcdFullTest {
    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final int QUOTA = 64 << 20;
    private static DevCluster cluster;

    @BeforeAll
    static void up() {
        up(Map.of());
    }

    private static void up(Map<String, String> more) {
        Map<String, String> settings = new HashMap<>(more);
        settings.put("DEV_ETCD_QUOTA", Integer.toString(QUOTA));
        cluster = DevCluster.up(2, settings);
    }

    @AfterAll
    static void down() {
        if (cluster != null) {
            cluster.close();
        }
    }

    private static void run(int node, String directory, String what) {
        Crew.run(cluster, LIMIT, "etcd-" + what, program(), cluster.mount(node).resolve(directory), cluster.mount(3 - node).resolve(directory), what);
    }

    private static void logged(int node, String text) throws InterruptedException {
        for (int i = 0; i < 100 && !cluster.logOf(node).contains(text); i++) {
            Thread.sleep(100);
        }
        assertTrue(cluster.logOf(node).contains(text), () -> text + " is not in the log:\n" + cluster.logTails());
    }

    /** Removing goes on, and once enough is removed and forgotten everything does. */
    @Test
    @Order(1)
    void aFilesystemThatFillsItUpStopsInTimeAndIsRelievedByRemovingFiles() throws Exception {
        run(1, "filled", "prepare");
        run(1, "filled", "fill");
        logged(1, "etcd is nearly full");
        logged(2, "etcd is nearly full");
        run(2, "filled", "little");
        assertTrue(cluster.tryEtcfsctl("status").output().contains("etcd's database has"), "status does not say so");
        run(1, "filled", "empty");
        run(1, "filled", "room");
        logged(1, "etcd has room again");
        assertEquals("", cluster.etcdctl("alarm", "list").strip());
        assertEquals(0, cluster.tryEtcfsctl("fsck").code());
    }

    /** Little is in it, but its file has grown, which is what the quota counts: it is made smaller, without anybody's help, and who had locks and files open keeps them. */
    @Test
    @Order(2)
    void aFileThatHasGrownIsDefragmented() throws Exception {
        run(1, "grown", "prepare");
        try (Crew crew = new Crew(cluster)) {
            Crew.Child holder = crew.add("holder", program(), cluster.mount(1).resolve("grown"), cluster.mount(2).resolve("grown"), "hold", cluster.scratch().resolve("stop-holding"));
            crew.start();
            grow();
            run(1, "grown", "room");
            assertTrue(size() < QUOTA / 20 * 17, () -> "the file has " + size() + " bytes");
            logged(cluster.logOf(1).contains("defragmenting it took") ? 1 : 2, "defragmenting it took");
            Files.createFile(cluster.scratch().resolve("stop-holding"));
            assertTrue(holder.awaitEnd(Duration.ofSeconds(20)));
            assertEquals(0, holder.exitCode());
        }
        assertEquals("", cluster.etcdctl("alarm", "list").strip());
        assertEquals(0, cluster.tryEtcfsctl("fsck").code());
    }

    /** {@code -Detcfs.planted=.*}: without that nothing new is ever possible again. */
    @Test
    @Order(4)
    @EnabledIfSystemProperty(named = "etcfs.planted", matches = ".+")
    void withoutThatRemovingDoesNotHelp() throws Exception {
        down();
        up(Map.of("ETCFS_JAVA_OPTS", "-Detcfs.faults=" + Fault.ETCD_NOT_DEFRAGMENTED));
        run(1, "grown", "prepare");
        grow();
        AssertionError seen = assertThrows(AssertionError.class, () -> run(1, "grown", "room"));
        System.out.println("PLANTED " + Fault.ETCD_NOT_DEFRAGMENTED + ": " + seen.getMessage().lines().filter(l -> l.contains("still refused")).toList());
        assertTrue(seen.getMessage().contains("still refused"), seen.getMessage());
    }

    /** Others put into the last twentieth of the quota, without reaching it, and remove it again. */
    private static void grow() throws Exception {
        Crew.run(cluster, LIMIT, "etcd-grow", program(), cluster.mount(1).resolve("grown"), cluster.mount(2).resolve("grown"), "grow", cluster.etcdEndpoint(), QUOTA / 1000 * 955);
        logged(1, "etcd is nearly full");
        run(1, "grown", "refused");
        cluster.etcdctl("del", "--prefix", "somebody-else/");
    }

    private static long size() {
        return Long.parseLong(cluster.etcdctl("endpoint", "status", "-w", "json").replaceAll("(?s).*\"dbSize\":(\\d+).*", "$1").strip());
    }

    /** Nodes compact, too: who comes late is refused. */
    private static void compact() throws Exception {
        String revision = cluster.etcdctl("get", "nothing", "-w", "json").replaceAll("(?s).*\"revision\":(\\d+).*", "$1").strip();
        DevCluster.Result compacted = cluster.tryEtcdctl(Path.of("/dev/null"), "compact", revision);
        assertTrue(compacted.code() == 0 || compacted.error().contains("has been compacted"), compacted::toString);
    }

    /** Others fill it: nothing goes through any more, whatever it is. What the log asks for helps, and nothing that was acknowledged is lost. */
    @Test
    @Order(3)
    void anAlarmIsSaidAndLeftAsTheLogSays() throws Exception {
        run(1, "alarm", "prepare");
        Path value = Files.write(cluster.scratch().resolve("value"), new byte[1_000_000]);
        boolean raised = false;
        for (int i = 0; i < 200 && !raised; i++) {
            DevCluster.Result put = cluster.tryEtcdctl(value, "put", "somebody-else/" + i);
            raised = put.code() != 0 && put.error().contains("space exceeded");
        }
        assertTrue(raised, "etcd takes everything");
        run(1, "alarm", "none");
        logged(1, "etcdctl alarm disarm");
        DevCluster.Result status = cluster.tryEtcfsctl("status");
        assertTrue(status.output().contains("alarm disarm"), status::toString);
        cluster.etcdctl("del", "--prefix", "somebody-else/");
        compact();
        cluster.etcdctl("defrag");
        cluster.etcdctl("alarm", "disarm");
        run(1, "alarm", "room");
        logged(1, "etcd has room again");
        run(1, "alarm", "afterwards");
        run(2, "alarm", "room");
        cluster.requireServing();
        assertEquals(0, cluster.tryEtcfsctl("fsck").code());
    }

    private static String program() {
        try (InputStream in = EtcdFullTest.class.getResourceAsStream("etcd.py")) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }
}
