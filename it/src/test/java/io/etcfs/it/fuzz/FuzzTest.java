package io.etcfs.it.fuzz;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/**
 * What a program sees on two mounts is what it sees on a local filesystem. Seeds: {@code -Detcfs.it.fuzz.seeds=FROM-TO} (1-2 by default), steps:
 * {@code -Detcfs.it.fuzz.steps} (600).
 */
@OnCluster
class FuzzTest {
    private static final Duration LIMIT = Duration.ofMinutes(3);
    private static final int STEPS = Integer.getInteger("etcfs.it.fuzz.steps", 600);

    /** Runs one of the programs to its end; what it prints is the failure's text. */
    private static void run(DevCluster cluster, String program, Object... args) {
        List<String> command = new ArrayList<>(List.of("python3", extracted(cluster, program).toString()));
        for (Object a : args) {
            command.add(a.toString());
        }
        Path output = cluster.scratch().resolve(program + ".out");
        try {
            Process process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile()).start();
            if (!process.waitFor(LIMIT.toSeconds(), TimeUnit.SECONDS)) {
                process.destroyForcibly();
                cluster.markBroken();
                throw new AssertionError(command + " is not done in " + LIMIT.toSeconds() + " s:\n" + Files.readString(output));
            }
            assertEquals(0, process.exitValue(), Files.readString(output));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new AssertionError("interrupted", e);
        }
    }

    private static Path extracted(DevCluster cluster, String name) {
        Path file = cluster.scratch().resolve(name);
        try (InputStream in = FuzzTest.class.getResourceAsStream(name)) {
            Files.copy(in, file, StandardCopyOption.REPLACE_EXISTING);
            return file;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private interface Seeded {
        void run(int seed);
    }

    private static void forSeeds(Seeded body) {
        String[] range = System.getProperty("etcfs.it.fuzz.seeds", "1-2").split("-");
        for (int seed = Integer.parseInt(range[0]); seed <= Integer.parseInt(range[range.length - 1]); seed++) {
            body.run(seed);
        }
    }

    @Test
    void randomCallsAgreeWithALocalFilesystem(DevCluster cluster) {
        forSeeds(seed -> run(cluster, "calls.py", seed, STEPS, cluster.scratch(), cluster.mount(1), cluster.mount(2)));
    }

    @Test
    void openFilesAgreeWithALocalFilesystem(DevCluster cluster) {
        forSeeds(seed -> run(cluster, "handles.py", seed, STEPS, cluster.scratch(), cluster.mount(1), cluster.mount(2)));
    }

    @Test
    void recordsAndLinesOfBothNodesSurvive(DevCluster cluster) {
        run(cluster, "sharing.py", cluster.mount(1), cluster.mount(2));
    }
}
