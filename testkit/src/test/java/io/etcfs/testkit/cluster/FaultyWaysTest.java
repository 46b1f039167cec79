package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.Txn;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Two nodes whose transactions get lost, or lose their answers, or are carried out late. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class FaultyWaysTest {
    private static final long SECOND = 1_000_000_000L;
    private static final int O_DIRECT = 040000;
    private TestCluster cluster;
    private HookedStore[] ways;
    private TestClient[] clients;

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(256L << 20);
        ways = new HookedStore[] {new HookedStore(cluster.store), new HookedStore(cluster.store)};
        clients = new TestClient[] {new TestClient(cluster.start("n1", ways[0])), new TestClient(cluster.start("n2", ways[1]))};
    }

    @AfterEach
    void stop() {
        for (HookedStore w : ways) {
            w.hook = txn -> null;
        }
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private final class Faults implements HookedStore.Hook {
        private final Random random;

        Faults(long seed) {
            random = new Random(seed);
        }

        @Override
        public Outcome commit(Txn txn) throws StoreRejectedException {
            int fate;
            long delay;
            synchronized (random) {
                fate = random.nextInt(12);
                delay = random.nextInt(80);
            }
            switch (fate) {
                case 0 -> {
                    return new Outcome.Unknown("lost");
                }
                case 1 -> {
                    cluster.store.commit(txn, SECOND);
                    return new Outcome.Unknown("answer lost");
                }
                case 2 -> {
                    cluster.tasks.start("late", () -> {
                        try {
                            Thread.sleep(delay);
                            cluster.store.commit(txn, SECOND);
                        } catch (InterruptedException | StoreRejectedException | IllegalStateException e) {
                            // Nobody hears of it.
                        }
                    });
                    return new Outcome.Unknown("late");
                }
                case 3 -> {
                    try {
                        Thread.sleep(delay);
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                    }
                    return null;
                }
                default -> {
                    return null;
                }
            }
        }
    }

    @Test
    void operationsAgreeWithAModel() throws Exception {
        for (int seed = 0; seed < Integer.getInteger("etcfs.test.seeds", 1); seed++) {
            Random random = new Random(seed);
            ways[0].hook = new Faults(2L * seed + 1000);
            ways[1].hook = new Faults(2L * seed + 1001);
            String top = "/s" + seed;
            clients[0].mkdir(top);
            Map<String, byte[]> model = new TreeMap<>();
            for (int step = 0; step < 150; step++) {
                TestClient c = clients[random.nextInt(3) == 0 ? 1 : 0];
                String name = top + "/f" + random.nextInt(5);
                String other = top + "/f" + random.nextInt(5);
                switch (random.nextInt(6)) {
                    case 0, 1 -> {
                        int offset = random.nextInt(3) == 0 ? 0 : random.nextInt(50_000);
                        byte[] data = new byte[1 + random.nextInt(20_000)];
                        random.nextBytes(data);
                        c.write(name, offset, data, random.nextInt(4) == 0 ? 040000 : 0);
                        byte[] old = model.getOrDefault(name, new byte[0]);
                        byte[] now = Arrays.copyOf(old, Math.max(old.length, offset + data.length));
                        System.arraycopy(data, 0, now, offset, data.length);
                        model.put(name, now);
                    }
                    case 2 -> {
                        if (model.containsKey(name)) {
                            int size = random.nextInt(60_000);
                            c.truncate(name, size);
                            model.put(name, Arrays.copyOf(model.get(name), size));
                        }
                    }
                    case 3 -> {
                        if (model.containsKey(name)) {
                            c.unlink(name);
                            model.remove(name);
                        }
                    }
                    case 4 -> {
                        if (model.containsKey(name) && !name.equals(other)) {
                            c.rename(name, other);
                            model.put(other, model.remove(name));
                        }
                    }
                    default -> {
                        if (model.containsKey(name)) {
                            assertArrayEquals(model.get(name), c.read(name), "seed " + seed + " step " + step + " " + name);
                        }
                    }
                }
                assertEquals(List.of(), cluster.stopped, "seed " + seed + " step " + step);
            }
            List<String> names = new ArrayList<>();
            model.keySet().forEach(n -> names.add(n.substring(top.length() + 1)));
            for (TestClient c : clients) {
                assertEquals(names, c.list(top), "seed " + seed);
                for (String n : model.keySet()) {
                    assertArrayEquals(model.get(n), c.read(n), n);
                }
            }
        }
    }

    private static boolean isBatch(Txn txn) {
        return txn.success().stream().anyMatch(op -> op instanceof io.etcfs.core.store.Op.Put p && p.key().toString().contains("/batch:"));
    }

    /** The next batch of n1 that passes is carried out, and then n1 is cut off before it hears of it. */
    private void cutAfter(java.util.function.Predicate<Txn> batch) {
        ways[0].hook = txn -> {
            if (isBatch(txn) && batch.test(txn)) {
                cluster.store.commit(txn, SECOND);
                ways[0].cut = true;
                ways[0].hook = t -> null;
                return new Outcome.Unknown("cut off");
            }
            return null;
        };
    }

    @Test
    void aBirthWhoseAnswerWasLostWithTheSession() throws Exception {
        clients[0].write("/x", 0, new byte[1], 0);
        clients[0].fsync("/x");
        cutAfter(txn -> true);
        clients[0].mkdir("/d");
        clients[0].write("/d/one", 0, "one".getBytes(), 0);
        long until = System.nanoTime() + SECOND;
        while (!ways[0].cut && System.nanoTime() < until) {
            Thread.sleep(5);
        }
        clients[0].write("/d/two", 0, "two".getBytes(), 0);
        clients[0].mkdir("/d/e");
        clients[0].write("/d/e/three", 0, "three".getBytes(), 0);
        Thread.sleep(3000);
        ways[0].cut = false;
        clients[0].fsync("/d/e/three");
        assertEquals(List.of("e", "one", "two"), clients[1].list("/d"));
        assertArrayEquals("three".getBytes(), clients[1].read("/d/e/three"));
        clients[1].write("/d/one", 3, "!".getBytes(), 0);
        assertArrayEquals("one!".getBytes(), clients[0].read("/d/one"));
    }

    @Test
    void aHandoverWhoseAnswerWasLostWithTheSession() throws Exception {
        clients[0].mkdir("/o");
        for (boolean shared : new boolean[] {false, true}) {
            String d = shared ? "/s" : "/x";
            // Not beside it: who walks asks for the next directories ahead.
            String other = "/o" + d;
            clients[0].mkdir(d);
            clients[0].write(d + "/f", 0, "mine".getBytes(), 0);
            clients[0].mkdir(other);
            long ino = clients[0].stat(d).ino();
            String owner = new io.etcfs.core.record.Keys(TestCluster.NAME).owner(ino).toString();
            assertEquals(1, clients[1].list("/").stream().filter(n -> ("/" + n).equals(d)).count());
            clients[0].stat(d);
            cutAfter(txn -> hands(txn.success(), owner));
            Thread taker = Thread.ofVirtual().start(() -> {
                try {
                    if (shared) {
                        clients[1].read(d + "/f");
                    } else {
                        clients[1].write(d + "/f", 4, "+theirs".getBytes(), 0);
                    }
                } catch (io.etcfs.core.fs.FsException e) {
                    cluster.stopped.add("n2: " + e);
                }
            });
            long until = System.nanoTime() + 5 * SECOND;
            while (!ways[0].cut && System.nanoTime() < until) {
                Thread.sleep(5);
            }
            assertEquals(true, ways[0].cut);
            clients[0].write(other + "/late", 0, "late".getBytes(), 0);
            taker.join();
            Thread.sleep(3000);
            ways[0].cut = false;
            clients[0].fsync(other + "/late");
            assertArrayEquals((shared ? "mine" : "mine+theirs").getBytes(), clients[0].read(d + "/f"));
            clients[0].write(d + "/f", 0, "M".getBytes(), 0);
            assertArrayEquals((shared ? "Mine" : "Mine+theirs").getBytes(), clients[1].read(d + "/f"));
            assertArrayEquals("late".getBytes(), clients[1].read(other + "/late"));
        }
    }

    /**
     * A node that shares a directory is asked for it and puts {@code open:} for a file that it has open; that batch does not get through before the session
     * ends. The other node removes the file, which nobody has open now: the next session must not say otherwise.
     */
    @Test
    void aPinThatIsOnItsWayWhenTheSessionEndsGoesWithIt() throws Exception {
        clients[1].write("/f", 0, "theirs".getBytes(), 0);
        clients[1].fsync("/f");
        io.etcfs.core.fs.Call call = new io.etcfs.core.fs.Call(1, 0, 0, 1, true, io.etcfs.core.fs.Call.Interruption.NEVER);
        io.etcfs.core.fs.ClusterNode n1 = cluster.node(0);
        long ino = n1.lookup(call, 1, "f".getBytes()).ino();
        long handle = n1.open(call, ino, 2, false).handle();
        io.etcfs.core.record.Keys keys = new io.etcfs.core.record.Keys(TestCluster.NAME);
        String pin = keys.open(1, ino, "n1").toString();
        ways[0].hook = txn -> {
            if (isBatch(txn) && txn.success().stream().anyMatch(op -> op instanceof io.etcfs.core.store.Op.Put p && p.key().toString().equals(pin))) {
                ways[0].cut = true;
                return new Outcome.Unknown("cut off");
            }
            return null;
        };
        clients[1].unlink("/f");
        clients[1].write("/g", 0, new byte[1], 0);
        clients[1].fsync("/g");
        assertEquals(true, ways[0].cut, "no pin was on its way");
        ways[0].hook = txn -> null;
        ways[0].cut = false;
        clients[0].write("/h", 0, new byte[1], 0);
        clients[0].fsync("/h");
        assertEquals(List.of(), cluster.store.range(keys.open(1, ino, "n1"), null, 0, false, 0, SECOND).keyValues());
        assertEquals(List.of("g", "h"), clients[1].list("/"));
        assertEquals(io.etcfs.core.fs.Errno.EIO, org.junit.jupiter.api.Assertions.assertThrows(io.etcfs.core.fs.FsException.class, () -> n1.getattr(call, ino, handle)).errno());
        n1.release(call, ino, handle);
        n1.forget(ino, 1);
    }

    private static boolean hands(List<io.etcfs.core.store.Op> ops, String key) {
        return ops.stream().anyMatch(op -> op instanceof io.etcfs.core.store.Op.Put p && p.key().toString().equals(key)
                || op instanceof io.etcfs.core.store.Op.Nested n && hands(n.txn().success(), key));
    }

    /** Others have held the directory while this node was cut off with changes of it, and are gone again: they can't be published any more, and the node ends. */
    @Test
    void whatOthersHaveChangedSinceIsNotOverwritten() throws Exception {
        clients[0].mkdir("/d");
        clients[0].write("/d/f", 0, "before".getBytes(), 0);
        clients[0].fsync("/d/f");
        ways[0].cut = true;
        clients[0].write("/d/f", 0, "LOST".getBytes(), 0);
        clients[0].write("/d/lost", 0, new byte[1], 0);
        Thread.sleep(3000);
        io.etcfs.core.fs.ClusterNode third = cluster.start("n3");
        TestClient other = new TestClient(third);
        other.write("/d/f", 0, "theirs".getBytes(), 0);
        other.write("/d/kept", 0, new byte[1], 0);
        third.leave(5 * SECOND);
        ways[0].cut = false;
        long until = System.nanoTime() + 10 * SECOND;
        while (cluster.stopped.isEmpty() && System.nanoTime() < until) {
            Thread.sleep(20);
        }
        assertEquals(1, cluster.stopped.size());
        assertEquals(true, cluster.stopped.getFirst().contains("was taken by another node"), cluster.stopped.getFirst());
        cluster.stopped.clear();
        assertArrayEquals("theirs".getBytes(), clients[1].read("/d/f"));
        assertEquals(List.of("f", "kept"), clients[1].list("/d"));
    }

    /**
     * The batch that made a directory had committed, and its node learns that only when its session has ended and another node has had the directory: the owner record
     * that comes with the answer is that node's.
     */
    @Test
    void whoLearnsLateOfABirthDoesNotTakeBackWhatOthersHaveHadSince() throws Exception {
        clients[0].write("/f", 0, new byte[1], 0);
        clients[0].fsync("/f");
        io.etcfs.core.record.Keys keys = new io.etcfs.core.record.Keys(TestCluster.NAME);
        CountDownLatch made = new CountDownLatch(1);
        CountDownLatch answer = new CountDownLatch(1);
        ways[0].hook = txn -> {
            if (!isBatch(txn)) {
                return null;
            }
            if (made.getCount() > 0) {
                if (cluster.store.commit(txn, SECOND) instanceof Outcome.Committed) {
                    made.countDown();
                }
                return new Outcome.Unknown("the answer is lost");
            }
            try {
                answer.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return cluster.store.commit(txn, SECOND);
        };
        clients[0].mkdir("/d");
        made.await();
        clients[0].write("/d/lost", 0, new byte[1], 0);
        ways[0].cut = true;
        Thread.sleep(3000);
        assertEquals(null, cluster.store.range(keys.session("n1"), null, 0, false, 0, SECOND).only());
        io.etcfs.core.fs.ClusterNode third = cluster.start("n3");
        new TestClient(third).write("/d/kept", 0, "theirs".getBytes(), 0);
        third.leave(5 * SECOND);
        answer.countDown();
        Thread.sleep(300);
        ways[0].cut = false;
        long until = System.nanoTime() + 10 * SECOND;
        while (cluster.stopped.isEmpty() && System.nanoTime() < until) {
            Thread.sleep(20);
        }
        assertEquals(1, cluster.stopped.size(), cluster.stopped::toString);
        assertEquals(true, cluster.stopped.getFirst().contains("was taken by another node"), cluster.stopped.getFirst());
        cluster.stopped.clear();
        assertEquals(List.of("kept"), clients[1].list("/d"));
        assertArrayEquals("theirs".getBytes(), clients[1].read("/d/kept"));
    }

    /** The next session ends while tokens are taken back under it: the one after that takes them. */
    @Test
    void aSessionLostWhileTakingBack() throws Exception {
        clients[0].mkdir("/d");
        clients[0].write("/d/before", 0, new byte[1], 0);
        clients[0].fsync("/d/before");
        ways[0].cut = true;
        for (int i = 0; i < 5; i++) {
            clients[0].write("/d/f" + i, 0, new byte[1], 0);
        }
        io.etcfs.core.store.Key session = new io.etcfs.core.record.Keys(TestCluster.NAME).session("n1");
        Thread.sleep(2500);
        int[] lost = {0};
        ways[0].hook = txn -> {
            boolean takesBack = txn.success().stream().anyMatch(op -> op instanceof io.etcfs.core.store.Op.Put p && p.key().toString().contains("/lock"));
            if (takesBack && lost[0] < 2) {
                lost[0]++;
                try {
                    cluster.store.revokeLease(cluster.store.range(session, null, 0, false, 0, SECOND).only().leaseId(), SECOND);
                } catch (io.etcfs.core.store.StoreUnavailableException e) {
                    throw new IllegalStateException(e);
                }
            }
            return null;
        };
        ways[0].cut = false;
        clients[0].fsync("/d/f4");
        assertEquals(2, lost[0]);
        assertEquals(List.of("before", "f0", "f1", "f2", "f3", "f4"), clients[1].list("/d"));
    }

    private static boolean putsSession(Txn txn) {
        return txn.success().stream().anyMatch(op -> op instanceof io.etcfs.core.store.Op.Put p && p.key().toString().contains("/session:"));
    }

    /** The answer to a batch comes when its session is gone already, and changes that are due wait behind it: the next session is opened all the same. */
    @Test
    void anAnswerThatComesAfterItsSessionEnded() throws Exception {
        clients[0].write("/x", 0, new byte[1], 0);
        clients[0].fsync("/x");
        CountDownLatch held = new CountDownLatch(1);
        CountDownLatch lost = new CountDownLatch(1);
        AtomicLong openNotBeforeNs = new AtomicLong();
        ways[0].hook = txn -> {
            if (putsSession(txn)) {
                openNotBeforeNs.compareAndSet(0, System.nanoTime() + SECOND);
                lost.countDown();
                return System.nanoTime() < openNotBeforeNs.get() ? new Outcome.Unknown("slow") : null;
            }
            if (isBatch(txn) && held.getCount() > 0) {
                Outcome late = cluster.store.commit(txn, SECOND);
                held.countDown();
                try {
                    lost.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
                return late;
            }
            return null;
        };
        clients[0].mkdir("/first");
        held.await();
        clients[0].mkdir("/second");
        cluster.store.revokeLease(cluster.store.range(new io.etcfs.core.record.Keys(TestCluster.NAME).session("n1"), null, 0, false, 0, SECOND).only().leaseId(), SECOND);
        lost.await();
        clients[0].mkdir("/third");
        clients[0].fsync("/x");
        assertEquals(List.of("first", "second", "third", "x"), clients[1].list("/"));
    }

    /** etcd is slow just after an outage: the new session does not end while tokens are taken back under it. */
    @Test
    void takingBackMayTakeLong() throws Exception {
        clients[0].mkdir("/d");
        clients[0].write("/d/before", 0, new byte[1], 0);
        ways[0].cut = true;
        for (int i = 0; i < 30; i++) {
            clients[0].write("/d/f" + i, 0, new byte[1], 0);
        }
        Thread.sleep(2000);
        long slowUntil = System.nanoTime() + 5 * SECOND;
        ways[0].hook = txn -> {
            boolean takesBack = txn.success().stream().anyMatch(op -> op instanceof io.etcfs.core.store.Op.Put p && p.key().toString().contains("/lock"));
            return takesBack && System.nanoTime() < slowUntil ? new Outcome.Unknown("slow") : null;
        };
        ways[0].cut = false;
        clients[0].fsync("/d/f29");
        assertEquals(31, clients[1].list("/d").size());
    }

    /** etcd can't be reached for longer than a session lives, while things are unpublished: they are published when it is back. */
    @Test
    void anOutageLosesNothing() throws Exception {
        for (int round = 0; round < 2; round++) {
            String d = "/r" + round;
            clients[0].mkdir(d);
            clients[0].write(d + "/before", 0, "before".getBytes(), 0);
            clients[1].write("/n2-" + round, 0, "n2".getBytes(), 0);
            clients[0].stat(d + "/before");
            ways[0].cut = true;
            ways[1].cut = round == 1;
            for (int i = 0; i < 30; i++) {
                clients[0].mkdir(d + "/d" + i);
                clients[0].write(d + "/d" + i + "/f", 0, ("during" + i).getBytes(), 0);
            }
            Thread.sleep(3500);
            ways[0].cut = false;
            ways[1].cut = false;
            if (round == 0) {
                // A node whose session survived waits for nobody.
                clients[0].fsync(d + "/d29/f");
            }
            assertArrayEquals("before".getBytes(), clients[1].read(d + "/before"));
            for (int i = 0; i < 30; i++) {
                assertArrayEquals(("during" + i).getBytes(), clients[1].read(d + "/d" + i + "/f"));
            }
            clients[0].write(d + "/after", 0, "after".getBytes(), 0);
            assertArrayEquals("after".getBytes(), clients[1].read(d + "/after"));
            assertEquals(List.of(), cluster.stopped);
        }
    }

    /** The shared device as a node has it that ends before it flushes: what it wrote is in the device's cache. */
    private static final class Unflushed extends ForwardingDevice {
        volatile boolean ends;

        Unflushed(BlockDevice device) {
            super(device);
        }

        @Override
        public void flush() throws DeviceException {
            if (!ends) {
                super.flush();
            }
        }
    }

    /** A node overwrites blocks in place and vanishes. What others read there, and then fsync, is there also after the device has lost its power. */
    @Test
    void whatWasReadAfterItsWriterVanishedIsDurableOnceFsyncSaysSo() throws Exception {
        HookedStore way = new HookedStore(cluster.store);
        Unflushed device = new Unflushed(cluster.device);
        TestClient writer = new TestClient(cluster.start("n3", way, device, 64L << 20));
        byte[] before = new byte[8192];
        Arrays.fill(before, (byte) 1);
        writer.mkdir("/d");
        writer.write("/d/f", 0, before, O_DIRECT);
        writer.fsync("/d/f");
        device.ends = true;
        way.cut = true;
        byte[] after = new byte[8192];
        Arrays.fill(after, (byte) 2);
        writer.write("/d/f", 0, after, O_DIRECT);
        byte[] seen = clients[1].read("/d/f");
        clients[1].fsync("/d/f");
        cluster.device.loseUnflushed();
        assertArrayEquals(seen, clients[1].read("/d/f"));
        assertArrayEquals(after, seen, "the writer's bytes were not in the cache: nothing was tried");
    }
}
