package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fault.Fault;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Super;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A device that grows is used to its new end by nodes that go on. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class GrowthTest {
    private static final int MIB = 1 << 20;
    private static final int MOST_MIB = 128;
    private static final int O_DIRECT = 040000;

    private TestCluster cluster;

    private final AtomicLong known = new AtomicLong();
    private TestClient by;
    private TestClient other;
    private boolean broken;

    @AfterEach
    void stop() {
        Fault.plant(Set.of());
        cluster.close();
        assertEquals(broken, !cluster.stopped.isEmpty(), cluster.stopped::toString);
    }

    private static void awaitFree(TestClient by, long leastMib) throws Exception {
        long until = System.nanoTime() + 20_000_000_000L;
        while (by.freeBlocks() < leastMib * 256) {
            assertTrue(System.nanoTime() < until, "free: " + by.freeBlocks());
            Thread.sleep(20);
        }
    }

    /** Ends in the middle of arenas, which have 16 MiB, and at their ends. */
    @ParameterizedTest
    @CsvSource({"24, 31, 88", "24, 32, 88", "32, 40, 48", "31, 33, 100"})
    void itIsUsedToItsNewEnd(int firstMib, int secondMib, int thirdMib) throws Exception {
        cluster = new TestCluster((long) firstMib * MIB, (long) MOST_MIB * MIB);
        ClusterNode n1 = cluster.start("n1");
        TestClient a = new TestClient(n1);
        TestClient b = new TestClient(cluster.start("n2"));
        a.mkdir("/a");
        b.mkdir("/b");
        a.mkdir("/c");
        List<String> first = MibFiles.fill(a, "/a");
        assertTrue(first.size() >= firstMib - 2, first.size() + " MiB");
        cluster.device.grow((long) secondMib * MIB);
        awaitFree(b, secondMib - firstMib);
        List<String> second = MibFiles.fill(b, "/b");
        assertTrue(first.size() + second.size() >= secondMib - 3, second.size() + " MiB");
        cluster.device.grow((long) thirdMib * MIB);
        awaitFree(a, thirdMib - secondMib);
        List<String> third = MibFiles.fill(a, "/c");
        assertTrue(first.size() + second.size() + third.size() >= thirdMib - 4, third.size() + " MiB");
        for (TestClient reader : List.of(a, b)) {
            for (List<String> paths : List.of(first, second, third)) {
                MibFiles.check(reader, paths);
            }
        }
    }

    /** The arena at the old end is in nobody's hands. */
    @Test
    void anArenaThatNobodyOwnsGrowsWithIt() throws Exception {
        cluster = new TestCluster(24L * MIB, (long) MOST_MIB * MIB);
        ClusterNode n1 = cluster.start("n1");
        TestClient a = new TestClient(n1);
        a.mkdir("/a");
        List<String> first = MibFiles.fill(a, "/a");
        n1.leave(5_000_000_000L);
        TestClient b = new TestClient(cluster.start("n2"));
        cluster.device.grow(30L * MIB);
        awaitFree(b, 6);
        b.mkdir("/b");
        List<String> second = MibFiles.fill(b, "/b");
        assertTrue(first.size() + second.size() >= 27, second.size() + " MiB");
        MibFiles.check(b, first);
    }

    /**
     * Node 1 has the arena at the old end and sees a first new size, and etcd takes its time. Meanwhile it gives the arena to node 2, which uses the device to that size and to a
     * second one, and has it again.
     */
    @Test
    void aSizeThatWasSeenLongAgoIsNotRecorded() throws Exception {
        cluster = new TestCluster(24L * MIB, (long) MOST_MIB * MIB);
        Keys keys = new Keys(TestCluster.NAME);
        HookedStore way = new HookedStore(cluster.store);
        TestClient a = new TestClient(cluster.start("n1", way));
        TestClient b = new TestClient(cluster.start("n2"));
        a.mkdir("/a");
        b.mkdir("/b");
        b.write("/b/first", 0, new byte[4096], O_DIRECT);
        a.write("/a/first", 0, new byte[4096], O_DIRECT);
        CountDownLatch seen = new CountDownLatch(1);
        CountDownLatch answer = new CountDownLatch(1);
        way.afterRange = key -> {
            if (key.equals(keys.arenaAllocLog()) && seen.getCount() > 0) {
                seen.countDown();
                try {
                    answer.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
        };
        cluster.device.grow(50L * MIB);
        assertTrue(seen.await(20, TimeUnit.SECONDS));
        List<String> first = MibFiles.fill(b, "/b");
        assertTrue(first.size() >= 46, first.size() + " MiB");
        cluster.device.grow(60L * MIB);
        awaitFree(b, 9);
        // Those are in that arena.
        for (int i = 0; i < 6; i++) {
            b.unlink(first.remove(18));
        }
        List<String> second = MibFiles.fill(a, "/a");
        assertTrue(second.size() >= 14, second.size() + " MiB");
        answer.countDown();
        Thread.sleep(2_000);
        assertEquals(60L * MIB, Super.parseFrom(cluster.store.range(keys.superblock(), null, 0, false, 0, 1_000_000_000L).only().value()).getDeviceSize());
        MibFiles.check(b, second);
        MibFiles.check(a, first);
    }

    /** Another node, whose machine does not know of the new size yet, claims the arena at the old end just then: its free count has to stay right. */
    @Test
    void anArenaThatIsClaimedMeanwhileIsLeftToItsOwner() throws Exception {
        growWhileTheLastArenaIsClaimed();
        assertTrue(other.freeBlocks() < 24 * 256, "not grown while the owner's machine does not know");
        known.set(30L * MIB);
        awaitFree(by, 29);
    }

    @Test
    void toGrowItAllTheSameIsSeen() throws Exception {
        Fault.plant(Set.of(Fault.GROWN_AS_READ));
        broken = true;
        growWhileTheLastArenaIsClaimed();
    }

    private void growWhileTheLastArenaIsClaimed() throws Exception {
        cluster = new TestCluster(24L * MIB, (long) MOST_MIB * MIB);
        HookedStore way = new HookedStore(cluster.store);
        TestClient a = new TestClient(cluster.start("n1", way));
        known.set(24L * MIB);
        TestClient b = new TestClient(cluster.start("n2", cluster.store, new ForwardingDevice(cluster.device) {
            @Override
            public long sizeBytes() {
                return known.get();
            }
        }, 64L << 20));
        a.mkdir("/a");
        b.mkdir("/b");
        a.write("/a/f", 0, new byte[4096], O_DIRECT);
        CountDownLatch claimed = new CountDownLatch(1);
        way.afterRange = key -> {
            if (key.equals(new Keys(TestCluster.NAME).arenaAllocLog()) && claimed.getCount() > 0) {
                try {
                    b.write("/b/f", 0, new byte[4096], O_DIRECT);
                } catch (FsException e) {
                    throw new IllegalStateException(e);
                }
                claimed.countDown();
            }
        };
        cluster.device.grow(30L * MIB);
        assertTrue(claimed.await(20, TimeUnit.SECONDS));
        Thread.sleep(2_500);
        by = a;
        other = b;
    }
}
