package io.etcfs.it.suite;

import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;

import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.TestMethodOrder;

/** pjdfstest 0.2.2 (crates.io): system calls about names and attributes, their errors and their times. Each of its tests is one here, on one mount and by turns on two. */
@OnCluster
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class PjdfstestTest {
    private static final Duration LIMIT = Duration.ofMinutes(6);
    private static final int AT_LEAST = 390;
    private static final String PREFIX = "pjdfstest::tests::";
    private static final Pattern RESULT = Pattern.compile("^(\\S+)\\s+(ok|skipped|FAILED|failed as expected|PASSED UNEXPECTEDLY)$");
    /** Most of the time by turns is spent waiting for tokens. */
    private static final int PROCESSES = 4;

    private static final Map<String, String> SKIPPED = Map.of(
            "link::link_count_max", "libc knows no LINK_MAX for a FUSE filesystem (posix hard_links_up_to_the_limit has it)");
    /** What a kernel knows of itself only: which program is being executed, and where something is mounted. */
    private static final Pattern ONE_NODE = Pattern.compile(".*::(etxtbsy|ebusy|erofs.*|exdev.*)");

    private record Outcome(String result, String text) {}

    @TestFactory
    @Order(1)
    Stream<DynamicTest> oneMount(DevCluster cluster) throws IOException, InterruptedException {
        Path program = Outside.program("ETCFS_SUITE_PJDFSTEST");
        Path elsewhere = Files.createDirectories(cluster.scratch().resolve("elsewhere"));
        // Sockets take paths of 107 bytes at most.
        Path directory = Outside.directory(cluster, "p");
        Map<String, Outcome> all = new LinkedHashMap<>();
        try (Outside run = Outside.start(cluster, Map.of(), program, "-c", config(cluster, false), "-p", directory, "-s", elsewhere)) {
            all.putAll(outcomes(run.await(cluster, LIMIT)));
        }
        // These remount the filesystem, which files that others of the tests leave open until the end do not allow.
        try (Outside run = Outside.start(cluster, Map.of("PATH", mountWithoutHelpers(cluster) + ":" + System.getenv("PATH")), program, "-c", config(cluster, true), "-p", directory, "erofs")) {
            all.putAll(outcomes(run.await(cluster, LIMIT)));
        }
        return Stream.concat(tests(all), all(all.size() >= AT_LEAST, all.size() + " tests ran"));
    }

    @TestFactory
    @Order(2)
    Stream<DynamicTest> twoMounts(DevCluster cluster) throws IOException, InterruptedException {
        Path program = Outside.program("ETCFS_SUITE_PJDFSTEST");
        Map<String, String> environment = Outside.alternating(cluster);
        Path config = config(cluster, false);
        List<List<String>> shares = new ArrayList<>();
        for (int i = 0; i < PROCESSES; i++) {
            shares.add(new ArrayList<>());
        }
        int next = 0;
        for (String name : names(cluster, program)) {
            if (!ONE_NODE.matcher(name).matches()) {
                shares.get(next++ % PROCESSES).add(PREFIX + name);
            }
        }
        List<Outside> runs = new ArrayList<>();
        try {
            for (List<String> share : shares) {
                runs.add(Outside.start(cluster, environment, program, "-c", config, "-p", Outside.directory(cluster, "p"), "-e", share));
            }
            Map<String, Outcome> all = new LinkedHashMap<>();
            for (Outside run : runs) {
                all.putAll(outcomes(run.await(cluster, LIMIT)));
            }
            int expected = next;
            return Stream.concat(tests(all), all(all.size() == expected && expected >= AT_LEAST - 20, all.size() + " of " + expected + " tests ran"));
        } finally {
            runs.forEach(Outside::close);
        }
    }

    /** Names of all tests. There is no call that lists them: they are run, on a local filesystem. */
    private static List<String> names(DevCluster cluster, Path program) throws IOException, InterruptedException {
        Path local = Files.createDirectories(cluster.scratch().resolve("names"));
        try (Outside run = Outside.start(cluster, Map.of(), program, "-c", config(cluster, false), "-p", local)) {
            return List.copyOf(outcomes(run.await(cluster, LIMIT)).keySet());
        }
    }

    private static Stream<DynamicTest> all(boolean ran, String said) {
        return Stream.of(DynamicTest.dynamicTest("all", () -> assertTrue(ran, said)));
    }

    private static Stream<DynamicTest> tests(Map<String, Outcome> outcomes) {
        return outcomes.entrySet().stream().map(o -> DynamicTest.dynamicTest(o.getKey(), () -> {
            Outcome outcome = o.getValue();
            if (outcome.result.equals("skipped") && SKIPPED.containsKey(o.getKey())) {
                abort(SKIPPED.get(o.getKey()));
            }
            assertTrue(outcome.result.equals("ok"), outcome.result + " " + outcome.text);
        }));
    }

    /** What the program printed, by test: a line with the result, then perhaps its reasons. */
    private static Map<String, Outcome> outcomes(String printed) {
        Map<String, Outcome> outcomes = new LinkedHashMap<>();
        String name = null;
        for (String line : printed.lines().toList()) {
            Matcher result = RESULT.matcher(line.replaceAll("\u001b\\[[0-9;]*m", ""));
            if (result.matches()) {
                name = result.group(1);
                outcomes.put(name, new Outcome(result.group(2), ""));
            } else if (name != null && !line.isBlank()) {
                outcomes.computeIfPresent(name, (n, o) -> new Outcome(o.result, o.text + "\n" + line));
            }
        }
        if (!printed.contains("Summary: ") || outcomes.isEmpty()) {
            throw new AssertionError("pjdfstest did not come to its end:\n" + printed);
        }
        return outcomes;
    }

    /** Where fuse3 is installed, mount(8) leaves a remount to its mount.fuse, which knows nothing of it and starts a program `etcfs`. Returns a directory for the PATH. */
    private static Path mountWithoutHelpers(DevCluster cluster) throws IOException {
        Path directory = Files.createDirectories(cluster.scratch().resolve("bin"));
        Path mount = Files.writeString(directory.resolve("mount"), "#!/bin/sh\nexec /bin/mount -i \"$@\"\n");
        assertTrue(mount.toFile().setExecutable(true));
        return directory;
    }

    private static Path config(DevCluster cluster, boolean remounts) throws IOException, InterruptedException {
        return Files.writeString(cluster.scratch().resolve("pjdfstest-" + remounts + ".toml"), """
                [features]
                posix_fallocate = {}
                rename_ctime = {}
                stat_st_birthtime = {}
                utime_now = {}
                utimensat = {}
                [settings]
                naptime = 0.01
                allow_remount = %s
                [dummy_auth]
                entries = [["nobody", "%s"], ["daemon", "%s"]]
                """.formatted(remounts, group(cluster, "nobody"), group(cluster, "daemon")));
    }

    private static String group(DevCluster cluster, String user) throws IOException, InterruptedException {
        try (Outside id = Outside.start(cluster, Map.of(), "id", "-gn", user)) {
            return id.await(cluster, Duration.ofSeconds(10)).strip();
        }
    }
}
