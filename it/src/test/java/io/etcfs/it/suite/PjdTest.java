package io.etcfs.it.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;

import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.TestMethodOrder;

/**
 * The older pjdfstest, in C and shell: its scripts, each a test here, first on a local filesystem, then on one mount, then with each command on the other mount in
 * turn (turns.c): what one node did the other must see at once. {@code ./dev test pjd} runs it, with $PJDFSTEST. An assertion that fails locally can't be asked of us.
 * {@code -Detcfs.it.pjd=chown/} runs only the scripts that are named so.
 */
@OnCluster
@Tag("pjd")
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class PjdTest {
    /** For one script. */
    private static final Duration LIMIT = Duration.ofMinutes(10);
    private static final String WANTED = System.getProperty("etcfs.it.pjd", "");
    private static final int AT_LEAST_SCRIPTS = WANTED.isEmpty() ? 230 : 1;
    /** Most of a script's time is sleep, between calls whose times must differ. */
    private static final int AT_ONCE = 6;

    private static final AtomicInteger NUMBER = new AtomicInteger();
    private static final Map<String, Tap> LOCALLY = new HashMap<>();

    @TestFactory
    @Order(1)
    Stream<DynamicTest> local(DevCluster cluster) throws Exception {
        Path local = Files.createDirectories(cluster.scratch().resolve("pjd-local"));
        Map<String, Tap> said = run(cluster, false, local, Map.of());
        LOCALLY.putAll(said);
        count("a local " + Files.getFileStore(local).type(), said);
        return said.entrySet().stream().map(s -> DynamicTest.dynamicTest(s.getKey(), () -> {
            assertTrue(s.getValue().complete(), () -> s.toString());
            if (!s.getValue().failed().isEmpty()) {
                abort("fails here, too: " + s.getValue().failed().values());
            }
        }));
    }

    @TestFactory
    @Order(2)
    Stream<DynamicTest> oneMount(DevCluster cluster) throws Exception {
        return compared("one mount", run(cluster, false, Outside.directory(cluster, "pjd"), Map.of()));
    }

    @TestFactory
    @Order(3)
    Stream<DynamicTest> twoMounts(DevCluster cluster) throws Exception {
        return compared("two mounts by turns", run(cluster, true, Outside.directory(cluster, "pjd"),
                Map.of("TURNS_ONE", cluster.mount(1).toString(), "TURNS_OTHER", cluster.mount(2).toString(), "TURNS_PROGRAM", suite().resolve("pjdfstest").toString())));
    }

    private static Path suite() {
        return Outside.program("ETCFS_SUITE_PJD");
    }

    private static void count(String where, Map<String, Tap> said) {
        System.out.println("pjdfstest on " + where + ": " + said.values().stream().mapToInt(Tap::held).sum() + " of " + said.values().stream().mapToInt(Tap::ran).sum()
                + " assertions hold, " + said.size() + " scripts");
    }

    private static Stream<DynamicTest> compared(String where, Map<String, Tap> said) {
        count(where, said);
        return Stream.concat(Stream.of(DynamicTest.dynamicTest("all", () -> assertEquals(LOCALLY.keySet(), said.keySet()))),
                said.entrySet().stream().map(s -> DynamicTest.dynamicTest(s.getKey(), () -> {
                    Tap locally = LOCALLY.get(s.getKey());
                    Map<Integer, String> failed = new TreeMap<>(s.getValue().failed());
                    failed.keySet().removeAll(locally.failed().keySet());
                    assertEquals(Map.of(), failed, s.getKey());
                    assertTrue(s.getValue().complete(), () -> s.toString());
                    assertEquals(locally.ran(), s.getValue().ran(), s.getKey());
                })));
    }

    /** What all scripts say, in a directory of its own each. */
    private static Map<String, Tap> run(DevCluster cluster, boolean byTurns, Path directory, Map<String, String> environment) throws Exception {
        Path suite = byTurns ? byTurns(cluster) : suite();
        List<String> scripts = scripts();
        assertTrue(scripts.size() >= AT_LEAST_SCRIPTS, scripts.size() + " scripts in " + suite);
        Map<String, Tap> said = new TreeMap<>();
        try (ExecutorService threads = Executors.newFixedThreadPool(AT_ONCE)) {
            Map<String, Future<Tap>> running = new TreeMap<>();
            for (String script : scripts) {
                running.put(script, threads.submit((Callable<Tap>) () -> run(cluster, suite.resolve("tests").resolve(script), directory, environment)));
            }
            try {
                for (Map.Entry<String, Future<Tap>> script : running.entrySet()) {
                    said.put(script.getKey(), script.getValue().get());
                }
            } catch (ExecutionException e) {
                threads.shutdownNow();
                throw e;
            }
        }
        return said;
    }

    private static Tap run(DevCluster cluster, Path script, Path parent, Map<String, String> environment) throws IOException, InterruptedException {
        int number = NUMBER.incrementAndGet();
        Path directory = parent.resolve(Integer.toString(number));
        Map<String, String> all = new HashMap<>(environment);
        all.put("TURNS_COUNTER", cluster.scratch().resolve("turns-" + number).toString());
        try (Outside run = Outside.start(cluster, all, "sh", "-c", "mkdir \"$1\" && cd \"$1\" && exec sh \"$2\"", "sh", directory, script)) {
            return Tap.of(run.await(cluster, LIMIT));
        }
    }

    private static List<String> scripts() throws IOException {
        Path tests = suite().resolve("tests");
        try (Stream<Path> all = Files.walk(tests)) {
            return all.map(f -> tests.relativize(f).toString()).filter(f -> f.endsWith(".t") && f.startsWith(WANTED)).sorted().toList();
        }
    }

    /** The suite again, with turns.c in its program's place: its scripts look for that above themselves. */
    private static Path byTurns(DevCluster cluster) throws IOException, InterruptedException {
        Path suite = cluster.scratch().resolve("pjd-by-turns");
        List<List<?>> commands = new ArrayList<>();
        commands.add(List.of("mkdir", suite));
        commands.add(List.of("cp", "-r", suite().resolve("tests"), suite));
        commands.add(List.of("cc", "-O1", "-Wall", "-o", suite.resolve("pjdfstest"), Outside.resource(cluster, "turns.c")));
        for (List<?> command : commands) {
            try (Outside run = Outside.start(cluster, Map.of(), command)) {
                String said = run.await(cluster, Duration.ofMinutes(1));
                assertEquals(0, run.exitCode(), said);
            }
        }
        return suite;
    }
}
