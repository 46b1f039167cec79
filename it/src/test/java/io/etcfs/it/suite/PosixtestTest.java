package io.etcfs.it.suite;

import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;

import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** posixtest of go-fuse 2.12.1 (tools/posixtest): what its authors found filesystems over FUSE to get wrong. */
@OnCluster
class PosixtestTest {
    private static final Duration LIMIT = Duration.ofMinutes(3);
    private static final int TESTS = 32;
    private static final Pattern RESULT = Pattern.compile("^ *--- (PASS|FAIL|SKIP): TestPosix/([^/ ]+) ");
    private static final Map<String, String> NOT_HERE = Map.of(
            "FcntlFlockLocksFile", "wants flock and fcntl to exclude each other, which they do not on a local filesystem under Linux either");

    @TestFactory
    Stream<DynamicTest> oneMount(DevCluster cluster) throws IOException, InterruptedException {
        Path program = Outside.program("ETCFS_SUITE_POSIXTEST");
        try (Outside run = Outside.start(cluster, Map.of("POSIXTEST_DIR", Outside.directory(cluster, "posixtest").toString()), program, "-test.v")) {
            String printed = run.await(cluster, LIMIT);
            Map<String, String> results = new LinkedHashMap<>();
            for (String line : printed.lines().toList()) {
                Matcher result = RESULT.matcher(line);
                if (result.find()) {
                    results.put(result.group(2), result.group(1));
                }
            }
            return Stream.concat(Stream.of(DynamicTest.dynamicTest("all", () -> assertTrue(results.size() == TESTS, results.size() + " tests ran:\n" + printed))),
                    results.entrySet().stream().map(r -> DynamicTest.dynamicTest(r.getKey(), () -> {
                        if (!r.getValue().equals("PASS") && NOT_HERE.containsKey(r.getKey())) {
                            abort(NOT_HERE.get(r.getKey()));
                        }
                        assertTrue(r.getValue().equals("PASS"), r.getValue() + "\n" + printed);
                    })));
        }
    }
}
