package io.etcfs.it.limits;

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
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.Timeout;

/** An etcd of 64 MiB that is filled up: by this filesystem, which stops in time and needs nobody's help; and by others, until its alarm is raised. */
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
@Timeout(240)
class EtcdFullTest {
    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final int QUOTA = 64 << 20;
    private static DevCluster cluster;

    @BeforeAll
    static void up() {
        cluster = DevCluster.up(2, Map.of("DEV_ETCD_QUOTA", Integer.toString(QUOTA)));
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

    /** Others fill it: nothing goes through any more, whatever it is. What the log asks for helps, and nothing that was acknowledged is lost. */
    @Test
    @Order(2)
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
        String revision = cluster.etcdctl("get", "nothing", "-w", "json").replaceAll(".*\"revision\":(\\d+).*", "$1").strip();
        cluster.etcdctl("compact", revision);
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
