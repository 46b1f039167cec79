package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.fs.Operations;
import io.etcfs.core.record.Keys;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Which tokens a node asks for before anybody here needs them, and that they are asked for together. n1 has made everything, n2 walks. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ReadaheadTest {
    private static final int DIRECTORIES = 60;
    private static final int AHEAD = 32;
    private static final int AHEAD_AT_FIRST = 8;
    /** Nothing more is asked for within that. */
    private static final long QUIET_MS = 300;

    private final Keys keys = new Keys(TestCluster.NAME);
    private TestCluster cluster;
    private final Wants wants = new Wants(keys);
    private HookedStore way;
    private TestClient maker;
    private ClusterNode walker;
    private long parent;
    /** Of the parent's directories, in listing order. */
    private final List<String> names = new ArrayList<>();
    private final List<Long> inodes = new ArrayList<>();

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(64L << 20);
        maker = new TestClient(cluster.start("n1"));
        maker.mkdir("p");
        for (int i = 0; i < DIRECTORIES; i++) {
            maker.mkdir("p/d" + i);
        }
        maker.fsync("p");
        way = new HookedStore(cluster.store);
        walker = cluster.start("n2", way);
        parent = look(1, "p");
        // Not on the walker, who is taken for one if it has listed the parent.
        cluster.node(0).lookup(call(), 1, "p".getBytes(StandardCharsets.UTF_8));
        list(cluster.node(0), parent);
        way.hook = wants;
    }

    @AfterEach
    void stop() {
        way.hook = txn -> null;
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private static Call call() {
        return new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
    }

    private void list(ClusterNode node, long directory) throws FsException {
        names.clear();
        inodes.clear();
        node.readdir(call(), directory, 0, 0, false, new Operations.DirectorySink() {
            @Override
            public boolean hasRoomFor(int nameLength) {
                return true;
            }

            @Override
            public void add(byte[] name, long ino, int type, long cookie, Operations.Entry entry) {
                String n = new String(name, StandardCharsets.UTF_8);
                if (n.startsWith("d")) {
                    names.add(n);
                    inodes.add(ino);
                }
            }
        });
    }

    private long look(long dir, String name) throws FsException {
        return walker.lookup(call(), dir, name.getBytes(StandardCharsets.UTF_8)).ino();
    }

    private void walk(int from, int to) throws FsException {
        for (int i = from; i < to; i++) {
            look(parent, names.get(i));
        }
    }

    private Set<Long> inodes(int from, int to) {
        return new HashSet<>(inodes.subList(from, to));
    }

    private static void await(BooleanSupplier condition) throws InterruptedException {
        long until = System.nanoTime() + 20_000_000_000L;
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() < until, "in vain");
            Thread.sleep(5);
        }
    }

    @Test
    void theThirdDirectoryThatIsMissingAsksForThoseThatFollow() throws Exception {
        walk(0, 2);
        Thread.sleep(QUIET_MS);
        assertEquals(inodes(0, 2), wants.resources());
        walk(2, 3);
        await(() -> wants.resources().size() >= 3 + AHEAD);
        Thread.sleep(QUIET_MS);
        assertEquals(inodes(0, 3 + AHEAD), wants.resources());
        // Half of them used: the rest is asked for, and nobody waits for what was.
        await(() -> walker.status().tokensHeld() >= 2 + 3 + AHEAD);
        long acquired = walker.status().tokensAcquired();
        walk(3, 3 + AHEAD / 2 - 1);
        Thread.sleep(QUIET_MS);
        assertEquals(acquired, walker.status().tokensAcquired());
        walk(3 + AHEAD / 2 - 1, 3 + AHEAD / 2);
        await(() -> wants.resources().equals(inodes(0, 3 + AHEAD + AHEAD / 2)));
    }

    @Test
    void whoHasListedTheParentIsTakenForAWalkerAtOnce() throws Exception {
        list(walker, parent);
        walk(0, 1);
        await(() -> wants.resources().size() >= 1 + AHEAD_AT_FIRST);
        Thread.sleep(QUIET_MS);
        assertEquals(inodes(0, 1 + AHEAD_AT_FIRST), wants.resources());
        // And is one if he uses what was asked for.
        walk(1, 2);
        await(() -> wants.resources().size() >= 2 + AHEAD);
        Thread.sleep(QUIET_MS);
        assertEquals(inodes(0, 2 + AHEAD), wants.resources());
    }

    @Test
    void theyAreAskedForTogether() throws Exception {
        walk(0, 2);
        wants.slowMs = 5;
        wants.transactions.set(0);
        walk(2, 3);
        await(() -> walker.status().tokensHeld() >= 2 + 3 + AHEAD);
        // A want and a reading for each of 33, and what the node does beside.
        assertTrue(wants.transactions.get() < AHEAD, () -> wants.transactions + " transactions");
    }

    @Test
    void whatWasRecalledAMomentAgoIsNotAskedFor() throws Exception {
        look(parent, names.get(5));
        maker.write("p/" + names.get(5) + "/f", 0, new byte[1], 0);
        wants.all.clear();
        walk(0, 3);
        await(() -> wants.resources().size() >= 2 + AHEAD);
        assertFalse(wants.resources().contains(inodes.get(5)));
    }

    @Test
    void nothingIsAskedForWhileTheParentIsBeingChangedHere() throws Exception {
        CountDownLatch published = new CountDownLatch(1);
        way.hook = txn -> {
            if (Wants.puts(txn).stream().anyMatch(p -> p.key().equals(keys.batch("n2")))) {
                try {
                    published.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
            return wants.commit(txn);
        };
        walker.mkdir(call(), parent, "x".getBytes(StandardCharsets.UTF_8), 0755, 0);
        wants.all.clear();
        walk(0, 4);
        Thread.sleep(QUIET_MS);
        assertEquals(inodes(0, 4), wants.resources());
        published.countDown();
    }

    @Test
    void oneThatIsRecalledBeforeItWasOfUseEndsIt() throws Exception {
        walk(0, 3);
        await(() -> walker.status().tokensHeld() >= 2 + 3 + AHEAD);
        maker.write("p/" + names.get(3) + "/f", 0, new byte[1], 0);
        walk(3, 3 + AHEAD);
        Thread.sleep(QUIET_MS);
        assertEquals(inodes(0, 3 + AHEAD), wants.resources());
    }
}
