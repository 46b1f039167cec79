package io.etcfs.it.suite;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.etcfs.it.cluster.DevCluster;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A program from outside, as it runs. What it prints goes to a file on a local filesystem. */
final class Outside implements AutoCloseable {
    private static final AtomicInteger NUMBER = new AtomicInteger();

    private final List<String> command;
    private final Path output;
    private final Process process;

    private Outside(DevCluster cluster, Map<String, String> environment, Path directory, List<String> command) throws IOException {
        this.command = command;
        this.output = cluster.scratch().resolve("outside-" + NUMBER.incrementAndGet() + ".out");
        ProcessBuilder builder = new ProcessBuilder(command).directory(directory.toFile()).redirectErrorStream(true).redirectOutput(output.toFile())
                .redirectInput(Path.of("/dev/null").toFile());
        builder.environment().putAll(environment);
        process = builder.start();
    }

    /** What this environment variable names; without it the test is skipped. */
    static Path program(String variable) {
        String path = System.getenv(variable);
        assumeTrue(path != null && !path.isEmpty(), variable + " is not set: ./dev test it builds the suites where the machine has what that takes, and says so where not");
        return Path.of(path);
    }

    static Outside start(DevCluster cluster, Map<String, String> environment, Object... command) throws IOException {
        return new Outside(cluster, environment, cluster.scratch(), words(command));
    }

    static List<String> words(Object... command) {
        List<String> words = new ArrayList<>();
        for (Object word : command) {
            if (word instanceof List<?> list) {
                list.forEach(w -> words.add(w.toString()));
            } else {
                words.add(word.toString());
            }
        }
        return words;
    }

    /** Waits for its end; returns what it printed, whatever its exit code. */
    String await(DevCluster cluster, Duration limit) throws IOException, InterruptedException {
        if (!process.waitFor(limit.toMillis(), TimeUnit.MILLISECONDS)) {
            cluster.markBroken();
            close();
            throw new AssertionError(command + " is not done in " + limit.toSeconds() + " s:\n" + Files.readString(output, StandardCharsets.ISO_8859_1));
        }
        return Files.readString(output, StandardCharsets.ISO_8859_1);
    }

    /** Waits until it has printed this, and returns its first group. */
    String await(Pattern wanted, Duration limit) throws IOException, InterruptedException {
        for (long end = System.nanoTime() + limit.toNanos();; Thread.sleep(20)) {
            Matcher found = wanted.matcher(Files.readString(output, StandardCharsets.ISO_8859_1));
            if (found.find()) {
                return found.group(1);
            }
            if (System.nanoTime() > end || !process.isAlive()) {
                throw new AssertionError(command + " does not print " + wanted + ":\n" + Files.readString(output, StandardCharsets.ISO_8859_1));
            }
        }
    }

    int exitCode() {
        return process.exitValue();
    }

    @Override
    public void close() {
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
    }

    /** A file that lies beside the tests, copied to where programs can read it. */
    static Path resource(DevCluster cluster, String name) {
        Path file = cluster.scratch().resolve(name);
        try (InputStream in = Outside.class.getResourceAsStream(name)) {
            return Files.exists(file) ? file : Files.write(file, in.readAllBytes());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The environment in which a program that is given paths below the first mount works on both by turns (alternate.c). */
    static Map<String, String> alternating(DevCluster cluster) throws IOException, InterruptedException {
        Path library = cluster.scratch().resolve("alternate.so");
        if (!Files.exists(library)) {
            try (Outside compiler = start(cluster, Map.of(), "cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wno-nonnull-compare", "-o", library, resource(cluster, "alternate.c"))) {
                String said = compiler.await(cluster, Duration.ofMinutes(1));
                if (compiler.exitCode() != 0) {
                    throw new AssertionError("alternate.c does not compile:\n" + said);
                }
            }
        }
        return Map.of("LD_PRELOAD", library.toString(), "ALTERNATE_ONE", cluster.mount(1).toString(), "ALTERNATE_OTHER", cluster.mount(2).toString());
    }

    /** A directory of its own on the filesystem, made through the first mount by a child: this process does not touch the mounts. */
    static Path directory(DevCluster cluster, String name) throws IOException, InterruptedException {
        Path directory = cluster.mount(1).resolve(name + NUMBER.incrementAndGet());
        try (Outside mkdir = start(cluster, Map.of(), "mkdir", "-m", "755", directory)) {
            String said = mkdir.await(cluster, Duration.ofSeconds(20));
            if (mkdir.exitCode() != 0) {
                throw new AssertionError(said);
            }
        }
        return directory;
    }
}
