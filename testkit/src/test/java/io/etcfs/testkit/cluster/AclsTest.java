package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The kernel keeps ACLs without a limit in time: they are dropped with the token. */
@Timeout(60)
class AclsTest {
    private static final byte[] ACCESS = "system.posix_acl_access".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] LIST = HexFormat.of().parseHex("02000000" + "01000700ffffffff" + "02000700e8030000" + "04000500ffffffff" + "10000700ffffffff" + "20000400ffffffff");
    /** For longer than names and attributes are believed. */
    private static final long LONG_MS = 2_200;

    private TestCluster cluster;
    private ClusterNode n1;
    private ClusterNode n2;
    private final ListeningKernel kernel = new ListeningKernel();

    private static final class ListeningKernel extends ForgettingKernel {
        final Set<Long> dropped = new ConcurrentSkipListSet<>();
        final CountDownLatch asked = new CountDownLatch(1);
        volatile CountDownLatch goOn = new CountDownLatch(0);

        @Override
        public void invalidateAttributes(long ino, Runnable done) {
            dropped.add(ino);
            asked.countDown();
            Thread.startVirtualThread(() -> {
                try {
                    goOn.await();
                } catch (InterruptedException e) {
                    return;
                }
                done.run();
            });
        }
    }

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(64L << 20);
        n1 = cluster.start("n1");
        n1.attachKernel(kernel);
        n2 = cluster.start("n2");
    }

    @AfterEach
    void stop() {
        kernel.goOn.countDown();
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private static Call call() {
        return new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
    }

    private static byte[] bytes(String name) {
        return name.getBytes(StandardCharsets.UTF_8);
    }

    /** The kernel forgets attributes as it sets an ACL, but believes an answer about them that was on its way: they say the mode, which the ACL changes. */
    @Test
    void attributesOfBeforeAnAclAreNotBelieved() throws Exception {
        Call making = call();
        long ino = n1.create(making, 1, bytes("f"), 0640, 0, 2).entry().ino();
        n1.replied(making);
        Call asking = call();
        assertTrue(n1.getattr(asking, ino, -1).validNs() > 0);
        kernel.dropped.clear();
        n1.setxattr(call(), ino, ACCESS, LIST, 0);
        assertEquals(Set.of(ino), kernel.dropped);
        n1.replied(asking);
    }

    @Test
    void whatTheKernelRemembersGoesBeforeTheTokenDoes() throws Exception {
        Call making = call();
        long ino = n1.create(making, 1, bytes("f"), 0640, 0, 2).entry().ino();
        n1.replied(making);
        Call setting = call();
        n1.setxattr(setting, ino, ACCESS, LIST, 0);
        Call asking = call();
        assertArrayEquals(LIST, n1.getxattr(asking, ino, ACCESS));
        assertTrue(asking.hasGrants(), "the answer is not waited for");
        n1.replied(asking);
        Thread.sleep(LONG_MS);
        kernel.dropped.clear();
        kernel.goOn = new CountDownLatch(1);
        CountDownLatch removed = new CountDownLatch(1);
        Thread other = Thread.startVirtualThread(() -> {
            try {
                n2.lookup(call(), 1, bytes("f"));
                n2.removexattr(call(), ino, ACCESS);
                removed.countDown();
            } catch (io.etcfs.core.fs.FsException e) {
                throw new IllegalStateException(e);
            }
        });
        // Only one of them has to go, the directory's was never asked for.
        assertTrue(kernel.asked.await(10, TimeUnit.SECONDS));
        assertFalse(removed.await(500, TimeUnit.MILLISECONDS), "changed while the kernel of the other node may believe the old one");
        assertEquals(Set.of(ino), kernel.dropped);
        kernel.goOn.countDown();
        other.join();
        assertEquals(0, removed.getCount());
    }
}
