package io.etcfs.it.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * What people run on a filesystem, on both nodes at once, by the scripts in programs/: first on a local filesystem, where nothing may fail either, then on the mounts. Each
 * looks at what came out, from both nodes; after each the filesystem's records must agree. {@code ./dev test programs [NAME...]}; -Detcfs.it.programs.local=false: on the mounts only.
 */
@OnCluster
@Tag("programs")
class ProgramsTest {
    private static final Duration LIMIT = Duration.ofMinutes(15);
    private static final List<String> ALL = List.of("git", "maven", "npm", "rsync", "tar", "sqlite", "postgres", "stress");

    static Stream<String> wanted() {
        String only = System.getProperty("etcfs.it.programs", "");
        return only.isEmpty() ? ALL.stream() : Stream.of(only.split(","));
    }

    @ParameterizedTest
    @MethodSource("wanted")
    void twoNodes(String program, DevCluster cluster) throws Exception {
        Path script = scripts(cluster).resolve(program + ".sh");
        Path scratch = Files.createDirectories(cluster.scratch().resolve(program));
        String local = "not run locally";
        if (!System.getProperty("etcfs.it.programs.local", "true").equals("false")) {
            Path directory = Files.createDirectories(cluster.scratch().resolve(program + "-local"));
            local = run(cluster, script, directory, directory, scratch) + " s locally";
        }
        Path one = Outside.directory(cluster, program);
        String ours = run(cluster, script, one, cluster.mount(2).resolve(one.getFileName()), scratch) + " s";
        DevCluster.Result records = cluster.tryEtcfsctl("fsck");
        assertEquals(0, records.code(), records.toString());
        assertTrue(records.output().contains("clean: "), records.output());
        System.out.println(program + ": " + ours + ", " + local);
    }

    private static String run(DevCluster cluster, Path script, Path one, Path other, Path scratch) throws Exception {
        long started = System.nanoTime();
        try (Outside run = Outside.start(cluster, Map.of(), "bash", script, one, other, scratch, cluster.root())) {
            String said = run.await(cluster, LIMIT);
            said.lines().forEach(line -> System.out.println("  " + line));
            assertEquals(0, run.exitCode(), said);
        }
        return String.format("%.1f", (System.nanoTime() - started) / 1e9);
    }

    private static Path scripts(DevCluster cluster) throws Exception {
        Files.createDirectories(cluster.scratch().resolve("programs"));
        for (String name : Stream.concat(ALL.stream().map(p -> p + ".sh"), Stream.of("prelude.sh", "npm-package.json", "npm-package-lock.json")).toList()) {
            Outside.resource(cluster, "programs/" + name);
        }
        return cluster.scratch().resolve("programs");
    }
}
