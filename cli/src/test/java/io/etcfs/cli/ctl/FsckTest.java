package io.etcfs.cli.ctl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.check.Kind;
import io.etcfs.core.check.Severity;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.Txn;
import io.etcfs.testkit.cluster.TestClient;
import io.etcfs.testkit.cluster.TestCluster;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class FsckTest {
    private static final long WAIT_NS = 10_000_000_000L;
    private static final Key PREFIX = Key.of("etcfs/test/");

    private final TestCluster cluster = new TestCluster(64L << 20);
    private final List<String> said = new ArrayList<>();

    @BeforeEach
    void makeSomeFiles() throws Exception {
        cluster.recordsArePlanted();
        var node = cluster.start("n1");
        TestClient client = new TestClient(node);
        client.mkdir("/d");
        for (int i = 0; i < 600; i++) {
            client.write("/d/f" + i, 0, new byte[1], 0);
        }
        node.sync(WAIT_NS);
    }

    @AfterEach
    void stop() {
        cluster.close();
    }

    private void put(Key key, byte[] value) throws Exception {
        cluster.store.commit(new Txn(List.of(), List.of(Op.put(key, value)), List.of()), WAIT_NS);
    }

    private interface BeforeRange {
        void run(long number) throws Exception;
    }

    /** The store, with something that happens before each range. */
    private MetadataStore store(BeforeRange before) {
        long[] number = {0};
        return (MetadataStore) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {MetadataStore.class}, (proxy, method, arguments) -> {
            if (method.getName().equals("range")) {
                before.run(number[0]++);
            }
            try {
                return method.invoke(cluster.store, arguments);
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        });
    }

    @Test
    void aMountedFilesystemIsClean() throws Exception {
        FsckReport report = FsckCommand.read(cluster.store, "test", said::add);
        assertEquals(List.of(), report.findings());
        assertEquals(FsckReport.Result.CLEAN, report.result());
        assertEquals(2, report.counts().directories());
        assertEquals(600, report.counts().files());
        assertEquals(600, report.counts().blocks());
        String line = Tables.fsck(report);
        assertTrue(line.startsWith("clean: filesystem 'test' at revision ") && line.endsWith(report.counts().keys() + " keys\n"), line);
    }

    @Test
    void damageIsShownWithoutTheBytesOfNames() throws Exception {
        put(PREFIX.plus("dirent:\u001b[2J\n"), new byte[0]);
        FsckReport report = FsckCommand.read(cluster.store, "test", said::add);
        FsckReport.Found found = report.findings().getFirst();
        assertEquals(List.of("dirent:\\x1b[2J\\x0a"), found.keys());
        assertEquals(Kind.UNKNOWN_KEY, found.kind());
        assertEquals(Severity.DAMAGE, found.severity());
        assertEquals(FsckReport.Result.DAMAGED, report.result());
        assertTrue(Tables.fsck(report).chars().filter(c -> c < ' ' && c != '\n').findAny().isEmpty());
        assertEquals(4, Tables.fsck(report).lines().count());
        assertTrue(Ctl.json(report).contains("\"kind\":\"unknown_key\""), Ctl.json(report));
    }

    @Test
    void whatLeavesNothingWrongIsNoDamage() throws Exception {
        put(PREFIX.plus("owner:00000000000fffff"), cluster.store.range(PREFIX.plus("owner:0000000000000001"), null, 0, false, 0, WAIT_NS).only().value());
        FsckReport report = FsckCommand.read(cluster.store, "test", said::add);
        // The record is a copy of one that has not been given up.
        assertEquals(List.of(Kind.OWNER_WITHOUT_TOKEN, Kind.OWNER_LEFT), report.findings().stream().map(FsckReport.Found::kind).toList());
        assertEquals(1, report.count(Severity.LEFTOVER));
    }

    @Test
    void aRevisionThatIsForgottenMeanwhileIsBegunAgain() throws Exception {
        MetadataStore once = store(n -> {
            if (n == 2) {
                put(Key.of("elsewhere"), new byte[0]);
                cluster.store.compact(cluster.store.status(WAIT_NS).revision(), WAIT_NS);
            }
        });
        assertEquals(FsckReport.Result.CLEAN, FsckCommand.read(once, "test", said::add).result());
        assertEquals(1, said.size());
        assertTrue(said.getFirst().contains("(2 of 3)"), said.getFirst());
        MetadataStore always = store(n -> {
            put(Key.of("elsewhere"), new byte[0]);
            cluster.store.compact(cluster.store.status(WAIT_NS).revision(), WAIT_NS);
        });
        assertEquals(StoreRejectedException.Reason.COMPACTED, assertThrows(StoreRejectedException.class, () -> FsckCommand.read(always, "test", said::add)).reason());
    }

    @Test
    void piecesAreSmallerWhereKeysAreLarge() throws Exception {
        for (int i = 0; i < 40; i++) {
            put(Key.of("large/" + (100 + i)), new byte[1_000_000]);
        }
        long[] ranges = {0};
        List<KeyValue> all = new ArrayList<>();
        MetadataStore counting = store(n -> {
            ranges[0]++;
            if (n == 0) {
                throw new StoreRejectedException(StoreRejectedException.Reason.TOO_LARGE, "the answer is too large");
            }
        });
        new Snapshot(counting, "test", WAIT_NS).each(Key.of("large/"), all::add);
        assertEquals(40, all.size());
        // Refused once, then 31, then two at a time.
        assertEquals(2 + 5, ranges[0]);
    }
}
