package io.etcfs.it.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * ping_pong of CTDB, a process on each mount: each moves a byte lock through one file, always taking the next byte before it gives up the last. With -rw it also
 * adds one to the byte that it has locked: where all is coherent each finds it raised by as many as there are processes.
 */
@OnCluster
class PingPongTest {
    private static final String SECONDS = "3";
    private static final Duration LIMIT = Duration.ofSeconds(30);
    private static final Pattern INCREMENT = Pattern.compile("data increment = (\\d+)");
    private static final Pattern RATE = Pattern.compile("(\\d+) locks/sec");

    @ParameterizedTest
    @ValueSource(strings = {"", "-rw", "-rw -m"})
    void twoMounts(String options, DevCluster cluster) throws Exception {
        Path file = Outside.directory(cluster, "pingpong").resolve("file");
        List<String> said = run(cluster, options, file, cluster.mount(2).resolve(cluster.mount(1).relativize(file)));
        check(options, said);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "-rw", "-rw -m"})
    void local(String options, DevCluster cluster) throws Exception {
        Path file = Files.createTempDirectory(cluster.scratch(), "pingpong").resolve("file");
        check(options, run(cluster, options, file, file));
    }

    private static List<String> run(DevCluster cluster, String options, Path... files) throws Exception {
        List<Outside> running = new ArrayList<>();
        List<String> said = new ArrayList<>();
        try {
            for (Path file : files) {
                List<Object> command = new ArrayList<>(List.of("timeout", "-s", "TERM", SECONDS, "ping_pong"));
                command.addAll(options.isEmpty() ? List.of() : List.of(options.split(" ")));
                command.addAll(List.of(file, files.length + 1));
                running.add(Outside.start(cluster, Map.of(), command));
            }
            for (Outside one : running) {
                said.add(one.await(cluster, LIMIT));
                assertEquals(124, one.exitCode(), () -> "it ends by itself only if something fails: " + said);
            }
        } finally {
            running.forEach(Outside::close);
        }
        return said;
    }

    private static void check(String options, List<String> said) {
        for (String one : said) {
            assertFalse(one.contains("failed"), one);
            assertTrue(RATE.matcher(one).results().filter(r -> Integer.parseInt(r.group(1)) > 0).count() >= 1, one);
            if (options.contains("-rw")) {
                Set<String> increments = INCREMENT.matcher(one).results().map(r -> r.group(1)).collect(Collectors.toSet());
                // Of one that is alone still, or alone again.
                increments.remove("1");
                assertEquals(Set.of("2"), increments, one);
            }
        }
    }
}
