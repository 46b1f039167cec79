package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.fs.Operations;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
class TwoNodesTest {
    private TestCluster cluster;
    private ClusterNode n1;
    private TestClient a;
    private TestClient b;

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(256L << 20);
        n1 = cluster.start("n1");
        a = new TestClient(n1);
        b = new TestClient(cluster.start("n2"));
    }

    @AfterEach
    void stop() {
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private static byte[] random(Random random, int n) {
        byte[] bytes = new byte[n];
        random.nextBytes(bytes);
        return bytes;
    }

    @Test
    void whatOneNodeDoesTheOtherSees() throws Exception {
        a.mkdir("/d");
        a.write("/d/f", 0, "hello".getBytes(), 0);
        assertArrayEquals("hello".getBytes(), b.read("/d/f"));
        b.write("/d/f", 5, " world".getBytes(), 0);
        assertArrayEquals("hello world".getBytes(), a.read("/d/f"));
        assertEquals(List.of("f"), b.list("/d"));
        b.rename("/d/f", "/g");
        assertEquals(List.of(), a.list("/d"));
        assertArrayEquals("hello world".getBytes(), a.read("/g"));
        a.unlink("/g");
        assertEquals(Errno.ENOENT, assertThrows(FsException.class, () -> b.stat("/g")).errno());
        b.rmdir("/d");
        assertEquals(Errno.ENOENT, assertThrows(FsException.class, () -> a.stat("/d")).errno());
    }

    @Test
    void freedSpaceComesBack() throws Exception {
        Random random = new Random(3);
        long before = a.freeBlocks();
        for (int i = 0; i < 20; i++) {
            a.write("/f" + i, 0, random(random, 300_000), 0);
        }
        a.fsync("/f0");
        Thread.sleep(100);
        assertEquals(before - 20 * 74, a.freeBlocks());
        for (int i = 0; i < 20; i++) {
            (i % 2 == 0 ? a : b).unlink("/f" + i);
        }
        long deadline = System.nanoTime() + 5_000_000_000L;
        while (b.freeBlocks() != before && System.nanoTime() < deadline) {
            Thread.sleep(50);
        }
        assertEquals(before, b.freeBlocks());
    }

    /** Both nodes look, upgrade and hand on at once: an upgrade on its way must not meet a handover of what it upgrades. */
    @Test
    void upgradesAndHandoversDoNotMeet() throws Exception {
        a.mkdir("/d");
        List<Thread> threads = new ArrayList<>();
        List<Throwable> failures = new java.util.concurrent.CopyOnWriteArrayList<>();
        for (int t = 0; t < 6; t++) {
            TestClient c = t % 2 == 0 ? a : b;
            int id = t;
            threads.add(Thread.ofVirtual().start(() -> {
                try {
                    for (int i = 0; i < 120; i++) {
                        c.list("/d");
                        c.write("/d/f" + id, i, new byte[] {(byte) i}, 0);
                        if (i % 10 == 9) {
                            c.unlink("/d/f" + id);
                        }
                    }
                } catch (Throwable e) {
                    failures.add(e);
                }
            }));
        }
        for (Thread t : threads) {
            t.join();
        }
        assertEquals(List.of(), failures);
    }

    /** Between a lookup and the open of what it found the name can go: a local filesystem opens the file all the same. */
    @Test
    void aFileThatWasJustLookedUpCanBeOpenedAfterItsNameWent() throws Exception {
        Call call = new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
        long before = a.freeBlocks();
        a.write("/old", 0, "old bytes".getBytes(), 0);
        Operations.Entry found = n1.lookup(call, 1, "old".getBytes());
        a.write("/new", 0, "new bytes".getBytes(), 0);
        a.rename("/new", "/old");
        Operations.Opened opened = n1.open(call, found.ino(), 0, false);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment read = n1.read(call, found.ino(), opened.handle(), 0, 100, 0, arena.allocate(100 + 8192, 4096));
            assertArrayEquals("old bytes".getBytes(), read.toArray(ValueLayout.JAVA_BYTE));
        }
        assertEquals(0, n1.getattr(call, found.ino(), opened.handle()).attributes().nlink());
        n1.release(call, found.ino(), opened.handle());
        n1.forget(found.ino(), 1);
        a.unlink("/old");
        long deadline = System.nanoTime() + 5_000_000_000L;
        while (a.freeBlocks() != before && System.nanoTime() < deadline) {
            Thread.sleep(50);
        }
        assertEquals(before, a.freeBlocks());
    }

    /** The same when the other node takes the name away, and with it the token. */
    @Test
    void aFileThatWasJustLookedUpCanBeOpenedAfterTheOtherNodeRemovedIt() throws Exception {
        Call call = new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
        long before = a.freeBlocks();
        a.write("/f", 0, "bytes".getBytes(), 0);
        Operations.Entry found = n1.lookup(call, 1, "f".getBytes());
        b.unlink("/f");
        Operations.Opened opened = n1.open(call, found.ino(), 0, false);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment read = n1.read(call, found.ino(), opened.handle(), 0, 100, 0, arena.allocate(100 + 8192, 4096));
            assertArrayEquals("bytes".getBytes(), read.toArray(ValueLayout.JAVA_BYTE));
        }
        n1.release(call, found.ino(), opened.handle());
        n1.forget(found.ino(), 1);
        long deadline = System.nanoTime() + 10_000_000_000L;
        while (a.freeBlocks() != before && System.nanoTime() < deadline) {
            Thread.sleep(50);
        }
        assertEquals(before, a.freeBlocks());
    }

    /** Random operations, each on a random node, against a model. */
    @Test
    void alternatingOperationsAgreeWithAModel() throws Exception {
        for (int seed = 0; seed < 6; seed++) {
            Random random = new Random(seed);
            String top = "/s" + seed;
            a.mkdir(top);
            Map<String, byte[]> model = new TreeMap<>();
            for (int step = 0; step < 250; step++) {
                TestClient c = random.nextInt(4) == 0 ? b : a;
                String name = top + "/f" + random.nextInt(6);
                String other = top + "/f" + random.nextInt(6);
                String what = "seed " + seed + " step " + step + " " + name;
                switch (random.nextInt(7)) {
                    case 0, 1 -> {
                        int offset = random.nextInt(3) == 0 ? 0 : random.nextInt(150_000);
                        byte[] data = random(random, 1 + random.nextInt(random.nextBoolean() ? 5000 : 100_000));
                        int flags = random.nextInt(4) == 0 ? 040000 : 0;
                        c.write(name, offset, data, flags);
                        byte[] old = model.getOrDefault(name, new byte[0]);
                        byte[] now = java.util.Arrays.copyOf(old, Math.max(old.length, offset + data.length));
                        System.arraycopy(data, 0, now, offset, data.length);
                        model.put(name, now);
                    }
                    case 2 -> {
                        if (model.containsKey(name)) {
                            int size = random.nextInt(200_000);
                            c.truncate(name, size);
                            model.put(name, java.util.Arrays.copyOf(model.get(name), size));
                        }
                    }
                    case 3 -> {
                        if (model.containsKey(name)) {
                            c.unlink(name);
                            model.remove(name);
                        }
                    }
                    case 4 -> {
                        if (model.containsKey(name)) {
                            c.rename(name, other);
                            model.put(other, model.get(name));
                            if (!other.equals(name)) {
                                model.remove(name);
                            }
                        }
                    }
                    case 5 -> {
                        if (model.containsKey(name)) {
                            int from = random.nextInt(100_000);
                            int length = 1 + random.nextInt(50_000);
                            boolean punch = random.nextBoolean();
                            c.fallocate(name, from, length, punch ? 3 : 1);
                            byte[] now = model.get(name).clone();
                            if (punch && from < now.length) {
                                java.util.Arrays.fill(now, from, Math.min(now.length, from + length), (byte) 0);
                            }
                            model.put(name, now);
                        }
                    }
                    default -> {
                        if (model.containsKey(name)) {
                            assertArrayEquals(model.get(name), c.read(name), what);
                        }
                    }
                }
            }
            List<String> names = new ArrayList<>();
            model.keySet().forEach(n -> names.add(n.substring(top.length() + 1)));
            assertEquals(names, b.list(top));
            for (String n : model.keySet()) {
                assertArrayEquals(model.get(n), a.read(n), n);
                assertArrayEquals(model.get(n), b.read(n), n);
            }
        }
    }
}
