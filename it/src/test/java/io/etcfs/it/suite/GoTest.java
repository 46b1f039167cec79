package io.etcfs.it.suite;

import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestFactory;

/** The tests of Go's own packages os and path/filepath, with their temporary files on the mount. */
@OnCluster
@Tag("suites")
class GoTest {
    private static final Duration LIMIT = Duration.ofMinutes(8);
    private static final int AT_LEAST = 250;
    private static final Pattern RESULT = Pattern.compile("\"Action\":\"(pass|fail|skip)\",\"Package\":\"([^\"]+)\",\"Test\":\"([^\"]+)\"");
    private static final Map<String, String> DIFFERENT = Map.of(
            "os.TestNonpollableDeadline", "files of any FUSE filesystem can be registered with epoll, those of a local one can't");

    @TestFactory
    Stream<DynamicTest> oneMount(DevCluster cluster) throws Exception {
        Path go = Outside.program("ETCFS_SUITE_GO");
        Map<String, Compared.Result> locally = run(cluster, go, Files.createDirectories(cluster.scratch().resolve("go")));
        Compared compared = new Compared(locally, run(cluster, go, Outside.directory(cluster, "go")), DIFFERENT);
        System.out.println("Go: " + compared.counts());
        return compared.tests(AT_LEAST);
    }

    private static Map<String, Compared.Result> run(DevCluster cluster, Path go, Path directory) throws Exception {
        Map<String, Compared.Result> results = new TreeMap<>();
        // Its tests use both directories, and rename from one to the other. VariousDeadlines: of pipes, for a minute.
        try (Outside run = Outside.start(cluster, Map.of("TMPDIR", directory.toString(), "GOTMPDIR", directory.toString(), "GOFLAGS", ""), go, "test", "-json", "-count=1", "-skip=VariousDeadlines", "os", "path/filepath")) {
            String said = run.await(cluster, LIMIT);
            for (Matcher found = RESULT.matcher(said); found.find();) {
                results.put(found.group(2) + "." + found.group(3), Compared.Result.valueOf(switch (found.group(1)) {
                    case "pass" -> "PASSED";
                    case "fail" -> "FAILED";
                    default -> "SKIPPED";
                }));
            }
            if (results.isEmpty()) {
                throw new AssertionError(said);
            }
        }
        return results;
    }
}
