package io.etcfs.it.posix;

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
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.TestMethodOrder;

/** The same cases three times, each a test. {@code -Detcfs.it.cases=a,b} runs only those. */
@OnCluster
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class PosixTest {
    private static final Duration LIMIT = Duration.ofMinutes(4);
    private static final AtomicInteger NUMBER = new AtomicInteger();
    private static final String CASES = program();

    @TestFactory
    @Order(1)
    Stream<DynamicTest> local(DevCluster cluster) throws IOException {
        Path local = Files.createDirectories(cluster.scratch().resolve("local"));
        return cases(cluster, "local", local, local);
    }

    @TestFactory
    @Order(2)
    Stream<DynamicTest> oneMount(DevCluster cluster) {
        return cases(cluster, "ours", cluster.mount(1), cluster.mount(1));
    }

    @TestFactory
    @Order(3)
    Stream<DynamicTest> twoMounts(DevCluster cluster) {
        return cases(cluster, "ours", cluster.mount(1), cluster.mount(2));
    }

    /** One process runs all of them, since a process for each would take longer than the cases; a hang ends it. */
    private static Stream<DynamicTest> cases(DevCluster cluster, String whose, Path a, Path b) {
        String name = "posix-" + NUMBER.incrementAndGet();
        Path result = cluster.scratch().resolve(name);
        List<Object> args = new ArrayList<>(List.of(a.resolve(name), b.resolve(name), result, whose));
        String only = System.getProperty("etcfs.it.cases", "");
        args.addAll(only.isEmpty() ? List.of() : List.of(only.split(",")));
        AssertionError hang = null;
        try {
            Crew.run(cluster, Duration.ofSeconds(20), "begin", "os.mkdir(HERE)\n", a.resolve(name), b.resolve(name));
            Crew.run(cluster, LIMIT, name, CASES, args.toArray());
        } catch (AssertionError e) {
            hang = e;
        }
        AssertionError ended = hang;
        Map<String, String> said = new LinkedHashMap<>();
        try {
            for (String line : Files.exists(result) ? Files.readAllLines(result) : List.<String>of()) {
                String[] w = line.split(" ", 3);
                said.put(w[1], w[0] + " " + (w.length > 2 ? w[2].replace("\\n", "\n").replace("\\\"", "\"") : ""));
            }
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
        if (said.isEmpty() && ended == null) {
            throw new AssertionError("no case ran");
        }
        Stream<DynamicTest> tests = said.entrySet().stream().map(c -> DynamicTest.dynamicTest(c.getKey(), () -> {
            if (c.getValue().startsWith("begin")) {
                throw new AssertionError(c.getKey() + " did not end", ended);
            }
            if (!c.getValue().startsWith("ok")) {
                throw new AssertionError(c.getKey() + " " + c.getValue());
            }
        }));
        return ended == null ? tests : Stream.concat(tests, Stream.of(DynamicTest.dynamicTest("all", () -> {
            throw ended;
        })));
    }

    private static String program() {
        try (InputStream in = PosixTest.class.getResourceAsStream("cases.py")) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }
}
