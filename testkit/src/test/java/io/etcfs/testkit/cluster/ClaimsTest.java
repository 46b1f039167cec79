package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Counter;
import io.etcfs.core.space.InodeNumbers;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What nodes get to write with: arenas and inode numbers, by their keys. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ClaimsTest {
    private static final long SECOND = 1_000_000_000L;
    private static final byte[] DATA = new byte[100_000];

    private final Keys keys = new Keys(TestCluster.NAME);
    private final TestCluster cluster = new TestCluster(128L << 20);

    @AfterEach
    void stop() {
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private long counter(Key key) throws Exception {
        return Counter.parseFrom(cluster.store.range(key, null, 0, false, 0, SECOND).only().value()).getNext();
    }

    private List<Long> arenasOf(String node) throws Exception {
        List<Long> ids = new ArrayList<>();
        for (KeyValue kv : cluster.store.range(keys.arenasOf(node), keys.arenasOf(node).prefixEnd(), 0, false, 0, SECOND).keyValues()) {
            for (long id = 0; id < 8; id++) {
                if (kv.key().equals(keys.arena(node, id))) {
                    ids.add(id);
                }
            }
        }
        return ids;
    }

    @Test
    void arenasAreClaimedWhenTheyAreNeededFirstFreeOnesThenInOrder() throws Exception {
        List<String> names = List.of("n1", "n2", "n3", "n4");
        List<TestClient> clients = new ArrayList<>();
        for (String name : names) {
            clients.add(new TestClient(cluster.start(name)));
        }
        for (int i = 0; i < names.size(); i++) {
            clients.get(i).mkdir("/" + names.get(i));
            assertEquals(List.of(), arenasOf(names.get(i)), "nothing was written yet");
        }
        assertEquals(0, counter(keys.arenaAllocLog()));
        List<CompletableFuture<Void>> writing = new ArrayList<>();
        for (int i = 0; i < names.size(); i++) {
            TestClient client = clients.get(i);
            String file = "/" + names.get(i) + "/f";
            writing.add(CompletableFuture.runAsync(() -> {
                try {
                    client.write(file, 0, DATA, 0);
                    client.fsync(file);
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            }, r -> Thread.ofVirtual().start(r)));
        }
        for (CompletableFuture<Void> each : writing) {
            each.get();
        }
        List<Long> claimed = new ArrayList<>();
        for (String name : names) {
            assertEquals(1, arenasOf(name).size());
            claimed.addAll(arenasOf(name));
        }
        assertEquals(LongStream.range(0, 4).boxed().toList(), claimed.stream().sorted().toList());
        assertEquals(4, counter(keys.arenaAllocLog()));
        // What a node gave back comes before what nobody had.
        long given = arenasOf("n2").getFirst();
        assertTrue(cluster.node(1).leave(5 * SECOND));
        TestClient fifth = new TestClient(cluster.start("n5"));
        assertEquals(List.of(), arenasOf("n5"));
        fifth.write("/g", 0, DATA, 0);
        fifth.fsync("/g");
        assertEquals(List.of(given), arenasOf("n5"));
        assertEquals(4, counter(keys.arenaAllocLog()));
    }

    @Test
    void inodeNumbersComeInBlocksAndTheRestIsLostWithTheNode() throws Exception {
        assertEquals(InodeNumbers.FLOOR, counter(keys.inodeAllocCounter()));
        ClusterNode first = cluster.start("n1");
        TestClient a = new TestClient(first);
        a.mkdir("/a");
        assertEquals(InodeNumbers.FLOOR, a.stat("/a").ino());
        assertEquals(InodeNumbers.FLOOR + InodeNumbers.BLOCK, counter(keys.inodeAllocCounter()));
        TestClient b = new TestClient(cluster.start("n2"));
        b.mkdir("/b");
        assertEquals(InodeNumbers.FLOOR + InodeNumbers.BLOCK, b.stat("/b").ino());
        assertTrue(first.leave(5 * SECOND));
        TestClient again = new TestClient(cluster.start("n1"));
        again.mkdir("/c");
        assertEquals(InodeNumbers.FLOOR + 2 * InodeNumbers.BLOCK, again.stat("/c").ino());
        assertEquals(InodeNumbers.FLOOR + 3 * InodeNumbers.BLOCK, counter(keys.inodeAllocCounter()));
    }
}
