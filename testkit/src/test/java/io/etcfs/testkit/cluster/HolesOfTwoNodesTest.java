package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A hole takes several steps where it does not begin and end with a block. */
@Timeout(60)
class HolesOfTwoNodesTest {
    private static final int PUNCH_HOLE = 3;
    private static final int BYTES = 3 * 4096;

    @Test
    void aHoleIsMadeBeforeOrAfterAWriteOfTheOtherNode() throws Exception {
        Call call = new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
        TestCluster cluster = new TestCluster(256L << 20);
        try (cluster) {
            ClusterNode n1 = cluster.start("n1");
            TestClient one = new TestClient(n1);
            TestClient other = new TestClient(cluster.start("n2"));
            byte[] theirs = new byte[BYTES];
            for (byte round = 1; round <= 6; round++) {
                byte[] mine = new byte[BYTES];
                Arrays.fill(mine, (byte) (10 * round));
                Arrays.fill(theirs, (byte) (10 * round + 1));
                one.write("/f", 0, mine, 0);
                one.fsync("/f");
                CountDownLatch begun = new CountDownLatch(1);
                cluster.device.beforeRead = offset -> {
                    begun.countDown();
                    pause(100);
                };
                long ino = n1.lookup(call, 1, "f".getBytes()).ino();
                Thread hole = Thread.ofVirtual().start(() -> {
                    try {
                        n1.fallocate(call, ino, 0, 100, 2 * 4096, PUNCH_HOLE);
                    } catch (FsException e) {
                        cluster.stopped.add("fallocate: " + e);
                    }
                });
                begun.await();
                other.write("/f", 0, theirs, 0);
                hole.join();
                cluster.device.beforeRead = offset -> {};
                n1.forget(ino, 1);
                Set<Byte> seen = new TreeSet<>();
                for (byte b : Arrays.copyOfRange(other.read("/f"), 100, 100 + 2 * 4096)) {
                    seen.add(b);
                }
                assertTrue(seen.equals(Set.of((byte) 0)) || seen.equals(Set.of(theirs[0])), "round " + round + ": there is " + seen + " where the hole was made");
            }
        }
        assertEquals(List.of(), cluster.stopped);
    }

    /** Its node loses its session between two steps, and the other one takes over and changes the file. */
    @Test
    void aHoleIsNotGoneOnWithAfterOthers() throws Exception {
        byte[] theirs = new byte[BYTES];
        Arrays.fill(theirs, (byte) 'c');
        assertArrayEquals(theirs, afterAHoleThatIsOvertaken(other -> other.write("/f", 0, theirs, 0)));
    }

    @Test
    void aHoleThatIsOvertakenMakesNoFileLonger() throws Exception {
        assertArrayEquals(new byte[0], afterAHoleThatIsOvertaken(other -> other.truncate("/f", 0)));
    }

    private interface Change {
        void make(TestClient other) throws FsException;
    }

    /** What is in the file in the end. The hole begins and ends within a block: the first of them is zeroed when the session is lost, the last one is being read. */
    private static byte[] afterAHoleThatIsOvertaken(Change change) throws Exception {
        Call call = new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
        TestCluster cluster = new TestCluster(256L << 20);
        byte[] found;
        try (cluster) {
            HookedStore way = new HookedStore(cluster.store);
            ClusterNode n1 = cluster.start("n1", way);
            TestClient one = new TestClient(n1);
            TestClient other = new TestClient(cluster.start("n2"));
            byte[] mine = new byte[BYTES];
            Arrays.fill(mine, (byte) 'a');
            one.write("/f", 0, mine, 0);
            one.fsync("/f");
            long ino = n1.lookup(call, 1, "f".getBytes()).ino();
            AtomicInteger reads = new AtomicInteger();
            CountDownLatch begun = new CountDownLatch(1);
            CountDownLatch goesOn = new CountDownLatch(1);
            cluster.device.beforeRead = offset -> {
                if (reads.incrementAndGet() == 2) {
                    begun.countDown();
                    await(goesOn);
                }
            };
            Thread hole = Thread.ofVirtual().start(() -> {
                try {
                    n1.fallocate(call, ino, 0, 100, 2 * 4096, PUNCH_HOLE);
                    cluster.stopped.add("a hole that was overtaken is made");
                } catch (FsException e) {
                    assertEquals(Errno.EIO, e.errno());
                }
            });
            begun.await();
            // The first step is published.
            pause(200);
            way.cut = true;
            change.make(other);
            other.fsync("/f");
            way.cut = false;
            goesOn.countDown();
            hole.join();
            cluster.device.beforeRead = offset -> {};
            n1.forget(ino, 1);
            found = other.read("/f");
        }
        assertEquals(List.of(), cluster.stopped);
        return found;
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
