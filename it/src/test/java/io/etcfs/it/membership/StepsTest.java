package io.etcfs.it.membership;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.it.cluster.Crew;
import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.Gate;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * A node is killed in each step of a leave, of a claim and of a fence: when it sends its first message to etcd, its second and so on, which does not arrive. On a device with
 * reservations. Each step, or each so manyth, with {@code -Detcfs.it.steps.every}; else one.
 */
@Timeout(value = 30, unit = TimeUnit.MINUTES)
class StepsTest {
    private static final Duration LIMIT = Duration.ofSeconds(90);
    /** 0: one of them, in the middle. */
    private static final int EVERY = Integer.getInteger("etcfs.it.steps.every", 0);
    private static final int FIRST = EVERY == 0 ? 5 : Math.min(2, EVERY - 1);
    /** Above what any of them takes. */
    private static final int MANY = 200;
    /** A file that is durable, whose name goes to the file ARGS[0] then, and a change that nobody waits for. Fails only if the node was killed, which the file ARGS[1] says. */
    private static final String WRITE = """
            try:
                os.makedirs(HERE, exist_ok=True)
                fd = os.open(HERE + '/durable', os.O_RDWR | os.O_CREAT, 0o644)
                os.pwrite(fd, b'a' * (1 << 20), 0); os.fsync(fd); tick()
                with open(ARGS[0], 'w') as f: f.write('durable')
                put(HERE + '/loose', b'b' * 5000)
            except OSError as e:
                time.sleep(0.1)
                check(os.path.exists(ARGS[1]), e)
            """;
    /** What was durable is there, and is of one's own now. */
    private static final String TAKE = """
            if os.path.exists(ARGS[0]):
                fd = os.open(HERE + '/durable', os.O_RDWR)
                check(os.pread(fd, 2 << 20, 0) == b'a' * (1 << 20), 'not what was written')
                os.pwrite(fd, b'c' * (1 << 19), 1 << 18); os.fsync(fd); tick()
            """;
    /** The same bytes again, if the node lives to see it. */
    private static final String ASK = """
            try: os.pwrite(os.open(HERE + '/durable', os.O_RDWR), b'a', 0); tick()
            except OSError: pass
            """;
    private static final String CHECK = """
            if os.path.exists(ARGS[0]):
                check(get(HERE + '/durable') == b'a' * (1 << 18) + b'c' * (1 << 19) + b'a' * (1 << 18), 'not what was written last')
            """;
    private static final String REMOVE = """
            import shutil
            shutil.rmtree(HERE, ignore_errors=True); tick()
            """;
    /** Until nothing is left that others have given back: files of a size that one arena has room for. */
    private static final String HOARD = """
            with open(HERE + '/' + ARGS[0], 'wb') as f:
                for i in range(16): f.write(b'h' * (1 << 20)); tick()
                os.fsync(f.fileno())
            """;

    private static DevCluster cluster;
    private static Gate[] gates;

    private int files;

    @BeforeAll
    static void up() throws Exception {
        cluster = DevCluster.up(3, Map.of("DEV_DEVICE", "iscsi"));
        URI etcd = URI.create(cluster.etcdEndpoint());
        gates = new Gate[4];
        for (int node : new int[] {1, 3}) {
            gates[node] = new Gate(etcd.getHost(), etcd.getPort());
            cluster.reachEtcdBy(node, gates[node].endpoint());
            leave(node);
            cluster.remount(node);
        }
    }

    @AfterAll
    static void down() throws Exception {
        if (cluster != null) {
            cluster.close();
            for (Gate gate : List.of(gates[1], gates[3])) {
                gate.close();
            }
        }
    }

    @BeforeEach
    void allServe() {
        for (int node = 1; node <= 3; node++) {
            if (!cluster.isServing(node)) {
                cluster.remount(node);
            }
        }
    }

    private static boolean goesOn(boolean all, int step, int first) {
        return !all && (EVERY > 0 || step == first);
    }

    private static void said(String what, boolean all, int next) {
        if (all) {
            System.out.println(what + " has at most " + (next - EVERY) + " messages");
        }
    }

    private static void leave(int node) {
        DevCluster.Result left = cluster.leave(node);
        assertEquals(0, left.code(), left.toString());
    }

    /** Files of one round on the local filesystem: what was durable, and whether the node was killed. */
    private record Round(String name, Path durable, Path killed) {
        static Round of(String name) {
            return new Round(name, cluster.scratch().resolve(name + ".durable"), cluster.scratch().resolve(name + ".killed"));
        }
    }

    private static void run(int node, String program, Round round) {
        Crew.run(cluster, LIMIT, "steps", program, cluster.mount(node).resolve(round.name), "", round.durable, round.killed);
    }

