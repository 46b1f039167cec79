package io.etcfs.it.membership;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.it.cluster.Crew;
import io.etcfs.it.cluster.DevCluster;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Nodes come and go, in order and not, while the others are at work; on a device with reservations. */
@Timeout(value = 6, unit = TimeUnit.MINUTES)
class ElasticTest {
    private static final Duration LIMIT = Duration.ofSeconds(90);
    /** Files of its own, each durable before its number goes to the file ARGS[0], every third removed again, until the file ARGS[1] is there or the mount is gone. */
    private static final String WORK = """
            os.makedirs(HERE, exist_ok=True)
            said = os.open(ARGS[0], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            n = 0
            try:
                while not os.path.exists(ARGS[1]):
                    n += 1
                    with open(HERE + '/%d' % n, 'wb') as f:
                        f.write(b'%d.' % n * 5000); f.flush(); os.fsync(f.fileno())
                    os.write(said, b'%d\\n' % n)
                    if n % 3 == 0:
                        os.unlink(HERE + '/%d' % (n - 1))
                    tick()
            except OSError as e:
                check(os.path.exists(ARGS[2]), e)
            """;
    private static final String CHECK = """
            made = open(ARGS[0]).read().split()
            check(made, 'nothing was made')
            here = set(os.listdir(HERE))
            for text in made:
                n = int(text)
                if n % 3 == 2:
                    continue
                check(text in here, text, 'is missing')
                with open(HERE + '/' + text, 'rb') as f: check(f.read() == b'%d.' % n * 5000, text); tick()
            """;
    private static final String REMOVE = """
            import shutil
            shutil.rmtree(HERE)
            tick()
            """;

    private static DevCluster cluster;

    private final List<Path> accounts = new ArrayList<>();

    @BeforeAll
    static void up() {
        cluster = DevCluster.up(3, Map.of("DEV_DEVICE", "iscsi", "DEV_DOWN_LIMIT_S", "60"));
    }

    @AfterAll
    static void down() {
        if (cluster != null) {
            cluster.close();
        }
    }

    /** Work that goes on until the end of the test, or of its node. */
    private Crew.Child work(Crew crew, int node, String name) throws Exception {
        Path account = cluster.scratch().resolve(name + "-" + node);
        accounts.add(account);
        return crew.add(name + node, WORK, cluster.mount(node).resolve(account.getFileName()), "", account, stop(name), account + ".killed");
    }

    private static Path stop(String name) {
        return cluster.scratch().resolve(name + ".stop");
    }

    /** What all of them made is seen by this node, and is removed. */
    private void verify(int node) {
        for (Path account : accounts) {
            for (String program : List.of(CHECK, REMOVE)) {
                Crew.run(cluster, LIMIT, "check", program, cluster.mount(node).resolve(account.getFileName()), "", account);
            }
        }
        DevCluster.Result fsck = cluster.tryEtcfsctl("fsck");
        assertEquals(0, fsck.code(), fsck.toString());
    }

    @Test
    void threeNodesBecomeFiveAndThreeAgain() throws Exception {
        long fences = cluster.count("fence_");
        try (Crew crew = new Crew(cluster); Crew guests = new Crew(cluster)) {
            List<Crew.Child> staying = List.of(work(crew, 1, "grow"), work(crew, 2, "grow"), work(crew, 3, "grow"));
            crew.start();
            // Two join at once.
            cluster.grow(5);
            List<Crew.Child> coming = List.of(work(guests, 4, "guest"), work(guests, 5, "guest"));
            guests.start();
            for (Crew.Child child : List.of(staying.get(0), staying.get(1), staying.get(2), coming.get(0), coming.get(1))) {
                child.awaitTicks(child.ticks() + 30, LIMIT);
            }
            Files.createFile(stop("guest"));
            guests.await(LIMIT);
            CompletableFuture<DevCluster.Result> four = CompletableFuture.supplyAsync(() -> cluster.leave(4));
            DevCluster.Result five = cluster.leave(5);
            assertEquals(0, five.code(), five.toString());
            assertEquals(0, four.get().code(), four.get().toString());
            for (Crew.Child child : staying) {
                child.awaitTicks(child.ticks() + 10, LIMIT);
            }
            Files.createFile(stop("grow"));
            crew.await(LIMIT);
        }
        assertEquals(1, cluster.count("departed:n4"));
        assertEquals(1, cluster.count("departed:n5"));
        assertEquals(0, cluster.count("arena:n4/") + cluster.count("arena:n5/"));
        assertEquals(fences, cluster.count("fence_"), "nobody was fenced");
        verify(1);
    }

    @Test
    void aNodeJoinsWhileAnotherIsFenced() throws Exception {
        DevCluster.Result left = cluster.leave(2);
        assertEquals(0, left.code(), left.toString());
        try (Crew crew = new Crew(cluster); Crew dying = new Crew(cluster)) {
            Crew.Child stays = work(crew, 1, "join");
            crew.start();
            Crew.Child dies = work(dying, 3, "dies");
            dying.start();
            dies.awaitTicks(10, LIMIT);
            Files.createFile(Path.of(accounts.get(1) + ".killed"));
            cluster.kill(3);
            cluster.await("the intent", LIMIT, () -> cluster.count("fence_pending:n3") + cluster.count("fence_done:n3") > 0);
            cluster.remount(2);
            Crew.Child joins = work(crew, 2, "join");
            crew.start();
            joins.awaitTicks(10, LIMIT);
            cluster.await("the fence", LIMIT, () -> cluster.count("fence_done:n3") == 1);
            stays.awaitTicks(stays.ticks() + 10, LIMIT);
            assertEquals(0, cluster.count("fence_pending:") + cluster.count("arena:n3/"));
            cluster.remount(3);
            Files.createFile(stop("join"));
            crew.await(LIMIT);
        }
        assertEquals(0, cluster.count("fence_"));
        verify(3);
    }

    @Test
    void aLeaveIsKilledHalfWay() throws Exception {
        for (int delayMs : new int[] {30, 150, 500}) {
            String name = "half" + delayMs;
            try (Crew crew = new Crew(cluster)) {
                Crew.Child worker = work(crew, 3, name);
                crew.start();
                worker.awaitTicks(20, LIMIT);
                Files.createFile(stop(name));
                crew.await(LIMIT);
            }
            long pid = cluster.pid(3);
            CompletableFuture<DevCluster.Result> leave = CompletableFuture.supplyAsync(() -> cluster.leave(3));
            cluster.await("the leave", LIMIT, () -> !Files.readString(Path.of("/proc/self/mounts")).contains(cluster.mount(3).toString()));
            Thread.sleep(delayMs);
            DevCluster.signal("KILL", pid);
            DevCluster.Result result = leave.get();
            boolean left = cluster.count("departed:n3") == 1;
            System.out.println("killed " + delayMs + " ms after it was unmounted: " + (left ? "it had left" : "it had not left") + ", umount ended with " + result.code());
            assertTrue(left || result.code() != 0, "umount has seen what was not");
            if (!left) {
                cluster.await("the fence", LIMIT, () -> cluster.count("fence_done:n3") == 1);
            }
            assertEquals(0, cluster.count("arena:n3/") + cluster.count("fence_pending:"));
            cluster.remount(3);
            assertEquals(0, cluster.count("fence_"));
        }
        verify(2);
    }
}
