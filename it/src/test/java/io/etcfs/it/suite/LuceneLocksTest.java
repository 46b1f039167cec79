package io.etcfs.it.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.lucene.store.LockVerifyServer;
import org.junit.jupiter.api.Test;

/**
 * Lucene's own check of its index locks: several programs take one lock all the time and tell a server when they have it, which fails once two have. By {@code fcntl} and
 * by a file that only one can make. {@code -Detcfs.it.lucene.tries} (300).
 */
@OnCluster
class LuceneLocksTest {
    private static final Duration LIMIT = Duration.ofMinutes(3);
    private static final int TRIES = Integer.getInteger("etcfs.it.lucene.tries", 300);
    private static final int PROGRAMS = 4;
    private static final int PAUSE_MS = 2;
    private static final Pattern LISTENING = Pattern.compile("Listening on \\S+:(\\d+)\\.\\.\\.");

    @Test
    void locksOfTheKernel(DevCluster cluster) throws Exception {
        run(cluster, "NativeFSLockFactory");
    }

    @Test
    void locksThatAreFiles(DevCluster cluster) throws Exception {
        run(cluster, "SimpleFSLockFactory");
    }

    private static void run(DevCluster cluster, String kind) throws Exception {
        Path name = Outside.directory(cluster, "lucene").getFileName();
        List<Outside> programs = new ArrayList<>();
        try (Outside server = Outside.start(cluster, Map.of(), java("LockVerifyServer", "127.0.0.1", PROGRAMS))) {
            String port = server.await(LISTENING, Duration.ofSeconds(30));
            for (int i = 0; i < PROGRAMS; i++) {
                programs.add(Outside.start(cluster, Map.of(),
                        java("LockStressTest", i, "127.0.0.1", port, "org.apache.lucene.store." + kind, cluster.mount(1 + i % 2).resolve(name), PAUSE_MS, TRIES)));
            }
            for (Outside program : programs) {
                String said = program.await(cluster, LIMIT);
                assertEquals(0, program.exitCode(), said);
                assertTrue(said.contains("Finished " + TRIES + " tries"), said);
            }
            String said = server.await(cluster, Duration.ofSeconds(30));
            assertEquals(0, server.exitCode(), said);
            // A thread of the server that finds two holders ends with an exception, and the server as if nothing was.
            assertTrue(said.contains("Server terminated.") && !said.contains("Exception"), said);
        } finally {
            programs.forEach(Outside::close);
        }
    }

    private static List<Object> java(String program, Object... arguments) throws URISyntaxException {
        Path jar = Path.of(LockVerifyServer.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        List<Object> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java"), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx64m", "-cp", jar,
                "org.apache.lucene.store." + program));
        command.addAll(List.of(arguments));
        return command;
    }
}