    private static void kill(int node, Round round) {
        try {
            Files.createFile(round.killed);
        } catch (java.io.IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
        DevCluster.signal("KILL", cluster.pid(node));
    }

    /** No arena has two owners, none has none. */
    private static void assertArenas() {
        List<String> records = Stream.concat(cluster.keys("arena:").lines(), cluster.keys("free_arena:").lines()).filter(l -> !l.isBlank()).toList();
        TreeSet<Integer> ids = new TreeSet<>(records.stream().map(l -> Integer.parseInt(l.replaceFirst(".*[:/]", ""), 16)).toList());
        assertEquals(records.size(), ids.size(), records.toString());
        assertTrue(ids.isEmpty() || ids.last() == ids.size() - 1, records.toString());
    }

    /** After node 3 was killed: every other time it is back before anybody fences it. Then all is there, and can be used. */
    private void afterwards(Round round, int step, boolean fenced) throws Exception {
        if (fenced) {
            cluster.await("the fence", LIMIT, () -> cluster.count("fence_done:n3") == 1 && cluster.count("fence_pending:") == 0);
            assertEquals(0, cluster.count("arena:n3/"));
        }
        if (!cluster.isServing(3)) {
            cluster.remount(3);
        }
        assertEquals(0, cluster.count("fence_"), "after step " + step);
        assertArenas();
        run(1, TAKE, round);
        run(3, CHECK, round);
        run(2, REMOVE, round);
        DevCluster.Result fsck = cluster.tryEtcfsctl("fsck");
        assertEquals(0, fsck.code(), fsck.toString());
    }

    @Test
    void whoIsKilledInALeave() throws Exception {
        boolean all = false;
        int step = FIRST;
        for (; goesOn(all, step, FIRST); step += Math.max(1, EVERY)) {
            assertTrue(step < MANY);
            Round round = Round.of("leave" + step);
            run(3, WRITE, round);
            gates[3].endAfter("", step, () -> kill(3, round));
            DevCluster.Result result = cluster.leave(3);
            all = gates[3].goOn();
            boolean left = cluster.count("departed:n3") == 1;
            assertTrue(left || !all, result.toString());
            assertTrue(left || result.code() != 0, "umount has seen what was not");
            if (left) {
                assertEquals(0, cluster.count("arena:n3/"), "who has left has nothing");
            }
            afterwards(round, step, !left && step / Math.max(1, EVERY) % 2 == 0);
        }
        said("a leave", all, step);
    }

    @Test
    void whoIsKilledInAClaimOfWhatWasGivenBack() throws Exception {
        claims("given");
    }

    @Test
    void whoIsKilledInAClaimOfWhatNobodyHad() throws Exception {
        claims("new");
    }

    private void claims(String kind) throws Exception {
        boolean all = false;
        int step = FIRST;
        for (; goesOn(all, step, FIRST); step += Math.max(1, EVERY)) {
            assertTrue(step < MANY);
            if (kind.equals("given")) {
                // Whatever it had before: now it has space to give back.
                Round before = Round.of("before" + step);
                run(3, WRITE, before);
                run(3, REMOVE, before);
            }
            leave(3);
            cluster.remount(3);
            assertEquals(0, cluster.count("arena:n3/"));
            while (kind.equals("new") && cluster.count("free_arena:") > 0) {
                files++;
                Crew.run(cluster, LIMIT, "hoard", HOARD, cluster.mount(2), "", "hoard" + files);
            }
            if (kind.equals("given")) {
                assertTrue(cluster.count("free_arena:") > 0);
            }
            Round round = Round.of(kind + step);
            gates[3].endAfter("", step, () -> kill(3, round));
            run(3, WRITE, round);
            all = gates[3].goOn();
            assertTrue(Files.exists(round.durable) || !all);
            if (all) {
                assertTrue(cluster.count("arena:n3/") > 0);
            } else {
                cluster.await("its end", LIMIT, () -> !cluster.isServing(3));
            }
            afterwards(round, step, !all && step / Math.max(1, EVERY) % 2 == 0);
        }
        said("a first write", all, step);
    }

    /** The one that fences is killed, from the message on in which it says that it will; a third one, which comes later, brings it to its end. */
    @Test
    void whoIsKilledInAFence() throws Exception {
        boolean all = false;
        int first = EVERY == 0 ? 3 : 0;
        int step = first;
        for (; goesOn(all, step, first); step += Math.max(1, EVERY)) {
            assertTrue(step < MANY);
            Round round = Round.of("fence" + step);
            run(3, WRITE, round);
            long generation = generation();
            leave(2);
            gates[1].endAfter("fence_pending:n3", step, () -> kill(1, round));
            cluster.kill(3);
            try (Crew crew = new Crew(cluster)) {
                // Wants a token of the one that is gone, and so the fence.
                crew.add("asks", ASK, cluster.mount(1).resolve(round.name), "");
                crew.start();
                cluster.await("the fence, or the end of who fences", LIMIT, () -> !cluster.isServing(1) || cluster.count("fence_done:n3") == 1 && cluster.count("fence_pending:") == 0);
            }
            all = cluster.isServing(1);
            gates[1].goOn();
            cluster.remount(2);
            cluster.await("the fence", LIMIT, () -> cluster.count("fence_done:n3") == 1 && cluster.count("fence_pending:n3") == 0);
            assertEquals(0, cluster.count("arena:n3/"));
            assertEquals(generation + 1, generation(), "fenced once");
            run(2, TAKE, round);
            if (!all) {
                cluster.remount(1);
            }
            cluster.remount(3);
            assertEquals(0, cluster.count("fence_"), "after step " + step);
            assertArenas();
            run(1, CHECK, round);
            run(3, CHECK, round);
            run(2, REMOVE, round);
            DevCluster.Result fsck = cluster.tryEtcfsctl("fsck");
            assertEquals(0, fsck.code(), fsck.toString());
        }
        said("a fence", all, step);
    }

    /** Of node 3, as etcfsctl says. */
    private static long generation() {
        return Long.parseLong(cluster.tryEtcfsctl("status", "-o", "json").output().replaceFirst("(?s).*\"node\":\"n3\"[^}]*?\"generation\":([0-9]+).*", "$1"));
    }
}
