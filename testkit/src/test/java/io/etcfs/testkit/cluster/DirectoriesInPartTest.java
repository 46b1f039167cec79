package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fault.Fault;
import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.fs.Operations;
import io.etcfs.core.record.Keys;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.Txn;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A directory with more names than its token brings: nobody sees a difference, but for the time that it takes. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class DirectoriesInPartTest {
    private static final long SECOND = 1_000_000_000L;
    private static final int NAMES = 5_000;
    /** Too little for the directory as a whole. */
    private static final long BOUND_BYTES = 1 << 20;

    private final Keys keys = new Keys(TestCluster.NAME);
    private TestCluster cluster;
    private ClusterNode n1;
    private ClusterNode n2;
    private HookedStore way;
    private TestClient a;
    private TestClient b;
    private long dir;

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(64L << 20);
        n1 = cluster.start("n1");
        a = new TestClient(n1);
        a.mkdir("/d");
        dir = n1.lookup(call(), 1, bytes("d")).ino();
        for (int i = 0; i < NAMES; i++) {
            n1.forget(n1.mknod(call(), dir, bytes("f" + i), 0100644, 0, 0).ino(), 1);
        }
        way = new HookedStore(cluster.store);
        n2 = cluster.start("n2", way, BOUND_BYTES);
        b = new TestClient(n2);
        n2.lookup(call(), 1, bytes("d"));
    }

    @AfterEach
    void stop() {
        Fault.plant(Set.of());
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private static Call call() {
        return new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
    }

    private static byte[] bytes(String name) {
        return name.getBytes(StandardCharsets.UTF_8);
    }

    /** A piece of a listing, as it comes with room for so many names. */
    private record Piece(List<String> names, List<Long> offsets, int withAttributes) {
        long end() {
            return offsets.getLast();
        }
    }

    private Piece piece(ClusterNode node, long offset, int room, boolean plus) throws FsException {
        Piece p = new Piece(new ArrayList<>(), new ArrayList<>(), 0);
        int[] attributes = {0};
        List<Long> told = new ArrayList<>();
        node.readdir(call(), dir, 0, offset, plus, new Operations.DirectorySink() {
            @Override
            public boolean hasRoomFor(int nameLength) {
                return p.names.size() < room;
            }

            @Override
            public void add(byte[] name, long ino, int type, long cookie, Operations.Entry entry) {
                p.names.add(new String(name, StandardCharsets.UTF_8));
                p.offsets.add(cookie);
                if (entry != null) {
                    attributes[0]++;
                    told.add(ino);
                }
            }
        });
        told.forEach(i -> node.forget(i, 1));
        return new Piece(p.names, p.offsets, attributes[0]);
    }

    /** All of it from there on, piece by piece; no name comes twice. */
    private List<String> list(ClusterNode node, long offset) throws FsException {
        List<String> all = new ArrayList<>();
        for (Piece p = piece(node, offset, 300, false); !p.names.isEmpty(); p = piece(node, p.end(), 300, false)) {
            all.addAll(p.names);
        }
        assertEquals(all.size(), new HashSet<>(all).size());
        all.removeAll(List.of(".", ".."));
        return all;
    }

    private static Errno refused(org.junit.jupiter.api.function.Executable body) {
        return assertThrows(FsException.class, body).errno();
    }

    @Test
    void theFirstAnswerNeedsNoMoreThanAPage() throws Exception {
        AtomicInteger ranges = new AtomicInteger();
        way.afterRange = key -> ranges.incrementAndGet();
        way.rangeDelayMs = 300;
        assertEquals(1, b.stat("/d/f" + (NAMES - 1)).nlink());
        assertEquals(300, piece(n2, 0, 300, false).names.size());
        assertTrue(n2.status().cachedBytes() < BOUND_BYTES);
        way.rangeDelayMs = 0;
    }

    @Test
    void namesAreFoundMadeAndRemovedAndListedAtOnce() throws Exception {
        Set<String> names = new HashSet<>(list(n1, 0));
        for (int i = 0; i < 60; i++) {
            String old = "f" + i * 83;
            assertEquals(1, b.stat("/d/" + old).nlink());
            assertEquals(Errno.ENOENT, refused(() -> b.stat("/d/no" + old)));
            assertEquals(Errno.EEXIST, refused(() -> n2.mknod(call(), dir, bytes(old), 0100644, 0, 0)));
            n2.forget(n2.mknod(call(), dir, bytes("g" + i), 0100644, 0, 0).ino(), 1);
            b.unlink("/d/" + old);
            b.rename("/d/f" + (i * 83 + 1), "/d/h" + i);
            b.link("/d/h" + i, "/d/l" + i);
            names.removeAll(List.of(old, "f" + (i * 83 + 1)));
            names.addAll(List.of("g" + i, "h" + i, "l" + i));
            assertEquals(Errno.ENOENT, refused(() -> b.stat("/d/" + old)));
            // Nothing of it has to be published.
            if (i % 20 == 0) {
                assertEquals(names, new HashSet<>(list(n2, 0)));
            }
        }
        assertEquals(names, new HashSet<>(list(n2, 0)));
        assertEquals(names, new HashSet<>(list(n1, 0)));
        assertEquals(2, a.stat("/d/l7").nlink());
    }

    @Test
    void aListingGoesOnWhereItWasWhileBothChangeTheDirectory() throws Exception {
        List<String> order = list(n1, 0);
        Set<String> stay = new HashSet<>(order);
        for (int i = 0; i < 400; i++) {
            stay.remove("f" + i * 12);
        }
        List<String> seen = new ArrayList<>();
        int changes = 0;
        long offset = 0;
        for (Piece p = piece(n2, 0, 150, false); !p.names.isEmpty(); p = piece(n2, offset, 150, false)) {
            seen.addAll(p.names);
            offset = p.end();
            for (int k = 0; k < 5; k++, changes++) {
                (changes % 2 == 0 ? a : b).unlink("/d/f" + changes * 12);
                n1.forget(n1.mknod(call(), dir, bytes("new" + changes), 0100644, 0, 0).ino(), 1);
            }
            // A position that was told stays what it is: the names behind it come again.
            if (p.names.size() > 10) {
                List<String> again = piece(n2, p.offsets.get(4), 5, false).names;
                List<String> were = new ArrayList<>(p.names.subList(5, 10));
                again.retainAll(stay);
                were.retainAll(stay);
                assertTrue(were.containsAll(again) || again.containsAll(were), () -> again + " is not " + were);
            }
        }
        assertEquals(seen.size(), new HashSet<>(seen).size());
        assertTrue(seen.containsAll(stay));
        List<String> stayed = new ArrayList<>(seen);
        stayed.retainAll(stay);
        order.retainAll(stay);
        assertEquals(order, stayed);
    }

    @Test
    void aListingWithAttributesHasThem() throws Exception {
        int names = 0;
        int attributes = 0;
        for (Piece p = piece(n2, 0, 500, true); !p.names.isEmpty(); p = piece(n2, p.end(), 500, true)) {
            names += p.names.size();
            attributes += p.withAttributes;
        }
        assertEquals(NAMES + 2, names);
        assertEquals(NAMES, attributes);
    }

    /** Both nodes hold no more than they may, the maker too, while the token stays. */
    @Test
    void whatIsCachedIsBounded() throws Exception {
        for (int i = 0; i < 6_000; i++) {
            n2.forget(n2.mknod(call(), dir, bytes("g" + i), 0100644, 0, 0).ino(), 1);
        }
        eventually("it fits", () -> n2.status().cachedBytes() <= BOUND_BYTES);
        assertEquals(NAMES + 6_000, list(n2, 0).size());
        assertEquals(1, b.stat("/d/g4711").nlink());
        eventually("it fits", () -> n2.status().cachedBytes() <= BOUND_BYTES);
    }

    /** Each name that was looked for in vain is known not to be there, and that is bounded, too. */
    @Test
    void whatIsKnownToBeMissingIsBounded() throws Exception {
        list(n2, 0);
        eventually("it fits", () -> n2.status().cachedBytes() <= BOUND_BYTES);
        for (int i = 0; i < 15_000; i++) {
            assertNull(n2.lookup(call(), dir, bytes("no" + i)).attributes());
        }
        // In use all the time: not given up as a whole.
        eventually("it fits", () -> n2.lookup(call(), dir, bytes("no")).attributes() == null && n2.status().cachedBytes() <= BOUND_BYTES);
        assertEquals(NAMES, list(n2, 0).size());
    }

    /** A member of etcd that is being defragmented, or says nothing, is waited for; what is cached goes meanwhile. */
    @Test
    void whatIsCachedIsBoundedWhileEtcdIsSeenTo() throws Exception {
        CountDownLatch asked = new CountDownLatch(1);
        CountDownLatch answer = new CountDownLatch(1);
        way.beforeStatus = () -> {
            asked.countDown();
            await(answer);
        };
        try {
            assertTrue(asked.await(20, TimeUnit.SECONDS));
            for (int i = 0; i < NAMES; i++) {
                assertEquals(1, n2.lookup(call(), dir, bytes("f" + i)).attributes().nlink());
            }
            eventually("it fits", () -> n2.status().cachedBytes() <= BOUND_BYTES);
        } finally {
            answer.countDown();
        }
    }

    /** Whatever is mounted there, or has it as its working directory, is lost when the kernel drops the name of a directory instead of asking again. */
    @Test
    void theNameOfADirectoryIsOnlyExpiredThoughItIsNotCachedAnyMore() throws Exception {
        for (int i = 0; i < 20; i++) {
            a.mkdir("/d/sub" + i);
        }
        // Nothing is granted for longer than the token has been held.
        assertEquals(2 + 20, b.stat("/d").nlink());
        Thread.sleep(2_000);
        Map<String, Boolean> dropped = new ConcurrentHashMap<>();
        n2.attachKernel(new ForgettingKernel() {
            @Override
            public void invalidateEntry(long parentIno, byte[] name, boolean expireOnly, Runnable done) {
                dropped.put(new String(name, StandardCharsets.UTF_8), expireOnly);
                done.run();
            }
        });
        for (int i = 0; i < 20; i++) {
            Call asking = call();
            assertTrue(n2.lookup(asking, dir, bytes("sub" + i)).entryValidNs() > 0);
            n2.replied(asking);
        }
        list(n2, 0);
        // While the kernel believes anything of the directory it is told of all names.
        eventually("a part is dropped", () -> {
            Call asking = call();
            assertTrue(n2.getattr(asking, dir, -1).validNs() > 0);
            n2.replied(asking);
            return n2.status().cachedBytes() <= BOUND_BYTES;
        });
        a.mkdir("/d/another");
        assertEquals(2 + 21, b.stat("/d").nlink());
        assertEquals(20, dropped.size());
        assertFalse(dropped.containsValue(false), () -> dropped.toString());
    }

    @Test
    void onlyAnEmptyDirectoryIsRemoved() throws Exception {
        a.mkdir("/e");
        assertEquals(Errno.ENOTEMPTY, refused(() -> b.rmdir("/d")));
        assertEquals(Errno.ENOTEMPTY, refused(() -> b.rename("/e", "/d")));
        List<String> all = list(n2, 0);
        // One file in ten lives on in the domain, under names elsewhere.
        for (int i = 0; i < all.size(); i++) {
            if (i % 10 == 0) {
                b.rename("/d/" + all.get(i), "/e/" + all.get(i));
            } else {
                b.unlink("/d/" + all.get(i));
            }
            if (i == all.size() - 2) {
                assertEquals(Errno.ENOTEMPTY, refused(() -> b.rmdir("/d")));
            }
        }
        b.rmdir("/d");
        assertEquals(1, a.stat("/e/" + all.get(0)).nlink());
        for (int i = 0; i < all.size(); i += 10) {
            a.unlink("/e/" + all.get(i));
        }
        a.rmdir("/e");
        n1.sync(5 * SECOND);
        assertNull(cluster.store.range(keys.owner(dir), null, 0, false, 0, SECOND).only());
    }

    /** What is open is pinned when the token goes, also where it was taken again since with a page that does not have it. */
    @Test
    void anOpenFileOutlivesItsNameThoughItIsNotInThePage() throws Exception {
        List<Long> open = new ArrayList<>();
        List<Long> inos = new ArrayList<>();
        for (int i = 0; i < 150; i++) {
            String name = "f" + (NAMES - 1 - i * 20);
            long ino = n2.lookup(call(), dir, bytes(name)).ino();
            open.add(n2.open(call(), ino, 0, false).handle());
            inos.add(ino);
        }
        for (int round = 0; round < 3; round++) {
            a.write("/d/f0", 0, bytes("x" + round), 0);
            assertEquals(2, b.stat("/d/f0").size());
        }
        for (int i = 0; i < 150; i++) {
            a.unlink("/d/f" + (NAMES - 1 - i * 20));
        }
        for (int i = 0; i < 150; i++) {
            assertEquals(0, n2.getattr(call(), inos.get(i), open.get(i)).attributes().nlink());
            n2.release(call(), inos.get(i), open.get(i));
            n2.forget(inos.get(i), 1);
        }
        eventually("all are freed", () -> cluster.store.range(keys.orphans(), keys.orphans().prefixEnd(), 0, true, 0, SECOND).keyValues().isEmpty());
    }

    /** It was there when the page was read, and the page is taken in after it was removed. */
    @Test
    void aNameThatIsRemovedWhileItIsReadStaysRemoved() throws Exception {
        assertFalse(comesBack(false));
        Fault.plant(Set.of(Fault.DELETED_NAME_READ_BACK));
        assertTrue(comesBack(false));
    }

    /** It was there when the page was read, and the token was another node's before the page is taken in. */
    @Test
    void whatWasReadUnderAnEarlierTokenIsNotTakenIn() throws Exception {
        assertFalse(comesBack(true));
        Fault.plant(Set.of(Fault.READ_WITHOUT_TOKEN));
        assertTrue(comesBack(true));
    }

    /** What is cached is dropped while the batch that makes these names is on its way. */
    @Test
    void whatIsNotPublishedIsNotDropped() throws Exception {
        assertEquals(List.of(), lostWhenDropped("x"));
        Fault.plant(Set.of(Fault.DROPPED_UNPUBLISHED));
        assertFalse(lostWhenDropped("y").isEmpty());
    }

    private List<String> lostWhenDropped(String prefix) throws Exception {
        CountDownLatch publish = new CountDownLatch(1);
        way.hook = txn -> {
            if (txn.success().stream().anyMatch(op -> op instanceof Op.Put(Key key, byte[] value, long lease) && key.equals(keys.batch("n2")))) {
                await(publish);
            }
            return null;
        };
        try {
            List<String> made = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                made.add(prefix + i);
                n2.forget(n2.mknod(call(), dir, bytes(prefix + i), 0100644, 0, 0).ino(), 1);
            }
            for (Piece p = piece(n2, 0, 500, true); !p.names.isEmpty(); p = piece(n2, p.end(), 500, true)) {
                assertTrue(p.names.size() <= 500);
            }
            eventually("a part is dropped", () -> n2.status().cachedBytes() <= BOUND_BYTES);
            List<String> lost = new ArrayList<>();
            for (String name : made) {
                if (n2.lookup(call(), dir, bytes(name)).attributes() == null) {
                    lost.add(name);
                }
            }
            return lost;
        } finally {
            publish.countDown();
            way.hook = txn -> null;
        }
    }

    /** Whether a name is seen after it was removed, on this node or another, between the reading of a page of names ahead of a listing and its answer. */
    private boolean comesBack(boolean removedElsewhere) throws Exception {
        // The token comes with the first 2,000 names.
        a.write("/d/again", 0, bytes("x"), 0);
        List<String> names = new ArrayList<>();
        List<Long> offsets = new ArrayList<>();
        for (Piece p = piece(n1, 0, 1_000, false); !p.names.isEmpty(); p = piece(n1, p.end(), 1_000, false)) {
            names.addAll(p.names);
            offsets.addAll(p.offsets);
        }
        String victim = names.get(3_000);
        assertEquals(2, b.stat("/d").nlink());
        CountDownLatch read = new CountDownLatch(1);
        CountDownLatch answer = new CountDownLatch(1);
        way.hook = txn -> {
            if (!isPage(txn)) {
                return null;
            }
            Outcome o = cluster.store.commit(txn, SECOND);
            read.countDown();
            await(answer);
            return o;
        };
        // Nothing is asked for ahead for a moment after a read that came to nothing.
        eventually("a page is read ahead", () -> piece(n2, offsets.get(1_500), 100, false).names.size() == 100 && read.await(50, TimeUnit.MILLISECONDS));
        (removedElsewhere ? a : b).unlink("/d/" + victim);
        way.hook = txn -> null;
        assertEquals(names.subList(1, 3), piece(n2, 1, 2, false).names);
        answer.countDown();
        eventually("it is taken in or not", () -> taken(offsets, names));
        return list(n2, offsets.get(2_900)).contains(victim);
    }

    /** The page that was held up has been dealt with once the names around are known. */
    private boolean taken(List<Long> offsets, List<String> names) throws FsException {
        return !piece(n2, offsets.get(2_500), 10, false).names.isEmpty();
    }

    private boolean isPage(Txn txn) {
        Key first = keys.direntsOf(dir);
        return txn.success().size() == 1 && txn.success().getFirst() instanceof Op.Range(Key key, Key end, long limit, boolean keysOnly) && limit > 1 && end != null
                && key.compareTo(first) >= 0 && key.compareTo(first.prefixEnd()) < 0;
    }

    private static void await(CountDownLatch latch) {
        try {
            assertTrue(latch.await(30, TimeUnit.SECONDS));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private interface Condition {
        boolean holds() throws Exception;
    }

    private static void eventually(String what, Condition condition) throws Exception {
        long until = System.nanoTime() + Duration.ofSeconds(20).toNanos();
        while (!condition.holds()) {
            assertTrue(System.nanoTime() < until, what);
            Thread.sleep(20);
        }
    }
}
