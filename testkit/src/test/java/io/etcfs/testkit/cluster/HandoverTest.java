package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.fs.Operations;
import io.etcfs.core.record.Keys;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.WatchEvent;
import io.etcfs.core.store.WatchListener;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Who gets a token next, what is asked for, and that requests that travel together fare as each would alone. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HandoverTest {
    private static final int O_RDWR = 2;

    private final Keys keys = new Keys(TestCluster.NAME);
    private TestCluster cluster;
    private ClusterNode holder;
    private TestClient a;
    private final List<HookedStore> ways = new ArrayList<>();

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(64L << 20);
        holder = cluster.start("n1", way());
        a = new TestClient(holder);
    }

    @AfterEach
    void stop() {
        ways.forEach(w -> w.hook = txn -> null);
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private HookedStore way() {
        HookedStore way = new HookedStore(cluster.store);
        ways.add(way);
        return way;
    }

    private static Call call() {
        return new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
    }

    private static byte[] bytes(String name) {
        return name.getBytes(StandardCharsets.UTF_8);
    }

    private static void await(BooleanSupplier condition) throws InterruptedException {
        long until = System.nanoTime() + 20_000_000_000L;
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() < until, "in vain");
            Thread.sleep(5);
        }
    }

    private interface Work {
        void run() throws FsException;
    }

    private final List<Throwable> failed = new CopyOnWriteArrayList<>();

    private Thread start(Work work) {
        return Thread.ofVirtual().start(() -> {
            try {
                work.run();
            } catch (FsException | RuntimeException | Error e) {
                failed.add(e);
            }
        });
    }

    /** A kernel that takes its time to drop pages: no token of the holder goes before it is let go. */
    private static final class SlowKernel extends ForgettingKernel {
        private final List<Runnable> waiting = new ArrayList<>();
        private boolean letGo;

        @Override
        public synchronized void invalidatePages(long ino, long offsetBytes, long lengthBytes, Runnable done) {
            if (letGo) {
                done.run();
            } else {
                waiting.add(done);
            }
        }

        void letGo() {
            List<Runnable> all;
            synchronized (this) {
                letGo = true;
                all = List.copyOf(waiting);
            }
            all.forEach(Runnable::run);
        }
    }

    private interface On {
        void run(long dir) throws FsException;
    }

    /** Two nodes, one after the other, want the directory that the holder cannot give up yet: which keys of theirs come then, by revision. */
    private List<Set<String>> keysOf(ClusterNode n2, On first, ClusterNode n3, On second) throws Exception {
        a.mkdir("d");
        // Whoever knows the inode asks for just what it needs.
        long dir = n2.lookup(call(), 1, bytes("d")).ino();
        n3.lookup(call(), 1, bytes("d"));
        holder.lookup(call(), 1, bytes("d"));
        Operations.Created file = holder.create(call(), dir, bytes("f"), 0644, 0, O_RDWR);
        a.write("d/f", 0, new byte[4096], 0);
        try (Arena arena = Arena.ofConfined()) {
            holder.read(call(), file.entry().ino(), file.opened().handle(), 0, 4096, O_RDWR, arena.allocate(8192, 4096));
        }
        a.fsync("d");
        SlowKernel kernel = new SlowKernel();
        holder.attachKernel(kernel);
        List<Set<String>> puts = new CopyOnWriteArrayList<>();
        cluster.store.watch(keys.locksOf(dir), keys.locksOf(dir).prefixEnd(), 0, new WatchListener() {
            @Override
            public void changed(long revision, List<WatchEvent> events) {
                Set<String> now = new TreeSet<>();
                for (WatchEvent e : events) {
                    Keys.LockKey k = keys.parseLock(e.keyValue().key());
                    if (e.kind() == WatchEvent.Kind.PUT && !k.node().equals("n1")) {
                        now.add((k.exclusive() ? "X " : "S ") + k.node());
                    }
                }
                if (!now.isEmpty()) {
                    puts.add(now);
                }
            }

            @Override
            public void resynced(long revision) {}
        });
        Thread one = start(() -> first.run(dir));
        awaitWants(dir, 1);
        Thread two = start(() -> second.run(dir));
        awaitWants(dir, 2);
        assertEquals(List.of(), puts);
        kernel.letGo();
        one.join();
        two.join();
        assertEquals(List.of(), failed);
        holder.release(call(), file.entry().ino(), file.opened().handle());
        return puts;
    }

    private void awaitWants(long dir, int count) throws InterruptedException {
        await(() -> {
            try {
                return cluster.store.range(keys.wantsOf(dir), keys.wantsOf(dir).prefixEnd(), 0, true, 0, 1_000_000_000L).count() == count;
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        });
    }

    @Test
    void allWhoWantToShareGetItAtOnce() throws Exception {
        ClusterNode n2 = cluster.start("n2");
        ClusterNode n3 = cluster.start("n3");
        assertEquals(List.of(Set.of("S n2", "S n3")), keysOf(n2, dir -> n2.getattr(call(), dir, -1), n3, dir -> n3.getattr(call(), dir, -1)));
    }

    @Test
    void whoWantsItAloneGetsItInTheOrderOfTheWants() throws Exception {
        ClusterNode n2 = cluster.start("n2");
        ClusterNode n3 = cluster.start("n3");
        assertEquals(List.of(Set.of("X n3"), Set.of("X n2")),
                keysOf(n3, dir -> n3.mkdir(call(), dir, bytes("third"), 0755, 0), n2, dir -> n2.mkdir(call(), dir, bytes("second"), 0755, 0)));
    }

    /** It looks a name up before it makes it: to share the directory for that would be a handover more in each turn. */
    @Test
    void whoChangesADirectoryByTurnsAsksForAllOfItAtOnce() throws Exception {
        HookedStore way = way();
        ClusterNode n2 = cluster.start("n2", way);
        Wants wants = new Wants(keys);
        a.mkdir("d");
        long dir = n2.lookup(call(), 1, bytes("d")).ino();
        holder.lookup(call(), 1, bytes("d"));
        holder.mkdir(call(), dir, bytes("n1"), 0755, 0);
        way.hook = wants;
        n2.lookup(call(), dir, bytes("missing"));
        assertEquals(Set.of(new Wants.Wanted(dir, false)), Set.copyOf(wants.all), "it has changed nothing");
        n2.mkdir(call(), dir, bytes("n2"), 0755, 0);
        holder.mkdir(call(), dir, bytes("n1 again"), 0755, 0);
        wants.all.clear();
        n2.lookup(call(), dir, bytes("missing"));
        assertEquals(Set.of(new Wants.Wanted(dir, true)), Set.copyOf(wants.all), "it will change more");
        holder.mkdir(call(), dir, bytes("n1 once more"), 0755, 0);
        Thread.sleep(1_200);
        wants.all.clear();
        n2.lookup(call(), dir, bytes("missing"));
        assertEquals(Set.of(new Wants.Wanted(dir, false)), Set.copyOf(wants.all), "its last change is long ago");
    }

    @Test
    void whoGaveATokenToAnotherWantsItBackWithItsFirstRequest() throws Exception {
        HookedStore way = way();
        ClusterNode n2 = cluster.start("n2", way);
        a.mkdir("d");
        long dir = n2.lookup(call(), 1, bytes("d")).ino();
        holder.lookup(call(), 1, bytes("d"));
        holder.mkdir(call(), dir, bytes("n1"), 0755, 0);
        List<Boolean> wanting = new CopyOnWriteArrayList<>();
        way.hook = txn -> {
            if (txn.toString().contains(keys.locksOf(dir).toString())) {
                wanting.add(Wants.puts(txn).stream().anyMatch(p -> p.key().equals(keys.want(dir, "n2"))));
            }
            return null;
        };
        n2.getattr(call(), dir, -1);
        assertEquals(true, wanting.getFirst(), () -> wanting.toString());
    }

    @Test
    void requestsThatAreRefusedTogetherAreSentOneByOne() throws Exception {
        for (int i = 0; i < 40; i++) {
            a.mkdir("d" + i);
        }
        a.fsync("");
        HookedStore way = way();
        TestClient b = new TestClient(cluster.start("n2", way));
        AtomicInteger refused = new AtomicInteger();
        way.hook = txn -> {
            if (txn.compares().isEmpty() && txn.success().size() > 1 && txn.success().stream().allMatch(Op.Nested.class::isInstance)) {
                refused.incrementAndGet();
                throw new StoreRejectedException(StoreRejectedException.Reason.TOO_LARGE, "planted");
            }
            sleep(2);
            return null;
        };
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            String name = "d" + i;
            all.add(start(() -> b.list(name)));
        }
        for (Thread t : all) {
            t.join();
        }
        assertEquals(List.of(), failed);
        assertTrue(refused.get() > 0);
    }

    @Test
    void requestsThatAreLostTogetherAreMadeAgain() throws Exception {
        for (int i = 0; i < 40; i++) {
            a.mkdir("d" + i);
        }
        a.fsync("");
        HookedStore way = way();
        TestClient b = new TestClient(cluster.start("n2", way));
        AtomicInteger lost = new AtomicInteger();
        CountDownLatch none = new CountDownLatch(1);
        way.hook = txn -> {
            sleep(2);
            boolean together = txn.compares().isEmpty() && txn.success().size() > 1 && txn.success().stream().allMatch(Op.Nested.class::isInstance);
            int count = together ? lost.incrementAndGet() : 0;
            if (!together || count > 10) {
                return null;
            }
            // Every second one was carried out all the same.
            return count % 2 == 0 ? new Outcome.Unknown("lost") : carriedOut(txn);
        };
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            String name = "d" + i;
            all.add(start(() -> b.mkdir(name + "/made")));
        }
        for (Thread t : all) {
            t.join();
        }
        assertEquals(List.of(), failed);
        assertTrue(lost.get() > 1);
        for (int i = 0; i < 40; i++) {
            assertEquals(List.of("made"), a.list("d" + i));
        }
    }

    private Outcome carriedOut(Txn txn) throws StoreRejectedException {
        cluster.store.commit(txn, 1_000_000_000L);
        return new Outcome.Unknown("its answer was lost");
    }

    private static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
