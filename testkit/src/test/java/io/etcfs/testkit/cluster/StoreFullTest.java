package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fault.Fault;
import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import io.etcfs.testkit.store.MemoryStore;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** etcd has little room, or none: the rows "etcd nearly full" and "etcd full" of the table "Operation and error" in docs/SEMANTICS.md. */
@Timeout(60)
class StoreFullTest {
    private static final long SECOND = 1_000_000_000L;
    private static final long QUOTA = 2L << 30;
    private static final Set<String> NEW = Set.of("symlink", "mknod", "mkdir", "rename with whiteout", "link", "tmpfile", "create", "write of new blocks", "write of new blocks, O_DIRECT",
            "write at the end", "setxattr", "setxattr of a large one", "fallocate");

    private TestCluster cluster;
    private MemoryStore etcd;
    private ClusterNode n1;
    private ClusterNode n2;
    private EachOperation each;
    private int probes;

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(64L << 20);
        etcd = (MemoryStore) cluster.store;
        // Half full, so that it is looked at every second.
        etcd.database(QUOTA / 2, QUOTA / 2, false);
        cluster.requestDeadlineNs = 5 * SECOND;
        n1 = cluster.start("n1");
        n2 = cluster.start("n2");
        EachOperation.prepare(n1);
        each = new EachOperation(n1);
        each.look();
    }

    @AfterEach
    void stop() {
        etcd.database(0, 0, false);
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private static Call call() {
        return EachOperation.call();
    }

    /** A name after the other is tried until one is refused, or is not refused any more. */
    private void untilRefused(boolean refused) throws Exception {
        long end = System.nanoTime() + 10 * SECOND;
        while (true) {
            try {
                n1.forget(n1.mknod(call(), 1, EachOperation.bytes("probe-" + ++probes), 0100600, 0, 0).ino(), 1);
                if (!refused) {
                    return;
                }
            } catch (FsException e) {
                assertEquals(Errno.ENOSPC, e.errno());
                if (refused) {
                    return;
                }
            }
            assertTrue(System.nanoTime() < end);
            Thread.sleep(20);
        }
    }

    @Test
    void whatIsNewIsRefusedAndAllElseGoesOn() throws Exception {
        etcd.database(QUOTA / 100 * 85, QUOTA / 100 * 75, false);
        untilRefused(true);
        Map<String, Errno> refused = new TreeMap<>();
        for (String name : NEW) {
            refused.put(name, assertThrows(FsException.class, () -> each.all().get(name).run(call()), name).errno());
        }
        assertEquals(Set.of(Errno.ENOSPC), Set.copyOf(refused.values()), refused.toString());
        for (Map.Entry<String, EachOperation.Body> o : each.all().entrySet()) {
            if (!NEW.contains(o.getKey())) {
                o.getValue().run(call());
            }
        }
        n1.sync(SECOND);
        etcd.database(QUOTA / 2, QUOTA / 2, false);
        untilRefused(false);
        for (String name : NEW) {
            if (!name.equals("rename with whiteout") && !name.equals("link")) {
                each.all().get(name).run(call());
            }
        }
    }

    /** The file has grown and little of it is in use: it is made smaller, before something is refused and after. */
    @ParameterizedTest
    @ValueSource(ints = {92, 99})
    void aFileThatHasGrownIsDefragmented(int percent) throws Exception {
        etcd.database(QUOTA / 100 * percent, QUOTA / 64, false);
        long end = System.nanoTime() + 10 * SECOND;
        while (etcd.status(SECOND).dbSizeBytes() != QUOTA / 64) {
            assertTrue(System.nanoTime() < end, "the file stays as it is");
            Thread.sleep(20);
        }
        untilRefused(false);
    }

    /** Without that it is never over, whatever is removed. */
    @Test
    void withoutDefragmentationThatIsSeen() throws Exception {
        Fault.plant(Set.of(Fault.ETCD_NOT_DEFRAGMENTED));
        try {
            etcd.database(QUOTA / 100 * 99, QUOTA / 64, false);
            untilRefused(true);
            Thread.sleep(3000);
            untilRefused(true);
            assertEquals(QUOTA / 100 * 99, etcd.status(SECOND).dbSizeBytes());
        } finally {
            Fault.plant(Set.of());
        }
    }

    /** Nothing that puts a key goes through, batches and new tokens included. */
    @Test
    void withTheAlarmChangesFailAndReadsGoOn() throws Exception {
        TestClient here = new TestClient(n1);
        TestClient other = new TestClient(n2);
        here.write("/before", 0, new byte[100], 0);
        here.mkdir("/directory");
        long directory = n2.lookup(call(), 1, EachOperation.bytes("directory")).ino();
        here.mkdir("/directory/mine");
        n1.sync(SECOND);
        etcd.database(QUOTA, QUOTA, true);
        // Accepted, as nobody knows of the alarm yet.
        here.write("/directory/acknowledged", 0, new byte[5000], 0);
        untilRefused(true);
        Map<String, Errno> answers = each.runAll();
        for (String name : NEW) {
            assertEquals(Errno.ENOSPC, answers.get(name), name);
        }
        for (String name : List.of("lookup", "lookup of a missing name", "getattr", "getattr by handle", "readlink", "open", "read", "flush", "opendir", "readdir", "statfs", "getxattr",
                "getxattr of a large one", "listxattr", "lseek")) {
            assertTrue(answers.containsKey(name) && answers.get(name) == null, name + ": " + answers.get(name));
        }
        for (String name : List.of("fsync", "fsyncdir")) {
            assertEquals(Errno.ENOSPC, answers.get(name), name);
        }
        answers.forEach((name, errno) -> assertTrue(errno == null || errno == Errno.ENOSPC || name.equals("lock") && errno == Errno.ETIMEDOUT || name.equals("getlk") && errno == Errno.ETIMEDOUT,
                name + ": " + errno));
        // What needs a token that is elsewhere: a change fails soon, and a read as in an outage.
        assertEquals(Errno.ENOSPC, assertThrows(FsException.class, () -> n2.mkdir(call(), directory, EachOperation.bytes("from-elsewhere"), 0700, 0)).errno());
        assertEquals(Errno.ETIMEDOUT, assertThrows(FsException.class, () -> n2.lookup(call(), directory, EachOperation.bytes("mine"))).errno());
        etcd.database(QUOTA / 2, QUOTA / 2, false);
        untilRefused(false);
        n1.sync(5 * SECOND);
        assertEquals(5000, other.stat("/directory/acknowledged").size());
        assertEquals(100, other.stat("/before").size());
    }
}
