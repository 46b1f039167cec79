package io.etcfs.it.faults;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fault.Fault;
import io.etcfs.it.cluster.Crew;
import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.Gate;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.LocalTime;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/**
 * Faults that come and go while a worker is busy on each of three nodes. Each node reaches etcd by a gate of its own; or, on a device with reservations, nodes have links of
 * their own to etcd and the device, and who is away for long is fenced.
 */
final class Storm implements AutoCloseable {
    private static final int NODES = 3;
    /** Which faults there are: {@code -Detcfs.it.faults.kinds=LEAVE|CUT.*}. */
    private static final String KINDS = System.getProperty("etcfs.it.faults.kinds", ".*");
    /** Of one call of a worker: longer than the daemon's deadline of 20 s and a fault that begins meanwhile. */
    private static final int CALL_LIMIT_S = 60;
    private static final Duration RECOVERY = Duration.ofSeconds(75);
    /** How long after its session may have ended a node may stop by itself: then what it had not published was overtaken by others. */
    private static final Duration STOPS_WITHIN = Duration.ofSeconds(75);

    private enum Kind {
        KILL(5), KILL_TWO(1), KILL_TWICE(1), STOP_SHORTLY(2), STOP(4), STOP_TWO(1), ETCD_STOPS_SHORTLY(2), ETCD_STOPS(3), ETCD_KILLED(2), ETCD_AWAY(0.5), CUT_SHORTLY(2), CUT(5), CUT_AND_KILL(1),
        LEAVE(4), LEAVE_KILLED(2);

        private final double weight;

        Kind(double weight) {
            this.weight = weight;
        }
    }

    private static final String[] LINKS = {"etcd", "storage", "all"};

    private final DevCluster cluster;
    private final boolean fenced;
    private final Random random;
    private final Gate[] gates = new Gate[NODES + 1];
    private final Path[] results = new Path[NODES];
    /** When the session of each node may have ended last, System.nanoTime. */
    private final long[] cutOffNs = new long[NODES + 1];
    private final long seed;
    private Crew crew;
    private Crew.Child[] workers;
    private CompletableFuture<Void> work;

    static DevCluster cluster(boolean fenced, Fault... broken) {
        return fenced ? DevCluster.up(NODES, Map.of("DEV_DEVICE", "iscsi", "DEV_NETWORK", "namespaces"), broken) : DevCluster.up(NODES, broken);
    }

    /** @param fenced as the cluster was made */
    Storm(DevCluster cluster, boolean fenced, long seed) throws Exception {
        this.cluster = cluster;
        this.fenced = fenced;
        this.seed = seed;
        random = new Random(seed);
        Arrays.fill(cutOffNs, System.nanoTime() - STOPS_WITHIN.toNanos());
        URI etcd = URI.create(cluster.etcdEndpoint());
        for (int n = 1; n <= NODES && !fenced; n++) {
            gates[n] = new Gate(etcd.getHost(), etcd.getPort());
            cluster.reachEtcdBy(n, gates[n].endpoint());
            DevCluster.Result left = cluster.leave(n);
            assertTrue(left.code() == 0, left.error());
            mount(n);
        }
    }

    /** Begins the work, and ends it after that time; all that fails is an AssertionError. */
    void rage(int seconds) throws Exception {
        say("seed " + seed + ", " + seconds + " s");
        Crew.run(cluster, Duration.ofSeconds(30), "begin", "os.mkdir(HERE)\nos.mkdir(HERE + '/shared')\nos.mkdir(HERE + '/both')\n", place(1), place(2));
        Path stop = cluster.scratch().resolve("stop");
        crew = new Crew(cluster);
        workers = new Crew.Child[NODES + 1];
        for (int n = 1; n <= NODES; n++) {
            results[n - 1] = cluster.scratch().resolve("n" + n);
            List<Path> others = new ArrayList<>(List.of(place(1), place(2), place(3)));
            others.remove(place(n));
            workers[n] = crew.add("worker" + n, program("worker.py"), place(n), others.get(0), "n" + n, seed * 10 + n, stop, pause(n), results[n - 1], CALL_LIMIT_S, others.get(1));
        }
        crew.start();
        work = CompletableFuture.runAsync(() -> crew.await(Duration.ofDays(1)), r -> Thread.ofPlatform().start(r));
        try {
            long end = System.nanoTime() + seconds * 1_000_000_000L;
            awaitProgress();
            while (System.nanoTime() < end) {
                Kind kind = choose();
                say("" + kind);
                happen(kind);
                awaitProgress();
                calm(8_000 + random.nextInt(12_000));
            }
            awaitProgress();
            Files.createFile(stop);
            work.join();
        } catch (CompletionException e) {
            System.err.println(cluster.logTails());
            throw new AssertionError("seed " + seed + ": " + e.getCause().getMessage(), e.getCause());
        } catch (AssertionError e) {
            System.err.println(cluster.logTails());
            throw e;
        } finally {
            crew.close();
        }
        for (Path result : results) {
            String text = Files.readString(result);
            say(result.getFileName() + ": " + text.substring(text.indexOf("\"facts\"") + 9));
        }
    }

