package io.etcfs.testkit.store;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * A cluster of real etcd processes on this machine, for tests: on free ports, with its data in a temporary directory, gone with the test's process however
 * that ends. Members can be killed, started again, stopped and continued.
 */
public final class EtcdServers implements AutoCloseable {
    private static final long START_MS = 20_000;
    private static final int START_ATTEMPTS = 3;
    private static final String STARTED = "ready to serve client requests";

    /** A child dies with the thread that started it, not only with the process: so it is one that never ends. */
    private static final ExecutorService PARENT = Executors.newSingleThreadExecutor(Thread.ofPlatform().name("etcd-parent").daemon().factory());

    /** Certificates for TLS towards clients; {@code clientCaFile} not null: clients need one too. */
    public record Tls(Path certFile, Path keyFile, Path clientCaFile) {}

    /**
     * @param members  how many
     * @param tls      null: none
     * @param fsync    whether etcd waits for its disk; without it tests are faster and a killed process still loses nothing
     * @param moreArgs for each member's command line
     */
    public record Setup(int members, Tls tls, boolean fsync, List<String> moreArgs) {
        public static Setup of(int members) {
            return new Setup(members, null, false, List.of());
        }
    }

    private final EtcdBinaries binaries;
    private final Setup setup;
    private final Path directory;
    private final int[] clientPorts;
    private final int[] peerPorts;
    private final Process[] processes;

    private EtcdServers(EtcdBinaries binaries, Setup setup) throws IOException {
        this.binaries = binaries;
        this.setup = setup;
        this.directory = Files.createTempDirectory("etcfs-etcd-");
        this.clientPorts = freePorts(setup.members);
        this.peerPorts = freePorts(setup.members);
        this.processes = new Process[setup.members];
    }

    /** Returns once all members serve. */
    public static EtcdServers start(Setup setup) throws IOException, InterruptedException {
        EtcdBinaries binaries = EtcdBinaries.find();
        for (int attempt = 1; ; attempt++) {
            EtcdServers servers = new EtcdServers(binaries, setup);
            try {
                for (int i = 0; i < setup.members; i++) {
                    servers.launch(i);
                }
                for (int i = 0; i < setup.members; i++) {
                    servers.awaitServing(i);
                }
                return servers;
            } catch (IOException | RuntimeException e) {
                servers.close();
                // A port that was free may not be any more.
                if (attempt == START_ATTEMPTS) {
                    throw e;
                }
            }
        }
    }

    public static EtcdServers start(int members) throws IOException, InterruptedException {
        return start(Setup.of(members));
    }

    /** {@code http://127.0.0.1:port} of each member. */
    public List<String> endpoints() {
        List<String> endpoints = new ArrayList<>();
        for (int port : clientPorts) {
            endpoints.add((setup.tls == null ? "http://" : "https://") + "127.0.0.1:" + port);
        }
        return endpoints;
    }

    public long pid(int member) {
        return processes[member].pid();
    }

    /** As kill -9. Returns when it is dead. */
    public void kill(int member) throws InterruptedException {
        processes[member].destroyForcibly();
        processes[member].waitFor();
    }

    /** Starts a killed member again, with its data, and returns once it serves. */
    public void restart(int member) throws IOException, InterruptedException {
        launch(member);
        awaitServing(member);
    }

    /** Stops a member (SIGSTOP): its connections stay, and none of its threads runs any more when this returns. */
    public void stop(int member) throws IOException, InterruptedException {
        signal("STOP", member);
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
        while (!isStopped(pid(member))) {
            if (System.nanoTime() > end) {
                throw new IOException("etcd member " + member + " does not stop");
            }
            TimeUnit.MILLISECONDS.sleep(1);
        }
    }

    /** Every thread is in state T (proc_pid_stat(5)): a signal that was sent is not yet one that has arrived. */
    private static boolean isStopped(long pid) throws IOException {
        try (Stream<Path> tasks = Files.list(Path.of("/proc/" + pid + "/task"))) {
            for (Path task : tasks.toList()) {
                String stat = Files.readString(task.resolve("stat"));
                if (stat.charAt(stat.lastIndexOf(')') + 2) != 'T') {
                    return false;
                }
            }
        }
        return true;
    }

