package io.etcfs.it.cluster;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.etcfs.core.fault.Fault;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Nodes {@code n1}, {@code n2}, ... on one etcd and one loop device, in a directory of their own under /var/tmp. What an earlier process of this kind left
 * behind is removed first, and a shutdown hook removes this one's, so that neither mounts nor processes outlive the tests.
 *
 * <p>This process never touches the mounts itself.
 */
public final class DevCluster implements AutoCloseable {
    private static final Path STATES = Path.of("/var/tmp");
    private static final String PREFIX = "etcfs-it-recall-";
    private static final Duration UP_LIMIT = Duration.ofMinutes(4);
    private static final Duration DOWN_LIMIT = Duration.ofSeconds(90);
    private static final Path ENABLE_URING = Path.of("/sys/module/fuse/parameters/enable_uring");
    private static final AtomicInteger NUMBER = new AtomicInteger();

    private final Path root = projectRoot();
    private final Path state;
    private final int nodes;
    private final List<Fault> faults;
    private final String transport;
    private final Map<String, String> settings;
    private final Thread hook = new Thread(this::down);
    private final Map<Integer, Long> pids = new LinkedHashMap<>();
    /** Nodes that reach etcd by something that stands between. */
    private final Map<Integer, String> endpoints = new LinkedHashMap<>();
    private final Map<Integer, Long> logSeen = new LinkedHashMap<>();
    private boolean broken;

    private DevCluster(int nodes, String transport, List<Fault> faults, Map<String, String> settings) {
        this.nodes = nodes;
        this.settings = settings;
        this.faults = faults;
        this.transport = transport;
        this.state = STATES.resolve(PREFIX + ProcessHandle.current().pid() + "-" + NUMBER.incrementAndGet());
    }

    /** How the nodes' requests come if nothing else is asked for: system property etcfs.it.transport, dev or uring. */
    static String usualTransport() {
        return System.getProperty("etcfs.it.transport", "dev");
    }

    static void assumeOffered(String transport) {
        assumeTrue(!transport.equals("uring") || Files.isWritable(ENABLE_URING), "no FUSE over io_uring here: " + ENABLE_URING + " is not writable (Linux 6.14, as root)");
    }

    /** Starts the nodes, with these rules broken in each daemon. */
    public static DevCluster up(int nodes, Fault... faults) {
        return up(nodes, usualTransport(), faults);
    }

    static DevCluster up(int nodes, String transport, Fault... faults) {
        return up(nodes, transport, Map.of(), faults);
    }

    /** @param settings of {@code ./dev up}: environment variables DEV_*, in the place of the usual ones */
    public static DevCluster up(int nodes, Map<String, String> settings, Fault... faults) {
        return up(nodes, usualTransport(), settings, faults);
    }

    private static DevCluster up(int nodes, String transport, Map<String, String> settings, Fault... faults) {
        removeLeftovers();
        DevCluster cluster = new DevCluster(nodes, transport, List.of(faults), settings);
        Runtime.getRuntime().addShutdownHook(cluster.hook);
        try {
            cluster.dev(UP_LIMIT, "up", Integer.toString(nodes));
            for (int i = 1; i <= nodes; i++) {
                cluster.pids.put(i, Long.parseLong(cluster.dev(DOWN_LIMIT, "pid", "n" + i).strip()));
            }
        } catch (RuntimeException | Error e) {
            String logs = cluster.logTails();
            cluster.close();
            throw new AssertionError("the cluster does not start: " + e.getMessage() + "\n" + logs, e);
        }
        return cluster;
    }

    public List<Fault> faults() {
        return faults;
    }

    public int nodes() {
        return nodes;
    }

    /** The directory of the project that is tested. */
    public Path root() {
        return root;
    }

    public Path mount(int node) {
        return state.resolve("mnt/n" + node);
    }

    public long pid(int node) {
        return pids.get(node);
    }

    public Map<Integer, Long> pids() {
        return Collections.unmodifiableMap(pids);
    }