    private Kind choose() {
        List<Kind> kinds = Arrays.stream(Kind.values()).filter(k -> k.name().matches(KINDS)).toList();
        double at = random.nextDouble() * kinds.stream().mapToDouble(k -> k.weight).sum();
        for (Kind k : kinds) {
            at -= k.weight;
            if (at < 0) {
                return k;
            }
        }
        return kinds.getLast();
    }

    private void happen(Kind kind) throws Exception {
        int node = 1 + random.nextInt(NODES);
        int other = 1 + node % NODES;
        say("at n" + node);
        switch (kind) {
            case KILL, KILL_TWICE, KILL_TWO -> {
                cluster.kill(node);
                if (kind == Kind.KILL_TWO) {
                    cluster.kill(other);
                }
                Thread.sleep(random.nextBoolean() ? 0 : random.nextInt(6_000));
                mount(node);
                if (kind == Kind.KILL_TWICE) {
                    Thread.sleep(random.nextInt(500));
                    cluster.kill(node);
                    mount(node);
                }
                if (kind == Kind.KILL_TWO) {
                    mount(other);
                }
            }
            case STOP_SHORTLY, STOP, STOP_TWO -> {
                int ms = kind == Kind.STOP_SHORTLY ? 100 + random.nextInt(1_300) : 2_500 + random.nextInt(7_000);
                cutOff(node);
                cluster.pause(node);
                if (kind == Kind.STOP_TWO) {
                    cutOff(other);
                    cluster.pause(other);
                }
                Thread.sleep(ms);
                cluster.resume(node);
                if (kind == Kind.STOP_TWO) {
                    Thread.sleep(random.nextInt(1_000));
                    cluster.resume(other);
                }
            }
            case ETCD_STOPS_SHORTLY, ETCD_STOPS, ETCD_AWAY -> {
                for (int n = 1; n <= NODES; n++) {
                    cutOff(n);
                }
                cluster.pauseEtcd();
                Thread.sleep(kind == Kind.ETCD_AWAY ? 23_000 : kind == Kind.ETCD_STOPS ? 2_500 + random.nextInt(6_000) : 100 + random.nextInt(1_300));
                cluster.resumeEtcd();
            }
            case ETCD_KILLED -> {
                revive();
                for (int n = 1; n <= NODES; n++) {
                    cutOff(n);
                }
                cluster.killEtcd();
                Thread.sleep(random.nextInt(3_000));
                cluster.startMissing();
            }
            case CUT_SHORTLY, CUT, CUT_AND_KILL -> {
                cutOff(node);
                Gate.Held held = Gate.Held.values()[1 + random.nextInt(3)];
                if (fenced) {
                    cluster.cut(node, LINKS[held.ordinal() - 1]);
                } else {
                    gates[node].hold(held);
                }
                Thread.sleep(kind == Kind.CUT_SHORTLY ? 100 + random.nextInt(1_300) : 2_500 + random.nextInt(9_000));
                if (kind == Kind.CUT_AND_KILL && cluster.isServing(node)) {
                    cluster.kill(node);
                }
                boolean lost = random.nextBoolean();
                if (fenced) {
                    cluster.join(node, "all");
                } else {
                    gates[node].letGo(lost);
                }
            }
            case LEAVE, LEAVE_KILLED -> leave(node, kind == Kind.LEAVE_KILLED);
        }
        for (int n = 1; n <= NODES; n++) {
            // Until here.
            if (System.nanoTime() - cutOffNs[n] < 60_000_000_000L && kind != Kind.KILL && kind != Kind.KILL_TWO && kind != Kind.KILL_TWICE && kind != Kind.LEAVE && kind != Kind.LEAVE_KILLED) {
                cutOff(n);
            }
        }
        if (kind == Kind.CUT_AND_KILL && !cluster.isServing(node)) {
            mount(node);
        }
    }

    /** A mount gives up where etcd does not answer for some seconds, as on a machine that is too busy: it is tried again. */
    private void mount(int node) {
        long end = System.nanoTime() + RECOVERY.toNanos();
        while (true) {
            try {
                cluster.remount(node);
                return;
            } catch (AssertionError e) {
                if (System.nanoTime() > end || !e.getMessage().contains("etcd does not answer")) {
                    throw e;
                }
                say("n" + node + " is mounted again: " + e.getMessage());
            }
        }
    }

    private void cutOff(int node) {
        cutOffNs[node] = System.nanoTime();
    }