    public void resume(int member) throws IOException, InterruptedException {
        signal("CONT", member);
    }

    /** Runs etcdctl with all endpoints; returns what it prints. Further arguments for TLS or a user are the caller's. */
    public String etcdctl(String... args) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(binaries.etcdctl().toString(), "--endpoints=" + String.join(",", endpoints())));
        command.addAll(List.of(args));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        process.getOutputStream().close();
        String output = new String(process.getInputStream().readAllBytes());
        if (process.waitFor() != 0) {
            throw new IOException("etcdctl " + String.join(" ", args) + ": " + output);
        }
        return output;
    }

    @Override
    public void close() {
        for (Process process : processes) {
            if (process != null) {
                process.destroyForcibly();
            }
        }
        for (Process process : processes) {
            if (process != null) {
                process.onExit().join();
            }
        }
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        } catch (IOException e) {
            throw new IllegalStateException("can't remove " + directory, e);
        }
    }

    private void launch(int member) throws IOException, InterruptedException {
        String name = "m" + member;
        Files.deleteIfExists(log(member));
        List<String> peers = new ArrayList<>();
        for (int i = 0; i < setup.members; i++) {
            peers.add("m" + i + "=http://127.0.0.1:" + peerPorts[i]);
        }
        String peer = "http://127.0.0.1:" + peerPorts[member];
        String client = endpoints().get(member);
        List<String> command = new ArrayList<>(List.of("setpriv", "--pdeathsig", "KILL", binaries.etcd().toString(),
            "--name", name, "--data-dir", directory.resolve(name).toString(), "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
            "--listen-client-urls", client, "--advertise-client-urls", client, "--initial-cluster", String.join(",", peers), "--log-level", "info"));
        if (!setup.fsync) {
            command.add("--unsafe-no-fsync");
        }
        if (setup.tls != null) {
            command.addAll(List.of("--cert-file", setup.tls.certFile.toString(), "--key-file", setup.tls.keyFile.toString()));
            if (setup.tls.clientCaFile != null) {
                command.addAll(List.of("--client-cert-auth", "--trusted-ca-file", setup.tls.clientCaFile.toString()));
            }
        }
        command.addAll(setup.moreArgs);
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log(member).toFile());
        builder.environment().keySet().removeIf(variable -> variable.startsWith("ETCD_"));
        try {
            processes[member] = PARENT.submit(builder::start).get();
        } catch (ExecutionException e) {
            throw new IOException("can't start etcd: " + e.getCause().getMessage(), e);
        }
    }

    private void awaitServing(int member) throws IOException, InterruptedException {
        long startNs = System.nanoTime();
        while (!Files.readString(log(member)).contains(STARTED)) {
            if (!processes[member].isAlive() || System.nanoTime() - startNs > START_MS * 1_000_000) {
                throw new IOException("etcd does not start: " + Files.readString(log(member)));
            }
            TimeUnit.MILLISECONDS.sleep(20);
        }
    }

    private Path log(int member) {
        return directory.resolve("m" + member + ".log");
    }

    private void signal(String signal, int member) throws IOException, InterruptedException {
        if (new ProcessBuilder("kill", "-" + signal, Long.toString(pid(member))).inheritIO().start().waitFor() != 0) {
            throw new IOException("can't send SIG" + signal + " to etcd");
        }
    }

    private static int[] freePorts(int count) throws IOException {
        int[] ports = new int[count];
        List<ServerSocket> sockets = new ArrayList<>();
        try {
            for (int i = 0; i < count; i++) {
                ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                sockets.add(socket);
                ports[i] = socket.getLocalPort();
            }
        } finally {
            for (ServerSocket socket : sockets) {
                socket.close();
            }
        }
        return ports;
    }
}
