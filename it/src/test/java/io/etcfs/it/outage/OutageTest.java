package io.etcfs.it.outage;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.it.cluster.Crew;
import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** etcd does not answer while both nodes work. {@code -Detcfs.it.outageS=30} is how long the long outage is; the daemons' deadline is 20 s. */
@OnCluster
@Timeout(value = 5, unit = TimeUnit.MINUTES)
class OutageTest {
    private static final AtomicInteger NUMBER = new AtomicInteger();
    private static final String LOAD = program("load.py");
    private static final Duration RECOVERY = Duration.ofSeconds(30);
    private static final int LOADS = 2;
    /** The kernel makes two requests of a read whose read-ahead failed. */
    private static final int DEADLINE_S = 20;

    private interface Fault {
        void happen() throws Exception;
    }

    @Test
    void aStopOfOneSecondIsOnlyAWait(DevCluster cluster) throws Exception {
        List<Long> etcd = cluster.etcdPids();
        during(cluster, "stop1", false, () -> {
            for (int i = 0; i < 3; i++) {
                etcd.forEach(p -> DevCluster.signal("STOP", p));
                Thread.sleep(1_000);
                etcd.forEach(p -> DevCluster.signal("CONT", p));
                Thread.sleep(1_500);
            }
        });
    }

    /** Longer than the session lives: all sessions end at once, and the tokens are taken back. */
    @Test
    void aStopLongerThanTheSessionIsOnlyAWait(DevCluster cluster) throws Exception {
        List<Long> etcd = cluster.etcdPids();
        during(cluster, "stop5", false, () -> {
            etcd.forEach(p -> DevCluster.signal("STOP", p));
            Thread.sleep(5_000);
            etcd.forEach(p -> DevCluster.signal("CONT", p));
        });
    }

    @Test
    void etcdKilledAndStartedAgainIsOnlyAWait(DevCluster cluster) throws Exception {
        during(cluster, "kill", false, () -> {
            long begin = System.nanoTime();
            cluster.killEtcd();
            cluster.startMissing();
            System.out.println("etcd was away for " + (System.nanoTime() - begin) / 1_000_000 + " ms");
        });
    }

    /** Longer than an operation waits. */
    @Test
    void aLongStopEndsInErrorsAndTheMountWorksAgainAfterIt(DevCluster cluster) throws Exception {
        List<Long> etcd = cluster.etcdPids();
        during(cluster, "stop30", true, () -> {
            etcd.forEach(p -> DevCluster.signal("STOP", p));
            Thread.sleep(1_000L * Integer.getInteger("etcfs.it.outageS", DEADLINE_S + 3));
            etcd.forEach(p -> DevCluster.signal("CONT", p));
        });
    }

    private static void during(DevCluster cluster, String name, boolean mayFail, Fault fault) throws Exception {
        String directory = name + "-" + NUMBER.incrementAndGet();
        Path stop = cluster.scratch().resolve("stop-" + directory);
        Path[] results = new Path[2 * LOADS];
        run(cluster, directory, "begin", "os.mkdir(HERE)\nos.mkdir(HERE + '/shared')\nput(HERE + '/shared/log', b'')\nfor i in range(int(ARGS[0])):\n    os.mkdir(HERE + '/p%d' % i)\n", 2 * LOADS);
        Crew crew = new Crew(cluster);
        Crew.Child[] loads = new Crew.Child[2 * LOADS];
        for (int i = 0; i < loads.length; i++) {
            results[i] = cluster.scratch().resolve("result-" + directory + "-" + i);
            loads[i] = add(crew, cluster, directory, 1 + i % 2, "load" + i, LOAD, "p" + i, stop, results[i], mayFail ? "yes" : "no", mayFail ? 2 * DEADLINE_S + 5 : 10);
        }
        crew.start();
        CompletableFuture<Void> work = CompletableFuture.runAsync(() -> crew.await(Duration.ofMinutes(3)), r -> Thread.ofPlatform().start(r));
        long recoveredMs;
        try {
            makeCalls(loads, work, "the loads do not begin");
            Thread.sleep(1_000);
            fault.happen();
            long resumed = System.nanoTime();
            makeCalls(loads, work, "the mounts do not work again");
            recoveredMs = (System.nanoTime() - resumed) / 1_000_000;
            Thread.sleep(1_500);
            Files.createFile(stop);
            work.join();
        } catch (CompletionException e) {
            throw new AssertionError("under load: " + e.getCause().getMessage(), e.getCause());
        } finally {
            crew.close();
            cluster.resumeEtcd();
        }
        run(cluster, directory, "verify", program("verify.py"), (Object[]) results);
        for (int i = 0; i < loads.length; i++) {
            String text = Files.readString(results[i]);
            System.out.println(name + ": node " + (1 + i % 2) + ": " + text.substring(text.indexOf("\"facts\"") + 9));
        }
        System.out.println(name + ": all had made 50 calls " + recoveredMs + " ms after etcd was back");
        assertTrue(cluster.pids().values().stream().allMatch(p -> ProcessHandle.of(p).isPresent()), "the daemons are not those that were started");
        if (mayFail) {
            cluster.newErrors().forEach(e -> System.out.println("logged: " + e));
        }
    }

    /** Each has made 50 calls that succeeded. */
    private static void makeCalls(Crew.Child[] loads, CompletableFuture<Void> work, String otherwise) throws InterruptedException {
        long begin = System.nanoTime();
        long[] before = Arrays.stream(loads).mapToLong(Crew.Child::ticks).toArray();
        for (int i = 0; i < loads.length; i++) {
            while (loads[i].ticks() < before[i] + 50 && !work.isDone()) {
                assertTrue(System.nanoTime() - begin < RECOVERY.toNanos(), otherwise);
                Thread.sleep(5);
            }
        }
    }

    private static Crew.Child add(Crew crew, DevCluster cluster, String directory, int node, String name, String program, Object... args) {
        Object[] all = new Object[args.length + 2];
        all[0] = cluster.mount(node).resolve(directory);
        all[1] = cluster.mount(3 - node).resolve(directory);
        System.arraycopy(args, 0, all, 2, args.length);
        return crew.add(name, program, all);
    }

    private static void run(DevCluster cluster, String directory, String name, String program, Object... args) {
        Crew crew = new Crew(cluster);
        add(crew, cluster, directory, 1, name, program, args);
        crew.await(Duration.ofSeconds(90));
    }

    private static String program(String name) {
        try (InputStream in = OutageTest.class.getResourceAsStream(name)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }
}