    private void leave(int node, boolean killed) throws Exception {
        Files.createFile(pause(node));
        Path done = Path.of(pause(node) + ".done");
        try {
            long end = System.nanoTime() + RECOVERY.toNanos();
            while (!Files.exists(done)) {
                requireWorking();
                assertTrue(System.nanoTime() < end, "the worker of n" + node + " does not let go of the mount");
                Thread.sleep(20);
            }
            if (killed) {
                CompletableFuture<DevCluster.Result> leaving = CompletableFuture.supplyAsync(() -> cluster.leave(node));
                Thread.sleep(random.nextInt(1_500));
                cluster.kill(node);
                leaving.join();
                mount(node);
                return;
            }
            DevCluster.Result result = null;
            for (int i = 0; i < 40; i++) {
                result = cluster.leave(node);
                if (result.code() == 0) {
                    break;
                }
                if (result.error().contains("did not leave in order")) {
                    say("n" + node + " did not leave in order");
                    mount(node);
                    return;
                }
                // The others' workers look in from time to time.
                Thread.sleep(200);
            }
            assertTrue(result.code() == 0, "n" + node + " does not leave: " + result.error());
            Thread.sleep(random.nextInt(4_000));
            mount(node);
        } finally {
            Files.delete(pause(node));
        }
    }

    /** Lets time pass; a node that stops by itself is mounted again, if it may. */
    private void calm(int ms) throws Exception {
        long end = System.nanoTime() + ms * 1_000_000L;
        while (System.nanoTime() < end) {
            requireWorking();
            revive();
            Thread.sleep(100);
        }
    }

    private void revive() {
        for (int n = 1; n <= NODES; n++) {
            if (!cluster.isServing(n)) {
                assertTrue(System.nanoTime() - cutOffNs[n] < STOPS_WITHIN.toNanos(), "n" + n + " has stopped by itself, though nothing happened to it");
                String last = cluster.logTails().lines().filter(l -> l.contains(" ERROR ")).reduce("", (a, b) -> b);
                say("n" + n + " had stopped by itself: " + last);
                mount(n);
            }
        }
    }

    private void requireWorking() {
        if (work.isDone()) {
            work.join();
            throw new AssertionError("the workers have ended");
        }
    }

    /** Each worker goes on. */
    private void awaitProgress() throws Exception {
        long begin = System.nanoTime();
        for (int n = 1; n <= NODES; n++) {
            long before = workers[n].ticks();
            while (workers[n].ticks() < before + 30) {
                requireWorking();
                revive();
                assertTrue(System.nanoTime() - begin < RECOVERY.toNanos(), "seed " + seed + ": the worker of n" + n + " does not go on");
                Thread.sleep(20);
            }
        }
        long ms = (System.nanoTime() - begin) / 1_000_000;
        if (ms > 5_000) {
            say("all go on after " + ms + " ms");
        }
    }

    /** Every node shows what the workers left. */
    void verify() throws IOException {
        for (int n = 1; n <= NODES; n++) {
            check(n, "keep");
        }
    }

    void remove() throws IOException {
        check(2, "remove");
    }

    private void check(int node, String what) throws IOException {
        Crew.run(cluster, Duration.ofMinutes(3), "verify", program("verify.py"), place(node), place(1 + node % NODES), results[0], results[1], results[2], what);
    }

    long freeBlocks(int node) throws IOException {
        Path file = cluster.scratch().resolve("free");
        Crew.run(cluster, Duration.ofSeconds(30), "free", "put(ARGS[0], b'%d' % os.statvfs(HERE).f_bfree)\n", cluster.mount(node), "", file);
        return Long.parseLong(Files.readString(file));
    }

    /** Freed blocks of others' arenas come back in the background, those of nodes that had vanished once these are known to write no more. */
    void awaitFreeBlocks(long wanted) throws Exception {
        long end = System.nanoTime() + Duration.ofSeconds(90).toNanos();
        for (int n = 1; n <= NODES; n++) {
            long free = freeBlocks(n);
            while (free != wanted) {
                assertTrue(System.nanoTime() < end, "n" + n + " has " + free + " free blocks, at the beginning there were " + wanted + "\n" + cluster.keys("unfree:"));
                Thread.sleep(500);
                free = freeBlocks(n);
            }
        }
        say("free blocks as at the beginning: " + wanted);
    }

    private Path place(int node) {
        return cluster.mount(node).resolve("storm");
    }

    private Path pause(int node) {
        return cluster.scratch().resolve("pause-n" + node);
    }

    private static void say(String what) {
        System.out.println(LocalTime.now().truncatedTo(ChronoUnit.SECONDS) + " " + what);
    }

    private static String program(String name) throws IOException {
        try (InputStream in = Storm.class.getResourceAsStream(name)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    @Override
    public void close() throws IOException {
        for (Gate gate : gates) {
            if (gate != null) {
                gate.close();
            }
        }
    }
}