    /** Scratch on a local filesystem that goes with the cluster. */
    public Path scratch() {
        try {
            return Files.createDirectories(state.resolve("scratch"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** After a hang or the like: not to be used for another test. */
    public void markBroken() {
        broken = true;
    }

    public boolean isBroken() {
        return broken;
    }

    /** Tries to end the cluster, as {@link #close} does. */
    Result tryDown(String... arguments) {
        return tryDev(DOWN_LIMIT, Stream.concat(Stream.of("down"), Stream.of(arguments)).toArray(String[]::new));
    }

    // ---- faults from outside

    /** Stops a daemon (SIGSTOP) until {@link #resume}. */
    public void pause(int node) {
        signal("STOP", pid(node));
    }

    public void resume(int node) {
        signal("CONT", pid(node));
    }

    public void pauseEtcd() {
        etcdPids().forEach(p -> signal("STOP", p));
    }

    public void resumeEtcd() {
        etcdPids().forEach(p -> signal("CONT", p));
    }

    /** Kills a daemon (SIGKILL); gone when this returns. */
    public void kill(int node) throws InterruptedException {
        killAndWait(pid(node));
    }

    /** Unmounts a node in order. To be mounted again before the test ends. */
    public void umount(int node) {
        dev(DOWN_LIMIT, "umount", "n" + node);
    }

    /** Mounts a node again, whose daemon is gone. */
    public void remount(int node) {
        remount(node, Map.of());
    }

    /** The same, with these rules broken in its daemon. */
    public void remount(int node, Fault... broken) {
        remount(node, Map.of("ETCFS_JAVA_OPTS", "-Detcfs.faults=" + Arrays.stream(broken).map(Fault::name).collect(Collectors.joining(","))));
    }

    private void remount(int node, Map<String, String> more) {
        Map<String, String> environment = new LinkedHashMap<>(more);
        if (endpoints.containsKey(node)) {
            environment.put("DEV_MOUNT_ETCD", endpoints.get(node));
        }
        answered("dev mount n" + node, tryDev(environment, UP_LIMIT, "mount", "n" + node));
        pids.put(node, Long.parseLong(dev(DOWN_LIMIT, "pid", "n" + node).strip()));
    }

    /** Nodes up to n{@code count} are mounted, too. */
    public void grow(int count) {
        dev(UP_LIMIT, "up", Integer.toString(count));
        for (int i = 1; i <= count; i++) {
            pids.put(i, Long.parseLong(dev(DOWN_LIMIT, "pid", "n" + i).strip()));
        }
    }

    /** From its next mount on the node reaches etcd by this endpoint only. */
    public void reachEtcdBy(int node, String endpoint) {
        endpoints.put(node, endpoint);
    }

    /** From its next mount on it reaches etcd as the others do. */
    public void reachEtcd(int node) {
        endpoints.remove(node);
    }

    /** Unmounts a node, which leaves in order. Who has something open there makes it fail. */
    public Result leave(int node) {
        return tryDev(DOWN_LIMIT, "umount", "n" + node);
    }

    /** Takes a node's link to etcd, storage or all of them down; needs DEV_NETWORK=namespaces. */
    public void cut(int node, String links) {
        dev(DOWN_LIMIT, "cut", "n" + node, links);
    }

    /** Brings it up again. */
    public void join(int node, String links) {
        dev(DOWN_LIMIT, "join", "n" + node, links);
    }

    public boolean isServing(int node) {
        return isAlive(pid(node));
    }

    public String etcdEndpoint() {
        return dev(DOWN_LIMIT, "etcd", "endpoints").strip();
    }

    /** Kills all members of etcd (SIGKILL). */
    public void killEtcd() throws InterruptedException {
        for (long p : etcdPids()) {
            killAndWait(p);
        }
    }

    /** Starts what is missing: members of etcd on the data they left. */
    public void startMissing() {
        dev(UP_LIMIT, "up", Integer.toString(nodes));
    }

    /** Keeps what etcd's only member has on its disk, to be put back by {@link #restoreEtcd}. Nodes that are not mounted are afterwards. */
    public void saveEtcd() throws InterruptedException {
        killEtcd();
        copyEtcd("data", "saved");
        startMissing();
    }

    /** etcd comes back with the data that it had then. */
    public void restoreEtcd() throws InterruptedException {
        answered("dev up", tryRestoreEtcd());
    }

    /** The same, however the mounting of nodes that are not mounted ends. */
    public Result tryRestoreEtcd() throws InterruptedException {
        killEtcd();
        copyEtcd("saved", "data");
        return tryDev(UP_LIMIT, "up", Integer.toString(nodes));
    }

    /** Copies the device into a file, or back. */
    public void copyDevice(Path image, boolean back) {
        String device = dev(DOWN_LIMIT, "device").strip();
        answered("dd", run(List.of("dd", "if=" + (back ? image : device), "of=" + (back ? device : image), "bs=4M", "conv=" + (back ? "fsync" : "sparse")), Map.of(), DOWN_LIMIT));
    }

    private void copyEtcd(String from, String to) {
        Path member = state.resolve("etcd/e1");
        answered("cp", run(List.of("bash", "-c", "rm -rf \"$1\" && cp -a \"$0\" \"$1\"", member.resolve(from).toString(), member.resolve(to).toString()), Map.of(), DOWN_LIMIT));
    }

    private static void killAndWait(long pid) throws InterruptedException {
        signal("KILL", pid);
        long end = System.nanoTime() + Duration.ofSeconds(10).toNanos();
        while (isAlive(pid)) {
            if (System.nanoTime() > end) {
                throw new AssertionError("process " + pid + " does not die");
            }
            Thread.sleep(5);
        }
    }

    public List<Long> etcdPids() {
        return dev(DOWN_LIMIT, "etcd", "pid").lines().map(Long::parseLong).toList();
    }

    public static void signal(String signal, long pid) {
        run(List.of("kill", "-" + signal, Long.toString(pid)), Map.of(), Duration.ofSeconds(5));
    }

    // ---- looking

    /** All that etcd has under this filesystem's prefix and this part of the key. */
    public String keys(String part) {
        return etcdctl("get", "--prefix", "--keys-only", prefix() + part);
    }

    /** How many keys that is. */
    public long count(String part) {
        return keys(part).lines().filter(l -> !l.isBlank()).count();
    }

    /** What {@link #await} waits for. */
    public interface Condition {
        boolean holds() throws Exception;
    }

    /** Returns how long it took, in ms; else an AssertionError with the ends of the logs. */
    public long await(String what, Duration limit, Condition condition) throws Exception {
        long begin = System.nanoTime();
        while (!condition.holds()) {
            if (System.nanoTime() - begin > limit.toNanos()) {
                throw new AssertionError("not within " + limit + ": " + what + "\n" + logTails());
            }
            Thread.sleep(50);
        }
        return (System.nanoTime() - begin) / 1_000_000;
    }

    public String etcfsctl(String... args) {
        return answered("etcfsctl", tryEtcfsctl(args));
    }

    /** The same, however it ends. */
    public Result tryEtcfsctl(String... args) {
        return tryDev(DOWN_LIMIT, Stream.concat(Stream.of("ctl"), Stream.of(args)).toArray(String[]::new));
    }

    /** However it ends; with the file as its standard input. */
    public Result tryEtcdctl(Path input, String... args) {
        String command = "exec \"$0\" etcd ctl \"$@\" <\"$INPUT\"";
        Map<String, String> environment = new LinkedHashMap<>(environment(state, faults, "--transport " + transport, 20, settings));
        environment.put("INPUT", input.toString());
        return run(Stream.concat(Stream.of("bash", "-c", command, root.resolve("dev").toString()), Stream.of(args)).toList(), environment, DOWN_LIMIT);
    }

    public String etcdctl(String... args) {
        return dev(DOWN_LIMIT, Stream.concat(Stream.of("etcd", "ctl"), Stream.of(args)).toArray(String[]::new));
    }

    /** What all keys of this filesystem begin with. */
    public String prefix() {
        return "etcfs/" + readString(state.resolve("name")).strip() + "/";
    }

    /** Fails if a daemon is gone or is not the one that was started. */
    public void requireServing() {
        for (Map.Entry<Integer, Long> p : pids.entrySet()) {
            if (!isAlive(p.getValue())) {
                markBroken();
                throw new AssertionError("the daemon of n" + p.getKey() + " has ended\n" + logTails());
            }
        }
    }

    /** Lines of level ERROR that the daemons' logs have gained since the last call. */
    public List<String> newErrors() {
        List<String> errors = new ArrayList<>();
        for (int i = 1; i <= nodes; i++) {
            List<String> lines = readString(logFile(i)).lines().toList();
            long seen = logSeen.getOrDefault(i, 0L);
            for (String line : lines.subList((int) Math.min(seen, lines.size()), lines.size())) {
                if (line.contains(" ERROR ")) {
                    errors.add("n" + i + ": " + line);
                }
            }
            logSeen.put(i, (long) lines.size());
        }
        return errors;
    }

    public Path logFile(int node) {
        return state.resolve("nodes/n" + node + "/log");
    }

    /** The end of each daemon's log. */
    public String logTails() {
        StringBuilder text = new StringBuilder();
        for (int i = 1; i <= nodes; i++) {
            List<String> lines = readString(logFile(i)).lines().toList();
            text.append("---- log of n").append(i).append('\n');
            lines.subList(Math.max(0, lines.size() - 40), lines.size()).forEach(l -> text.append(l).append('\n'));
        }
        return text.toString();
    }

    /** Minor numbers of the nodes' mounts: their directories in fusectl. Read from the kernel's table, which never hangs. */
    Map<String, Integer> connections() {
        Map<String, Integer> found = new LinkedHashMap<>();
        for (String line : readString(Path.of("/proc/self/mountinfo")).split("\n")) {
            String[] field = line.split(" ");
            if (field.length > 5 && line.contains(" - fuse.etcfs ") && Path.of(field[4]).startsWith(state.resolve("mnt")) && Path.of(field[4]).getParent().equals(state.resolve("mnt"))) {
                found.put(field[4], Integer.parseInt(field[2].substring(field[2].indexOf(':') + 1)));
            }
        }
        return found;
    }

    /** Cuts the kernel off from the daemons, so that whoever hangs in these mounts goes on. */
    void abortConnections() {
        markBroken();
        connections().forEach((point, minor) -> {
            try {
                Files.writeString(Path.of("/sys/fs/fuse/connections", Integer.toString(minor), "abort"), "1");
            } catch (IOException e) {
                run(List.of("umount", "-f", point), Map.of(), Duration.ofSeconds(10));
            }
        });
    }

    // ---- the end

    @Override
    public void close() {
        try {
            Runtime.getRuntime().removeShutdownHook(hook);
        } catch (IllegalStateException e) {
            // The hook is running already, and does what follows.
            return;
        }
        down();
    }

    private void down() {
        down(root, state, broken);
    }

    private static void down(Path root, Path state, boolean broken) {
        // A test may have left daemons stopped, and mounts inside the mounts or beside them.
        for (String pidFile : List.of("nodes/n1/pid", "nodes/n2/pid", "nodes/n3/pid", "etcd/e1/pid")) {
            String pid = readString(state.resolve(pidFile)).strip();
            if (!pid.isEmpty() && readString(Path.of("/proc", pid, "cmdline")).contains(state.toString())) {
                signal("CONT", Long.parseLong(pid));
            }
        }
        List<String> inner = new ArrayList<>();
        for (String line : readString(Path.of("/proc/self/mountinfo")).split("\n")) {
            String[] field = line.split(" ");
            if (field.length > 5 && Path.of(field[4]).startsWith(state) && !state.resolve("mnt").equals(Path.of(field[4]).getParent())) {
                inner.add(field[4]);
            }
        }
        Collections.reverse(inner);
        inner.forEach(point -> run(List.of("umount", "-l", point), Map.of(), Duration.ofSeconds(10)));
        Result result = run(List.of(root.resolve("dev").toString(), "down"), environment(state, List.of(), "", broken ? 1 : 20, Map.of()), DOWN_LIMIT);
        if (result.code != 0) {
            System.err.println(result.output);
        }
    }

    /** Clusters of processes that are gone: killed, or their machine's memory ran out. */
    private static void removeLeftovers() {
        try (DirectoryStream<Path> states = Files.newDirectoryStream(STATES, PREFIX + "*")) {
            for (Path old : states) {
                String[] words = old.getFileName().toString().substring(PREFIX.length()).split("-");
                if (words.length == 2 && words[0].chars().allMatch(Character::isDigit) && !isAlive(Long.parseLong(words[0]))) {
                    down(projectRoot(), old, true);
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static boolean isAlive(long pid) {
        // Without a zombie, whose parent may never look.
        String stat = readString(Path.of("/proc", Long.toString(pid), "stat"));
        int end = stat.lastIndexOf(')');
        return end >= 0 && stat.length() > end + 2 && stat.charAt(end + 2) != 'Z';
    }

    // ---- commands

    private String dev(Duration limit, String... args) {
        return answered("dev " + String.join(" ", args), tryDev(limit, args));
    }

    private static String answered(String command, Result result) {
        if (result.code != 0) {
            throw new AssertionError(command + " answered " + result.code + ": " + result.error);
        }
        return result.output;
    }

    private Result tryDev(Duration limit, String... args) {
        return tryDev(Map.of(), limit, args);
    }

    private Result tryDev(Map<String, String> more, Duration limit, String... args) {
        List<String> command = new ArrayList<>(List.of(root.resolve("dev").toString()));
        command.addAll(List.of(args));
        Map<String, String> environment = new LinkedHashMap<>(environment(state, faults, "--transport " + transport, 20, settings));
        environment.putAll(more);
        return run(command, environment, limit);
    }

    private static Map<String, String> environment(Path state, List<Fault> faults, String mountArguments, int downLimitS, Map<String, String> settings) {
        String options = faults.isEmpty() ? "" : "-Detcfs.faults=" + faults.stream().map(Fault::name).collect(Collectors.joining(","));
        Map<String, String> environment = new LinkedHashMap<>(Map.of("ETCFS_DEV_DIR", state.toString(), "DEV_SIZE", System.getProperty("etcfs.it.deviceSize", "1G"), "DEV_DOWN_LIMIT_S",
                Integer.toString(downLimitS), "ETCFS_JAVA_OPTS", options, "DEV_MOUNT_ARGS", mountArguments));
        environment.putAll(settings);
        return environment;
    }

    /** What a node has logged. */
    public String logOf(int node) {
        return readString(logFile(node));
    }

    /** How a command ended. */
    public record Result(int code, String output, String error) {}

    /** Runs a command to its end or, after the limit, kills it. Its output goes to files, so that nothing it started holds us. */
    public static Result run(List<String> command, Map<String, String> environment, Duration limit) {
        File out = null;
        File err = null;
        try {
            out = File.createTempFile("etcfs-it", ".out");
            err = File.createTempFile("etcfs-it", ".err");
            ProcessBuilder builder = new ProcessBuilder(command).redirectOutput(out).redirectError(err).redirectInput(new File("/dev/null"));
            builder.environment().putAll(environment);
            Process p = builder.start();
            boolean ended = p.waitFor(limit.toMillis(), TimeUnit.MILLISECONDS);
            if (!ended) {
                p.descendants().forEach(ProcessHandle::destroyForcibly);
                p.destroyForcibly().waitFor(5, TimeUnit.SECONDS);
            }
            String error = Files.readString(err.toPath(), StandardCharsets.ISO_8859_1);
            return new Result(ended ? p.exitValue() : 124, Files.readString(out.toPath(), StandardCharsets.ISO_8859_1), ended ? error : error + "not done in " + limit);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted while " + command + " was running");
        } finally {
            for (File f : Arrays.asList(out, err)) {
                if (f != null) {
                    f.delete();
                }
            }
        }
    }

    /** Empty if there is no such file. */
    static String readString(Path file) {
        try {
            return Files.readString(file, StandardCharsets.ISO_8859_1);
        } catch (IOException e) {
            return "";
        }
    }

    private static Path projectRoot() {
        for (Path at = Path.of("").toAbsolutePath(); at != null; at = at.getParent()) {
            if (Files.isExecutable(at.resolve("dev")) && Files.isDirectory(at.resolve("cli"))) {
                return at;
            }
        }
        throw new IllegalStateException("not in the project's directory");
    }
}
