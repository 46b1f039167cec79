package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.etcfs.core.fault.Fault;
import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the kernel keeps without a limit in time, pages and ACLs, it is made to drop when the node learns that its session has ended, before the next one is opened. */
@Timeout(60)
class KernelAfterSessionTest {
    private static final byte[] ACCESS = "system.posix_acl_access".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] LIST = HexFormat.of().parseHex("02000000" + "01000700ffffffff" + "02000700e8030000" + "04000500ffffffff" + "10000700ffffffff" + "20000400ffffffff");

    private static final class ListeningKernel extends ForgettingKernel {
        final Set<String> dropped = new ConcurrentSkipListSet<>();
        volatile boolean listening;

        @Override
        public void invalidateAttributes(long ino, Runnable done) {
            note("ACL");
            done.run();
        }

        @Override
        public void invalidatePages(long ino, long offsetBytes, long lengthBytes, Runnable done) {
            note("pages");
            done.run();
        }

        private void note(String what) {
            if (listening) {
                dropped.add(what);
            }
        }
    }

    private static Call call() {
        return new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
    }

    @AfterEach
    void unplant() {
        Fault.plant(Set.of());
    }

    /** What was dropped by the time that the node answered again. */
    private static Set<String> droppedWithTheSession() throws Exception {
        ListeningKernel kernel = new ListeningKernel();
        TestCluster cluster = new TestCluster(64L << 20);
        HookedStore way = new HookedStore(cluster.store);
        try (cluster) {
            ClusterNode n1 = cluster.start("n1", way);
            TestClient a = new TestClient(n1);
            a.write("/f", 0, new byte[4096], 0);
            a.fsync("/f");
            n1.attachKernel(kernel);
            long ino = n1.lookup(call(), 1, "f".getBytes(StandardCharsets.UTF_8)).ino();
            n1.setxattr(call(), ino, ACCESS, LIST, 0);
            Call asking = call();
            n1.getxattr(asking, ino, ACCESS);
            n1.replied(asking);
            long handle = n1.open(call(), ino, 0, false).handle();
            try (Arena arena = Arena.ofConfined()) {
                n1.read(call(), ino, handle, 0, 4096, 0, arena.allocate(16_384, 4096));
            }
            n1.sync(5_000_000_000L);
            kernel.listening = true;
            way.cut = true;
            Thread.sleep(3_000);
            way.cut = false;
            n1.getattr(call(), ino, handle);
            kernel.listening = false;
            n1.release(call(), ino, handle);
            n1.forget(ino, 1);
        }
        assertEquals(List.of(), cluster.stopped);
        return kernel.dropped;
    }

    @Test
    void pagesAndAclsGo() throws Exception {
        assertEquals(Set.of("ACL", "pages"), droppedWithTheSession());
    }

    @Test
    void itIsSeenIfPagesStay() throws Exception {
        Fault.plant(Set.of(Fault.PAGES_OUTLIVE_SESSION));
        assertEquals(Set.of("ACL"), droppedWithTheSession());
    }

    @Test
    void itIsSeenIfAclsStay() throws Exception {
        Fault.plant(Set.of(Fault.ACL_OUTLIVES_SESSION));
        assertEquals(Set.of("pages"), droppedWithTheSession());
    }
}
