package io.etcfs.it.cluster;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * Child processes that work on the mounts at the same time, and the hang detector over them.
 *
 * <p>Each runs a Python program after {@code prelude.py}, which begins when all are ready. It ticks after every operation; who does not for {@link #HANG} is
 * stuck: the report of {@link HangReport} is printed, the mounts' connections are aborted, the children killed, and the test fails.
 */
public final class Crew implements AutoCloseable {
    /** An operation that takes longer hangs. */
    public static final Duration HANG = Duration.ofSeconds(10);
    private static final int SLOTS = 1024;
    private static final int SLOT_0 = 64;
    private static final int SLOT_BYTES = 16;
    private static final String PRELUDE = prelude();

    private final DevCluster cluster;
    private final List<Child> children = new ArrayList<>();
    private boolean started;

    public Crew(DevCluster cluster) {
        this.cluster = cluster;
    }

    /** A child process of the crew. */
    public final class Child {
        private final String name;
        private final Path program;
        private final Path errors;
        private final MappedByteBuffer ticks;
        private final Process process;
        private final Map<Integer, Long> lastCount = new HashMap<>();
        private final Map<Integer, Long> lastChangeNs = new HashMap<>();

        private Child(String name, String text, List<String> command, Object... args) {
            this.name = name;
            try {
                Path dir = Files.createTempDirectory(cluster.scratch(), name + "-");
                program = Files.writeString(dir.resolve(name + ".py"), PRELUDE + "\n" + text);
                errors = dir.resolve("stderr");
                Path ticksFile = dir.resolve("ticks");
                try (FileChannel ch = FileChannel.open(ticksFile, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
                    ticks = ch.map(FileChannel.MapMode.READ_WRITE, 0, SLOT_0 + (long) SLOT_BYTES * SLOTS);
                    ticks.order(ByteOrder.LITTLE_ENDIAN);
                }
                List<String> all = new ArrayList<>(command);
                all.addAll(List.of("python3", program.toString()));
                Arrays.stream(args).map(String::valueOf).forEach(all::add);
                ProcessBuilder builder = new ProcessBuilder(all).redirectError(errors.toFile()).redirectOutput(dir.resolve("stdout").toFile()).redirectInput(Path.of("/dev/null").toFile());
                builder.environment().put("ETCFS_TICKS", ticksFile.toString());
                process = builder.start();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        public boolean isAlive() {
            return process.isAlive();
        }

        public void kill() {
            process.destroyForcibly();
        }

        /** How often it has ticked: an operation that ends changes it. */
        public long ticks() {
            return ticks.getLong(SLOT_0);
        }

        /** Waits until it has ticked more often than that. */
        public void awaitTicks(long above, Duration limit) throws InterruptedException {
            long end = System.nanoTime() + limit.toNanos();
            while (ticks() <= above && System.nanoTime() < end) {
                Thread.sleep(5);
            }
            if (ticks() <= above) {
                throw new AssertionError(name + " does not go on");
            }
        }

        public boolean awaitEnd(Duration limit) throws InterruptedException {
            return process.waitFor(limit.toMillis(), TimeUnit.MILLISECONDS);
        }

        public int exitCode() {
            return process.exitValue();
        }

        private boolean ready() {
            return ticks.getLong(8) != 0;
        }

        /** Processes that have not ticked for too long. */
        private Set<Long> stuck(long nowNs) {
            Set<Long> found = new LinkedHashSet<>();
            for (int i = 0; i < SLOTS; i++) {
                long pid = ticks.getLong(SLOT_0 + SLOT_BYTES * i + 8);
                if (pid == 0) {
                    lastCount.remove(i);
                    continue;
                }
                long count = ticks.getLong(SLOT_0 + SLOT_BYTES * i);
                if (!Long.valueOf(count).equals(lastCount.put(i, count))) {
                    lastChangeNs.put(i, nowNs);
                } else if (nowNs - lastChangeNs.get(i) > HANG.toNanos() && DevCluster.isAlive(pid)) {
                    found.add(pid);
                }
            }
            return found;
        }

        private String said() {
            String text = DevCluster.readString(errors);
            return text.length() > 6000 ? text.substring(0, 6000) + "..." : text;
        }
    }

    /** A child; the program's ARGS are {@code args}. */
    public Child add(String name, String program, Object... args) {
        return add(List.of(), name, program, args);
    }

    /** A child that is started by {@code command}, which executes its arguments. */
    public Child add(List<String> command, String name, String program, Object... args) {
        Child c = new Child(name, program, command, args);
        children.add(c);
        return c;
    }

    /** All of them begin. */
    public Crew start() {
        long end = System.nanoTime() + Duration.ofSeconds(30).toNanos();
        try {
            for (Child c : children) {
                while (!c.ready()) {
                    if (!c.isAlive() || System.nanoTime() > end) {
                        throw new AssertionError(c.name + " does not start: " + c.said());
                    }
                    Thread.sleep(2);
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted");
        }
        children.forEach(c -> c.ticks.putLong(0, 1));
        started = true;
        return this;
    }

    /** Waits for all; each has to succeed, no operation may hang, and all must be done within the limit. */
    public void await(Duration limit) {
        if (!started) {
            start();
        }
        long end = System.nanoTime() + limit.toNanos();
        try {
            while (true) {
                boolean alive = false;
                for (Child c : children) {
                    if (!c.isAlive() && c.exitCode() != 0) {
                        throw new AssertionError(c.name + " ended with " + c.exitCode() + ":\n" + c.said());
                    }
                    alive |= c.isAlive();
                }
                if (!alive) {
                    return;
                }
                long now = System.nanoTime();
                for (Child c : children) {
                    Set<Long> stuck = c.isAlive() ? c.stuck(now) : Set.of();
                    if (!stuck.isEmpty()) {
                        throw hang(c.name + ": no operation ended in " + HANG.toSeconds() + " s");
                    }
                }
                if (now > end) {
                    throw hang("not done in " + limit.toSeconds() + " s, though no single operation hangs");
                }
                Thread.sleep(20);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted");
        } finally {
            close();
        }
    }

    /** Prints who hangs where, then lets all of them go. */
    private AssertionError hang(String what) {
        Set<Long> ours = new LinkedHashSet<>();
        long now = System.nanoTime();
        for (Child c : children) {
            ours.addAll(c.stuck(now));
        }
        if (ours.isEmpty()) {
            children.stream().filter(Child::isAlive).forEach(c -> ours.add(c.process.pid()));
        }
        String report = HangReport.of(cluster, ours);
        System.err.println("HANG: " + what + "\n" + report);
        cluster.abortConnections();
        return new HangError("HANG: " + what + "\n" + report.lines().limit(40).reduce("", (a, b) -> a + b + "\n") + "(all of it is on standard error)");
    }

    /** Ends the children that are left, and sees that they are gone. */
    @Override
    public void close() {
        for (Child c : children) {
            c.process.descendants().forEach(ProcessHandle::destroyForcibly);
            c.kill();
        }
        try {
            for (Child c : children) {
                if (!c.awaitEnd(Duration.ofSeconds(3))) {
                    cluster.abortConnections();
                    if (!c.awaitEnd(Duration.ofSeconds(10))) {
                        System.err.println("process " + c.process.pid() + " of " + c.name + " does not die");
                    }
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** One child, to its end. */
    public static void run(DevCluster cluster, Duration limit, String name, String program, Object... args) {
        Crew crew = new Crew(cluster);
        crew.add(name, program, args);
        crew.await(limit);
    }

    private static String prelude() {
        try (InputStream in = Crew.class.getResourceAsStream("prelude.py")) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
