package io.etcfs.it.crash;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.it.cluster.Crew;
import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * A daemon is killed at a random moment, by turns on each node. {@code -Detcfs.it.kills=50} says how often, {@code -Detcfs.it.seed} repeats the scripts and the
 * choice of moments (not the moments themselves: those are of the machine).
 */
@OnCluster
class KillTest {
    private static final int STEPS = 6_000;
    private static final Duration PATIENCE = Duration.ofSeconds(3);
    private static final int ROUNDS_KEPT = 3;

    private final int kills = Integer.getInteger("etcfs.it.kills", 5);
    private final long seed = Long.getLong("etcfs.it.seed", System.currentTimeMillis());
    private final Random random = new Random(seed);

    private record Progress(int begun, int ended, int fsynced, long[] endedNs) {
        static Progress read(Path file) throws IOException {
            ByteBuffer b = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
            long[] ns = new long[(b.capacity() - 32) / 8];
            for (int i = 0; i < ns.length; i++) {
                ns[i] = b.getLong(32 + 8 * i);
            }
            return new Progress((int) b.getLong(0), (int) b.getLong(8), (int) b.getLong(16), ns);
        }
    }

    /** D1, D2, D4, D8, and that the others go on. */
    @Test
    @Timeout(value = 45, unit = TimeUnit.MINUTES)
    void whatIsLeftOfAKilledNodeIsAPrefixOfWhatItDid(DevCluster cluster) throws Exception {
        System.out.println("kills " + kills + ", seed " + seed);
        run(cluster, 1, "start", "os.mkdir(HERE)\nos.mkdir(HERE + '/shared')\n");
        long slowestMs = 0;
        for (int round = 0; round < kills; round++) {
            try {
                slowestMs = Math.max(slowestMs, round(cluster, round));
            } catch (Exception | AssertionError e) {
                throw new AssertionError("round " + round + ", seed " + seed + ": " + e.getMessage(), e);
            }
        }
        System.out.println(kills + " kills; the longest call of a survivor took " + slowestMs + " ms");
    }

