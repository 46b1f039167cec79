package io.etcfs.it.exercise;

import io.etcfs.it.cluster.DevCluster;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** The program as it runs on one or more mounts. What it leaves after a difference stays in target/exercise, as the cluster goes. */
final class Exerciser implements AutoCloseable {
    private static final Path KEPT = Path.of("target", "exercise").toAbsolutePath();
    /** The last of its operations that are shown if it could not say itself what happened. */
    private static final int SHOWN = 40;

    private final long seed;
    private final Path keep;
    private final Process process;

    private Exerciser(long seed, Path keep, Process process) {
        this.seed = seed;
        this.keep = keep;
        this.process = process;
    }

    /** {@code enough} is a number of seconds, or of operations as in {@code 500ops}; the directories are one directory seen through as many mounts. */
    static Exerciser start(long seed, String enough, List<Path> directories) throws IOException {
        Path keep = Files.createDirectories(KEPT.resolve(Long.toString(seed)));
        Path program = keep.resolve("exercise.py");
        try (InputStream in = Exerciser.class.getResourceAsStream("exercise.py")) {
            Files.copy(in, program, StandardCopyOption.REPLACE_EXISTING);
        }
        List<String> command = new ArrayList<>(List.of("python3", program.toString(), Long.toString(seed), enough, keep.toString()));
        directories.forEach(d -> command.add(d.toString()));
        return new Exerciser(seed, keep, new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output(keep).toFile()).redirectInput(Path.of("/dev/null").toFile()).start());
    }

    private static Path output(Path keep) {
        return keep.resolve("output");
    }

    /** Returns what it printed if it found no difference. */
    String await(DevCluster cluster, long limitS) throws IOException, InterruptedException {
        if (!process.waitFor(limitS, TimeUnit.SECONDS)) {
            cluster.markBroken();
            throw new AssertionError("seed " + seed + " is not done in " + limitS + " s\n" + said() + lastOperations());
        }
        if (process.exitValue() == 1) {
            throw new AssertionError(said());
        }
        if (process.exitValue() != 0) {
            throw new AssertionError("seed " + seed + " ended with " + process.exitValue() + "\n" + said() + lastOperations());
        }
        return said();
    }

    private String said() throws IOException {
        return Files.readString(output(keep), StandardCharsets.ISO_8859_1);
    }

    private String lastOperations() throws IOException {
        List<String> lines = Files.readAllLines(keep.resolve("operations"), StandardCharsets.ISO_8859_1);
        return String.join("\n", lines.subList(Math.max(0, lines.size() - SHOWN), lines.size()));
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}
