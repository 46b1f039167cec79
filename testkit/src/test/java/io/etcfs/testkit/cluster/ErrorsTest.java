package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.fs.Operations;
import io.etcfs.core.record.Keys;
import io.etcfs.core.store.KeyValue;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Every operation under every fault that is not the caller's: the rows of the table "Operation and error" in docs/SEMANTICS.md. */
@Timeout(60)
class ErrorsTest {
    private static final long SECOND = 1_000_000_000L;
    private static final long DEADLINE_NS = 3 * SECOND;
    /** What a program takes for a fact about names. */
    private static final Set<Errno> ABOUT_NAMES = EnumSet.of(Errno.ENOENT, Errno.EEXIST, Errno.ENOTEMPTY, Errno.ESTALE, Errno.ENODATA, Errno.ENOTDIR, Errno.EISDIR);

    private final Keys keys = new Keys(TestCluster.NAME);
    private TestCluster cluster;
    private HookedStore way;
    private ClusterNode n1;
    private ClusterNode n2;
    private EachOperation each;
    private boolean mayStop;

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(64L << 20);
        n1 = cluster.start("n1");
        way = new HookedStore(cluster.store);
        cluster.requestDeadlineNs = DEADLINE_NS;
        n2 = cluster.start("n2", way);
        EachOperation.prepare(n1);
        each = new EachOperation(n2);
        each.look();
    }

    @AfterEach
    void stop() {
        way.cut = false;
        way.hook = txn -> null;
        cluster.close();
        assertEquals(List.of(), mayStop ? List.of() : cluster.stopped);
    }

    @Test
    void eachOperationOfThePortIsAmongThem() {
        Set<String> missing = new TreeSet<>();
        for (Method m : Operations.class.getDeclaredMethods()) {
            if (List.of(m.getExceptionTypes()).contains(FsException.class) && each.all().keySet().stream().noneMatch(name -> name.split(" ")[0].equals(m.getName()))) {
                missing.add(m.getName());
            }
        }
        assertEquals(Set.of(), missing);
    }

    @Test
    void withoutAFaultAllSucceed() throws Exception {
        // One after the other: some are about the same names.
        for (Map.Entry<String, EachOperation.Body> o : each.all().entrySet()) {
            o.getValue().run(EachOperation.call());
        }
    }

    /** Those that need no token, as what they are about is this node's alone or already done. */
    private static final Set<String> NEED_NO_TOKEN = Set.of("opendir", "flush", "fsync", "fsyncdir", "unlock", "write of a mapped page");

    @Test
    void etcdIsAwayAndTheTokenIsElsewhere() throws Exception {
        giveAway();
        way.cut = true;
        Map<String, Errno> wanted = all(Errno.ETIMEDOUT, NEED_NO_TOKEN);
        assertEquals(wanted, each.runAll());
    }

    /** The session's time runs out at once, and its tokens are as good as gone. */
    @Test
    void etcdIsAwayAndTheTokenIsHere() throws Exception {
        each.all().get("setattr mode").run(EachOperation.call());
        n2.sync(SECOND);
        way.cut = true;
        waitUntil(() -> n2.status().sessionLeftNs() == 0);
        Map<String, Errno> answers = each.runAll();
        assertNoneIsAboutNames(answers);
        Map<String, Errno> wanted = all(Errno.ETIMEDOUT, NEED_NO_TOKEN);
        assertEquals(wanted, answers);
    }

    /** As long as the time runs, work goes on in memory; what has to be published or asked for waits. */
    @Test
    void etcdGoesAwayWhileAllIsUnderWay() throws Exception {
        each.all().get("setattr mode").run(EachOperation.call());
        way.cut = true;
        assertNoneIsAboutNames(each.runAll());
    }

    @Test
    void theSessionIsLostAndComesBack() throws Exception {
        each.all().get("setattr mode").run(EachOperation.call());
        n2.sync(SECOND);
        KeyValue session = cluster.store.range(keys.session("n2"), null, 0, false, 0, SECOND).only();
        cluster.store.revokeLease(session.leaseId(), SECOND);
        Map<String, Errno> answers = each.runAll();
        // Of a rename over another name and one of that name only one is first: that is no fault.
        answers.remove("rename to elsewhere");
        answers.remove("rename over");
        Map<String, Errno> wanted = all(null, Set.of());
        wanted.remove("rename to elsewhere");
        wanted.remove("rename over");
        assertEquals(wanted, answers);
        KeyValue next = cluster.store.range(keys.session("n2"), null, 0, false, 0, SECOND).only();
        assertTrue(next.createRevision() > session.createRevision());
    }

    /** What is open here was removed by another node, after the pin of it had gone with the session: each call through the file says EIO. */
    @Test
    void aFileIsRemovedWhileTheSessionIsLost() throws Exception {
        each.all().get("setattr mode").run(EachOperation.call());
        n2.sync(SECOND);
        way.cut = true;
        waitUntil(() -> cluster.store.range(keys.session("n2"), null, 0, true, 0, SECOND).only() == null);
        TestClient other = new TestClient(n1);
        Set<String> names = each.all().keySet();
        for (String name : names) {
            other.unlink(EachOperation.DIRECTORY + "/" + name);
        }
        way.cut = false;
        waitUntil(() -> n2.status().sessionLeftNs() > 0);
        Map<String, Errno> answers = each.runAll();
        Set<String> byInode = Set.of("getattr", "getattr by handle", "setattr mode", "setattr smaller", "setattr larger", "read", "write of a part of a block", "write of a whole block",
                "write of whole blocks, O_DIRECT", "write of whole blocks, O_DSYNC", "write of new blocks", "write of new blocks, O_DIRECT", "write at the end", "setxattr",
                "setxattr of a large one", "getxattr", "getxattr of a large one", "listxattr", "removexattr", "lseek", "fallocate", "fallocate that punches a hole", "link");
        for (String name : byInode) {
            assertEquals(Errno.EIO, answers.get(name), name + ": " + answers);
        }
        for (String name : List.of("unlink", "rename", "rename over", "rename with whiteout")) {
            assertEquals(Errno.ENOENT, answers.get(name), name);
        }
        for (String name : List.of("lookup of a missing name", "mkdir", "symlink", "mknod", "create", "rmdir", "readlink", "readdir", "statfs", "flush", "fsync", "tmpfile")) {
            assertTrue(answers.containsKey(name) && answers.get(name) == null, name + ": " + answers.get(name));
        }
    }

    @Test
    void theNodeHasStopped() throws Exception {
        mayStop = true;
        way.hook = txn -> {
            throw new IllegalStateException("a fault of the node");
        };
        assertEquals(Errno.EIO, assertThrows(FsException.class, () -> each.all().get("mkdir").run(EachOperation.call())).errno());
        waitUntil(() -> !cluster.stopped.isEmpty());
        Map<String, Errno> wanted = all(Errno.EIO, Set.of());
        assertEquals(wanted, each.runAll());
    }

    @Test
    void namesThatAreTooLong() {
        byte[] name = new byte[256];
        byte[] good = EachOperation.bytes("x");
        long dir = 1;
        Map<String, EachOperation.Body> calls = new TreeMap<>();
        calls.put("lookup", c -> n2.lookup(c, dir, name));
        calls.put("symlink", c -> n2.symlink(c, dir, name, good));
        calls.put("symlink to", c -> n2.symlink(c, dir, good, new byte[4096]));
        calls.put("mknod", c -> n2.mknod(c, dir, name, 0100600, 0, 0));
        calls.put("mkdir", c -> n2.mkdir(c, dir, name, 0700, 0));
        calls.put("unlink", c -> n2.unlink(c, dir, name));
        calls.put("rmdir", c -> n2.rmdir(c, dir, name));
        calls.put("rename", c -> n2.rename(c, dir, name, dir, good, 0));
        calls.put("rename to", c -> n2.rename(c, dir, good, dir, name, 0));
        calls.put("link", c -> n2.link(c, dir, dir, name));
        calls.put("create", c -> n2.create(c, dir, name, 0600, 0, 2));
        calls.forEach((what, body) -> assertEquals(Errno.ENAMETOOLONG, assertThrows(FsException.class, () -> body.run(EachOperation.call()), what).errno(), what));
        byte[] attribute = new byte[256];
        System.arraycopy(EachOperation.bytes("user."), 0, attribute, 0, 5);
        java.util.Arrays.fill(attribute, 5, 256, (byte) 'a');
        assertEquals(Errno.ERANGE, assertThrows(FsException.class, () -> n2.setxattr(EachOperation.call(), 1, attribute, good, 0)).errno());
        assertEquals(Errno.E2BIG, assertThrows(FsException.class, () -> n2.setxattr(EachOperation.call(), 1, EachOperation.bytes("user.a"), new byte[65_537], 0)).errno());
    }

    /** Of all operations; those that are to succeed apart. */
    private Map<String, Errno> all(Errno errno, Set<String> succeed) {
        Map<String, Errno> all = new TreeMap<>();
        each.all().keySet().forEach(name -> all.put(name, succeed.contains(name) ? null : errno));
        return all;
    }

    private static void assertNoneIsAboutNames(Map<String, Errno> answers) {
        List<String> wrong = new ArrayList<>();
        answers.forEach((name, errno) -> {
            if (errno != null && errno != Errno.EIO && errno != Errno.ETIMEDOUT) {
                wrong.add(name + ": " + errno);
            }
        });
        assertEquals(List.of(), wrong);
        assertFalse(answers.values().stream().anyMatch(e -> e != null && ABOUT_NAMES.contains(e)));
    }

    /** The other node has all tokens, and nothing is left to be published here. */
    private void giveAway() throws FsException {
        n2.sync(SECOND);
        TestClient other = new TestClient(n1);
        other.mkdir("/mine");
        other.mkdir(EachOperation.DIRECTORY + "/mine");
        for (String name : each.all().keySet()) {
            other.mkdir(EachOperation.DIRECTORY + "/" + name + "-dir/mine");
            other.rmdir(EachOperation.DIRECTORY + "/" + name + "-dir/mine");
        }
    }

    private interface Condition {
        boolean holds() throws Exception;
    }

    private static void waitUntil(Condition condition) throws Exception {
        long end = System.nanoTime() + 15 * SECOND;
        while (!condition.holds()) {
            assertTrue(System.nanoTime() < end);
            Thread.sleep(10);
        }
    }
}