    private long round(DevCluster cluster, int round) throws Exception {
        String own = "r" + round;
        int victim = 1 + round % 2;
        int survivor = 3 - victim;
        boolean mountFirst = random.nextInt(3) == 0;
        boolean killTwice = random.nextInt(5) == 0;
        // How many calls before the kill, unless that takes too long.
        int enough = random.nextInt(4) == 0 ? random.nextInt(100) : 100 + random.nextInt(2_500);
        boolean contended = random.nextBoolean();
        List<Call> script = Script.of(random.nextLong(), own, STEPS);

        Path scratch = cluster.scratch();
        Path text = Files.writeString(scratch.resolve("script-" + round), script.stream().map(Call::toString).collect(Collectors.joining("\n")));
        Path stop = scratch.resolve("stop-" + round);
        Path result = scratch.resolve("result-" + round);
        Path progressFile = scratch.resolve("progress-" + round);
        run(cluster, victim, "begin", "os.mkdir(HERE + '/" + own + "')\n");

        Crew companions = new Crew(cluster);
        add(companions, cluster, survivor, "companion", program("companion.py"), "c" + round, stop, result, contended ? 2 : 40);
        Crew workers = new Crew(cluster);
        Crew.Child worker = add(workers, cluster, victim, "worker", program("worker.py"), text, progressFile);
        companions.start();
        workers.start();
        CompletableFuture<Void> survivors = CompletableFuture.runAsync(() -> companions.await(Duration.ofSeconds(120)), r -> Thread.ofPlatform().start(r));
        long killedNs;
        long delayMs;
        long mountedMs;
        Tree[] seen = new Tree[2];
        try {
            long beganNs = System.nanoTime();
            while (worker.ticks() < enough && worker.isAlive() && System.nanoTime() - beganNs < PATIENCE.toNanos()) {
                Thread.sleep(1);
            }
            Thread.sleep(random.nextInt(30));
            delayMs = (System.nanoTime() - beganNs) / 1_000_000;
            assertTrue(worker.isAlive() && !survivors.isDone(), "someone has ended before the kill");
            killedNs = System.nanoTime();
            cluster.kill(victim);
            assertTrue(worker.awaitEnd(Duration.ofSeconds(10)), "the killed node's process hangs");
            assertEquals(0, worker.exitCode(), "the worker's calls must fail with ENOTCONN, ECONNABORTED or ECANCELED only");
            if (!mountFirst) {
                seen[0] = dump(cluster, survivor, own, "first");
            }
            long beginNs = System.nanoTime();
            cluster.remount(victim);
            mountedMs = (System.nanoTime() - beginNs) / 1_000_000;
            if (killTwice) {
                cluster.kill(victim);
                cluster.remount(victim);
            }
            seen[1] = dump(cluster, victim, own, "second");
            if (mountFirst) {
                seen[0] = dump(cluster, survivor, own, "first");
            }
            Files.createFile(stop);
            survivors.join();
        } catch (CompletionException e) {
            throw new AssertionError("on the node that survives: " + e.getCause().getMessage(), e.getCause());
        } finally {
            workers.close();
            companions.close();
        }

        Progress progress = Progress.read(progressFile);
        List<Tree.Match> matches = Tree.explain(script, own, seen[0]);
        String facts = "node " + victim + " killed after " + delayMs + " ms: begun " + progress.begun + ", ended " + progress.ended + ", fsynced " + progress.fsynced;
        if (matches.size() != 1) {
            int near = Tree.nearest(script, own, seen[0]);
            throw new AssertionError(facts + "; no prefix explains what is left: " + matches + ", nearest " + Tree.difference(script, near, own, seen[0]) + around(script, near));
        }
        Tree.Match match = matches.get(0);
        // Calls without an effect may follow the last one that is visible.
        int upTo = match.calls();
        while (!match.partly() && upTo < script.size() && script.get(upTo) instanceof Call.Fsync) {
            upTo++;
        }
        int durable = Tree.durable(script, progress.fsynced);
        assertTrue(upTo >= durable, facts + " by " + script.get(Math.max(0, progress.fsynced - 1)) + ", so that " + durable + " must be left" + ", but only " + match + " are left; " + around(script, durable));
        assertTrue(match.calls() + (match.partly() ? 1 : 0) <= progress.begun, facts + ", but " + match + " are there");
        assertTrue(seen[0].sameAs(seen[1]), () -> facts + "; the nodes differ: node " + survivor + " sees " + matches + ", node " + victim + " " + Tree.explain(script, own, seen[1]));
        long lostFromNs = upTo < progress.ended ? progress.endedNs[upTo] : killedNs;
        String[] w = Files.readString(result).split(" ");
        System.out.println("round " + round + ": " + facts + ", durable " + durable + ", left " + match.calls() + (match.partly() ? "+" : "") + ", lost the last " + Math.max(0, killedNs - lostFromNs) / 1_000_000 + " ms; "
                + (contended ? "contended, " : "") + (mountFirst ? "mounted before the look" : "looked before the mount") + (killTwice ? ", killed again, " : ", ") + "mounted in " + mountedMs + " ms; survivor " + w[0] + " calls, longest " + w[1]
                + " ms (" + w[2] + ")");
        if (round >= ROUNDS_KEPT) {
            run(cluster, victim, "clean", program("clean.py"), "r" + (round - ROUNDS_KEPT), "c" + (round - ROUNDS_KEPT));
        }
        return Long.parseLong(w[1]);
    }

    private static String around(List<Call> script, int k) {
        return "calls around it: " + script.subList(Math.max(0, k - 6), Math.min(script.size(), k + 6));
    }

    private static Tree dump(DevCluster cluster, int node, String own, String name) throws IOException {
        Path list = cluster.scratch().resolve(own + "-" + name);
        Path blob = cluster.scratch().resolve(own + "-" + name + ".bytes");
        run(cluster, node, "dump-" + name, program("dump.py"), own, list, blob);
        Tree tree = Tree.read(list, blob);
        Files.delete(blob);
        return tree;
    }

    private static Crew.Child add(Crew crew, DevCluster cluster, int node, String name, String program, Object... args) {
        Object[] all = new Object[args.length + 2];
        all[0] = cluster.mount(node).resolve("crash");
        all[1] = cluster.mount(3 - node).resolve("crash");
        System.arraycopy(args, 0, all, 2, args.length);
        return crew.add(name, program, all);
    }

    private static void run(DevCluster cluster, int node, String name, String program, Object... args) {
        Crew crew = new Crew(cluster);
        add(crew, cluster, node, name, program, args);
        crew.await(Duration.ofSeconds(60));
    }

    private static String program(String name) {
        try (InputStream in = KillTest.class.getResourceAsStream(name)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }
}
