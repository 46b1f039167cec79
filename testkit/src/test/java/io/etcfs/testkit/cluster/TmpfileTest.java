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
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Files without a name from their birth. At each revision the records agree: such an inode is an orphan, and is pinned. */
@Timeout(60)
class TmpfileTest {
    private static final int O_RDWR = 2;
    private static final int O_EXCL = 0200;

    private TestCluster cluster;
    private ClusterNode n1;
    private ClusterNode n2;
    private TestClient a;
    private TestClient b;

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(64L << 20);
        n1 = cluster.start("n1");
        n2 = cluster.start("n2");
        a = new TestClient(n1);
        b = new TestClient(n2);
    }

    @AfterEach
    void stop() {
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private static Call call() {
        return new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static void write(ClusterNode node, Operations.Created file, String text) throws FsException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment m = arena.allocate(text.length(), 4096);
            MemorySegment.copy(bytes(text), 0, m, ValueLayout.JAVA_BYTE, 0, text.length());
            node.write(call(), file.entry().ino(), file.opened().handle(), 0, m, O_RDWR, false, false);
        }
    }

    private static void close(ClusterNode node, Operations.Created file, int lookups) {
        node.release(call(), file.entry().ino(), file.opened().handle());
        node.forget(file.entry().ino(), lookups);
    }

    @Test
    void getsANameOnceItsDirectoryWasElsewhere() throws Exception {
        Operations.Created f = n1.tmpfile(call(), 1, 0640, 022, O_RDWR);
        assertEquals(0, f.entry().attributes().nlink());
        write(n1, f, "text");
        assertEquals(List.of(), b.list("/"));
        b.write("/other", 0, bytes("x"), 0);
        assertEquals(1, n1.link(call(), f.entry().ino(), 1, bytes("name")).attributes().nlink());
        assertArrayEquals(bytes("text"), b.read("/name"));
        b.unlink("/name");
        assertEquals(Errno.ENOENT, assertThrows(FsException.class, () -> n1.link(call(), f.entry().ino(), 1, bytes("again"))).errno());
        close(n1, f, 2);
    }

    @Test
    void isClosedBeforeItsNameIsPublished() throws Exception {
        for (int i = 0; i < 20; i++) {
            Operations.Created f = n1.tmpfile(call(), 1, 0600, 0, O_RDWR);
            write(n1, f, "text");
            if (i % 2 == 0) {
                a.write("/other", 0, bytes("x"), 0);
                a.fsync("/other");
            }
            n1.link(call(), f.entry().ino(), 1, bytes("name" + i));
            close(n1, f, 2);
        }
        for (int i = 0; i < 20; i++) {
            assertArrayEquals(bytes("text"), b.read("/name" + i));
        }
    }

    @Test
    void withoutANameItIsFreedWhenItIsClosed() throws Exception {
        long before = a.freeBlocks();
        a.mkdir("/d");
        long dir = n1.lookup(call(), 1, bytes("d")).ino();
        Operations.Created f = n1.tmpfile(call(), dir, 0600, 0, O_RDWR);
        write(n1, f, "text");
        n1.fsync(call(), f.entry().ino(), f.opened().handle(), false);
        b.rmdir("/d");
        assertEquals(0, n1.getattr(call(), f.entry().ino(), f.opened().handle()).attributes().nlink());
        close(n1, f, 1);
        n1.forget(dir, 1);
        n1.sync(5_000_000_000L);
        for (int i = 0; i < 100 && a.freeBlocks() < before; i++) {
            Thread.sleep(50);
        }
        assertEquals(before, a.freeBlocks());
    }

    @Test
    void openedWithExclItNeverGetsOne() throws Exception {
        Operations.Created f = n1.tmpfile(call(), 1, 0600, 0, O_RDWR | O_EXCL);
        assertEquals(Errno.ENOENT, assertThrows(FsException.class, () -> n1.link(call(), f.entry().ino(), 1, bytes("name"))).errno());
        close(n1, f, 1);
    }
}
