package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fault.Fault;
import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.fs.MustWait;
import io.etcfs.core.fs.Operations;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A page that a write(2) has changed is dropped and read again before its WRITE gets to the daemon. */
class RefilledPagesTest {
    private static final int O_RDWR = 2;
    private static final int PAGE = 4096;

    private TestCluster cluster;
    private ClusterNode node;
    private TestClient other;
    private PageKernel kernel;
    private Operations.Created file;

    /** A kernel that has one page of one file. */
    private static final class PageKernel extends ForgettingKernel {
        byte[] page;
        int drops;

        @Override
        public void invalidatePages(long ino, long offsetBytes, long lengthBytes, Runnable done) {
            if (page != null && offsetBytes < PAGE) {
                page = null;
                drops++;
            }
            done.run();
        }
    }

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(256L << 20);
        node = cluster.start("n1");
        other = new TestClient(cluster.start("n2"));
        kernel = new PageKernel();
        file = node.create(call(true), 1, "f".getBytes(StandardCharsets.UTF_8), 0644, 0, O_RDWR);
        put("-".repeat(PAGE), 0);
        node.sync(5_000_000_000L);
        // Not before: the answer to a create grants a name, and counts as on its way until it is written.
        node.attachKernel(kernel);
    }

    @AfterEach
    void stop() {
        Fault.plant(Set.of());
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private static Call call(boolean mayWait) {
        return new Call(1, 0, 0, 1, mayWait, Call.Interruption.NEVER);
    }

    /** The bytes in the page, if the kernel has it. */
    private void put(String bytes, int at) throws FsException {
        copy(bytes, at);
        ask(bytes, at, true);
    }

    private void copy(String bytes, int at) {
        if (kernel.page != null) {
            System.arraycopy(bytes.getBytes(StandardCharsets.US_ASCII), 0, kernel.page, at, bytes.length());
        }
    }

    private void ask(String bytes, int at, boolean mayWait) throws FsException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment data = arena.allocate(bytes.length(), PAGE);
            MemorySegment.copy(bytes.getBytes(StandardCharsets.US_ASCII), 0, data, ValueLayout.JAVA_BYTE, 0, bytes.length());
            assertEquals(bytes.length(), node.write(call(mayWait), file.entry().ino(), file.opened().handle(), at, data, O_RDWR, false, false));
        }
    }

    private String read(int at, int length) throws FsException {
        if (kernel.page == null) {
            try (Arena arena = Arena.ofConfined()) {
                kernel.page = node.read(call(true), file.entry().ino(), file.opened().handle(), 0, PAGE, O_RDWR, arena.allocate(3 * PAGE, PAGE)).toArray(ValueLayout.JAVA_BYTE);
            }
        }
        return new String(Arrays.copyOfRange(kernel.page, at, at + length), StandardCharsets.US_ASCII);
    }

    /** The other node writes between a write(2) here and its WRITE, and this one reads the page again. */
    private void readBeforeItIsMade() throws FsException {
        assertEquals("---", read(0, 3));
        copy("one", 100);
        other.write("/f", 200, "two".getBytes(StandardCharsets.US_ASCII), 0);
        assertEquals("two", read(200, 3));
        assertEquals("---", read(100, 3), "the other node had its turn before");
        ask("one", 100, true);
    }

    @Test
    void whatWasWrittenIsSeen() throws Exception {
        readBeforeItIsMade();
        assertEquals("one", read(100, 3));
        assertEquals("two", read(200, 3));
        assertEquals("one", new String(other.read("/f"), 100, 3, StandardCharsets.US_ASCII));
    }

    @Test
    void withoutTheDropItIsNot() throws Exception {
        Fault.plant(Set.of(Fault.REFILLED_PAGES_KEPT));
        readBeforeItIsMade();
        assertEquals("---", read(100, 3));
    }

    @Test
    void itIsDroppedOnce() throws Exception {
        readBeforeItIsMade();
        int drops = kernel.drops;
        for (int i = 0; i < 3; i++) {
            assertEquals("two", read(200, 3));
            put("three", 300);
            assertEquals("three", read(300, 5));
        }
        assertEquals(drops, kernel.drops);
    }

    @Test
    void whatLiesElsewhereStays() throws Exception {
        assertEquals("---", read(0, 3));
        other.write("/f", 200, "two".getBytes(StandardCharsets.US_ASCII), 0);
        assertEquals("two", read(200, 3));
        int drops = kernel.drops;
        ask("far", 10 * PAGE, true);
        assertEquals(drops, kernel.drops);
    }

    @Test
    void itIsMadeByAThreadThatMayWait() throws Exception {
        assertEquals("---", read(0, 3));
        other.write("/f", 200, "two".getBytes(StandardCharsets.US_ASCII), 0);
        read(0, 3);
        assertThrows(MustWait.class, () -> ask("one", 100, false));
        assertTrue(kernel.page != null);
        ask("one", 100, true);
        assertEquals("one", read(100, 3));
    }
}
