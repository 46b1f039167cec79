package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fault.Fault;
import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.FsException;
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

/** The kernel takes an answer in that tells an end within a page, and cuts that page only after it was read again with what another node has written behind it. */
class CutPagesTest {
    private static final int O_RDWR = 2;
    private static final int PAGE = 4096;
    private static final int END = 100;

    private TestCluster cluster;
    private ClusterNode node;
    private TestClient other;
    private PageKernel kernel;
    private Operations.Created file;

    /** A kernel that has one page of one file, and holds it while it reads it. */
    private static final class PageKernel extends ForgettingKernel {
        byte[] page;
        boolean reading;
        boolean dropWaits;
        int drops;

        @Override
        public void invalidatePages(long ino, long offsetBytes, long lengthBytes, Runnable done) {
            if (offsetBytes < PAGE) {
                dropWaits = reading;
                drops++;
                page = null;
            }
            done.run();
        }

        void filled(byte[] bytes) {
            reading = false;
            page = bytes;
        }

        /** Who cuts waits for the page as well, and came first. */
        void cut() {
            if (page != null) {
                Arrays.fill(page, END, PAGE, (byte) 0);
            }
            if (dropWaits) {
                dropWaits = false;
                page = null;
            }
        }
    }

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(256L << 20);
        node = cluster.start("n1");
        other = new TestClient(cluster.start("n2"));
        kernel = new PageKernel();
        file = node.create(call(), 1, "f".getBytes(StandardCharsets.UTF_8), 0644, 0, O_RDWR);
        other.write("/f", 0, "-".repeat(PAGE).getBytes(StandardCharsets.US_ASCII), 0);
        node.attachKernel(kernel);
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

    private void fill() throws FsException {
        kernel.reading = true;
        try (Arena arena = Arena.ofConfined()) {
            byte[] read = node.read(call(), file.entry().ino(), file.opened().handle(), 0, PAGE, O_RDWR, arena.allocate(3 * PAGE, PAGE)).toArray(ValueLayout.JAVA_BYTE);
            kernel.filled(Arrays.copyOf(read, PAGE));
        }
    }

    private String read(int at, int length) throws FsException {
        if (kernel.page == null) {
            fill();
        }
        return new String(Arrays.copyOfRange(kernel.page, at, at + length), StandardCharsets.US_ASCII);
    }

    private void truncate(long size) throws FsException {
        node.setattr(call(), file.entry().ino(), new Operations.Change(null, null, null, size, null, null, null, -1, false));
    }

    private void cutLate() throws FsException {
        truncate(END);
        other.write("/f", 200, "two".getBytes(StandardCharsets.US_ASCII), 0);
        fill();
        kernel.cut();
    }

    @Test
    void whatTheOtherWroteIsSeen() throws Exception {
        cutLate();
        assertEquals("two", read(200, 3));
        assertEquals("---", read(0, 3));
    }

    @Test
    void withoutTheDropItIsNot() throws Exception {
        Fault.plant(Set.of(Fault.CUT_PAGES_KEPT));
        cutLate();
        assertEquals("\0\0\0", read(200, 3));
    }

    /** By an answer about attributes, where the other one has cut it. */
    @Test
    void alsoWhereTheEndWasOnlyTold() throws Exception {
        other.truncate("/f", END);
        node.getattr(call(), file.entry().ino(), file.opened().handle());
        other.write("/f", 200, "two".getBytes(StandardCharsets.US_ASCII), 0);
        fill();
        kernel.cut();
        assertEquals("two", read(200, 3));
    }

    /** A process that does not get to run for a while cuts a page that was read after the first. */
    @Test
    void forSomeTimeEachThatIsReadIsDropped() throws Exception {
        truncate(END);
        other.write("/f", 200, "two".getBytes(StandardCharsets.US_ASCII), 0);
        fill();
        kernel.page = null;
        kernel.dropWaits = false;
        fill();
        kernel.cut();
        assertEquals("two", read(200, 3));
    }

    @Test
    void afterwardsItStays() throws Exception {
        cutLate();
        Thread.sleep(250);
        fill();
        kernel.cut();
        int drops = kernel.drops;
        fill();
        assertEquals(drops, kernel.drops);
        assertFalse(kernel.dropWaits);
    }

    @Test
    void whatIsWrittenHereDropsNothing() throws Exception {
        truncate(END);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment data = arena.allocate(3, PAGE);
            MemorySegment.copy("one".getBytes(StandardCharsets.US_ASCII), 0, data, ValueLayout.JAVA_BYTE, 0, 3);
            node.write(call(), file.entry().ino(), file.opened().handle(), 300, data, O_RDWR, false, false);
        }
        int drops = kernel.drops;
        fill();
        assertEquals(drops, kernel.drops);
        assertTrue(kernel.page != null);
    }
}
