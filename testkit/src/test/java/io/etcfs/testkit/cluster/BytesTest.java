package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.fs.MustWait;
import io.etcfs.core.fs.Operations;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Contents of files where accesses, batches and retries of operations meet. */
@Timeout(120)
class BytesTest {
    private static final int O_RDWR = 2;
    private static final int O_TRUNC = 01000;
    private static final int O_APPEND = 02000;
    private static final int O_DSYNC = 010000;
    private static final int O_SYNC = 04010000;

    private TestCluster cluster;
    private Operations node;
    private TestClient client;

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(256L << 20);
        node = cluster.start("n1");
        client = new TestClient(node);
    }

    @AfterEach
    void stop() {
        cluster.device.beforeRead = offset -> {};
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private static byte[] random(long seed, int n) {
        byte[] bytes = new byte[n];
        new Random(seed).nextBytes(bytes);
        return bytes;
    }

    private static Call call(boolean mayWait) {
        return new Call(1, 0, 0, 1, mayWait, Call.Interruption.NEVER);
    }

    private static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private interface Body<R> {
        R run(Call call) throws FsException;
    }

    /** As the transport does: at once if that is possible, else again where it may wait. */
    private static <R> R request(Body<R> body) throws FsException {
        try {
            return body.run(call(false));
        } catch (MustWait e) {
            return body.run(call(true));
        }
    }

    private Operations.Created create(String name, int flags) throws FsException {
        return request(c -> node.create(c, 1, name.getBytes(), 0644, 0, O_RDWR | flags));
    }

    private void write(Operations.Created file, long offset, byte[] data, int flags, boolean fromPageCache) throws FsException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment m = arena.allocate(data.length, 4096);
            MemorySegment.copy(data, 0, m, ValueLayout.JAVA_BYTE, 0, data.length);
            request(c -> node.write(c, file.entry().ino(), file.opened().handle(), offset, m, O_RDWR | flags, fromPageCache, false));
        }
    }

    /** One block of the write is dirty and written out while the other one is read. */
    @Test
    void dirtyBlockIsWrittenOutWhileAnotherIsFetched() throws Exception {
        byte[] expected = random(1, 12_288);
        client.write("/f", 0, expected, 0);
        client.fsync("/f");
        byte[] small = random(2, 100);
        client.write("/f", 100, small, 0);
        System.arraycopy(small, 0, expected, 100, 100);
        cluster.device.beforeRead = offset -> sleep(150);
        byte[] large = random(3, 8000);
        client.write("/f", 1000, large, 0);
        System.arraycopy(large, 0, expected, 1000, 8000);
        cluster.device.beforeRead = offset -> {};
        assertArrayEquals(expected, client.read("/f"));
        client.fsync("/f");
        assertArrayEquals(expected, client.read("/f"));
    }

    @Test
    void synchronousAppendIsMadeOnce() throws Exception {
        Operations.Created f = create("f", O_APPEND | O_DSYNC);
        write(f, 0, "one".getBytes(), O_APPEND | O_DSYNC, false);
        write(f, 0, "two".getBytes(), O_APPEND | O_DSYNC, false);
        node.release(call(true), f.entry().ino(), f.opened().handle());
        assertArrayEquals("onetwo".getBytes(), client.read("/f"));
    }

    private void writeAtOnce(Operations.Created file, long offset, byte[] data, int flags) throws FsException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment m = arena.allocate(data.length, 4096);
            MemorySegment.copy(data, 0, m, ValueLayout.JAVA_BYTE, 0, data.length);
            node.write(call(false), file.entry().ino(), file.opened().handle(), offset, m, O_RDWR | flags, false, false);
        }
    }

    @Test
    void synchronousOverwriteInPlaceWaitsForTheDeviceOnly() throws Exception {
        byte[] expected = random(1, 12_288);
        Operations.Created f = create("f", 0);
        write(f, 0, expected, 0, false);
        client.fsync("/f");
        byte[] block = random(2, 4096);
        writeAtOnce(f, 4096, block, O_DSYNC);
        cluster.device.loseUnflushed();
        System.arraycopy(block, 0, expected, 4096, 4096);
        assertArrayEquals(expected, client.read("/f"));
        // The times of that one are unpublished now: they are not what O_DSYNC is about.
        writeAtOnce(f, 8192, block, O_DSYNC);
        cluster.device.loseUnflushed();
        System.arraycopy(block, 0, expected, 8192, 4096);
        assertArrayEquals(expected, client.read("/f"));
        node.release(call(true), f.entry().ino(), f.opened().handle());
    }

    /** Each of them needs something published; refused at once, it has done nothing. */
    @Test
    void synchronousWriteThatNeedsMoreThanTheDeviceIsHandedOverBeforeItHasDoneAnything() throws Exception {
        byte[] expected = random(1, 12_288);
        Operations.Created f = create("f", 0);
        write(f, 0, expected, 0, false);
        byte[] block = random(2, 4096);
        client.fsync("/f");
        assertThrows(MustWait.class, () -> writeAtOnce(f, 0, block, O_SYNC), "the times");
        assertThrows(MustWait.class, () -> writeAtOnce(f, 12_288, block, O_DSYNC), "the end of the file");
        assertThrows(MustWait.class, () -> writeAtOnce(f, 100, block, O_DSYNC), "parts of blocks");
        client.fallocate("/f", 16_384, 4096, 1);
        client.truncate("/f", 20_480);
        client.fsync("/f");
        assertThrows(MustWait.class, () -> writeAtOnce(f, 12_288, block, O_DSYNC), "a hole");
        assertThrows(MustWait.class, () -> writeAtOnce(f, 16_384, block, O_DSYNC), "an unwritten block");
        assertArrayEquals(Arrays.copyOf(expected, 20_480), client.read("/f"));
        assertTrue(mustWaitAfterBufferedWrite(f, 0), "bytes written before, in the open batch");
        assertTrue(mustWaitAfterBufferedWrite(f, 8192), "a dirty block");
        node.release(call(true), f.entry().ino(), f.opened().handle());
    }

    /** The batch of the first write may be out in time by chance, but not always. */
    private boolean mustWaitAfterBufferedWrite(Operations.Created f, long offset) throws FsException {
        for (int i = 0; i < 20; i++) {
            try {
                write(f, 8192, random(i, 4096), 0, false);
                writeAtOnce(f, offset, random(i, 4096), O_DSYNC);
            } catch (MustWait e) {
                return true;
            }
        }
        return false;
    }

    /** Two nodes share a file; bytes of a mapping that the second one writes back wait in its side buffer for the token. */
    private Operations.Created sharedFile(TestClient other, String name, byte[] content) throws Exception {
        other.write("/" + name, 0, content, 0);
        assertArrayEquals(content, other.read("/" + name));
        assertArrayEquals(content, client.read("/" + name));
        Operations.Entry e = request(c -> node.lookup(c, 1, name.getBytes()));
        return new Operations.Created(e, request(c -> node.open(c, e.ino(), O_RDWR, false)));
    }

    private void close(Operations.Created f) {
        node.release(call(true), f.entry().ino(), f.opened().handle());
        node.forget(f.entry().ino(), 1);
    }

    @Test
    void laterWriteWinsOverTheSideBuffer() throws Exception {
        TestClient other = new TestClient(cluster.start("n2"));
        for (int i = 0; i < 20; i++) {
            String name = "w" + i;
            Operations.Created f = sharedFile(other, name, random(i, 8192));
            byte[] page = random(100 + i, 4096);
            write(f, 0, page, 0, true);
            write(f, 10, "later".getBytes(), 0, false);
            System.arraycopy("later".getBytes(), 0, page, 10, 5);
            request(c -> {
                node.fsync(c, f.entry().ino(), f.opened().handle(), false);
                return null;
            });
            close(f);
            assertArrayEquals(page, Arrays.copyOf(other.read("/" + name), 4096), name);
        }
    }

    @Test
    void truncationCutsTheSideBuffer() throws Exception {
        TestClient other = new TestClient(cluster.start("n2"));
        for (int i = 0; i < 20; i++) {
            String name = "t" + i;
            Operations.Created f = sharedFile(other, name, random(i, 8192));
            byte[] page = random(100 + i, 4096);
            write(f, 0, page, 0, true);
            client.truncate("/" + name, 100);
            request(c -> {
                node.fsync(c, f.entry().ino(), f.opened().handle(), false);
                return null;
            });
            close(f);
            assertArrayEquals(Arrays.copyOf(page, 100), other.read("/" + name), name);
        }
    }

    @Test
    void mappingDoesNotGrowAFileThatWasTruncatedElsewhere() throws Exception {
        TestClient other = new TestClient(cluster.start("n2"));
        Operations.Created f = sharedFile(other, "f", random(1, 8192));
        other.truncate("/f", 100);
        byte[] page = random(2, 4096);
        write(f, 0, page, 0, true);
        write(f, 4096, page, 0, true);
        close(f);
        Thread.sleep(300);
        assertArrayEquals(Arrays.copyOf(page, 100), other.read("/f"));
    }

    /** Reads of four threads overlap all the time. */
    @Test
    void readsDoNotHoldChangesUp() throws Exception {
        client.write("/f", 0, random(1, 1 << 20), 0);
        client.fsync("/f");
        cluster.device.beforeRead = offset -> sleep(5);
        AtomicBoolean stop = new AtomicBoolean();
        List<Thread> readers = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            readers.add(Thread.ofVirtual().start(() -> {
                while (!stop.get()) {
                    try {
                        client.read("/f");
                    } catch (FsException e) {
                        throw new IllegalStateException(e);
                    }
                }
            }));
        }
        try {
            long start = System.nanoTime();
            for (int i = 0; i < 5; i++) {
                client.write("/f", 0, random(i, 1 << 16), 040000);
            }
            client.truncate("/f", 5000);
            assertTrue(System.nanoTime() - start < 2_000_000_000L, "writes waited " + (System.nanoTime() - start) / 1_000_000 + " ms");
        } finally {
            stop.set(true);
            for (Thread t : readers) {
                t.join();
            }
        }
    }

    /** The kernel saw no such name and checks no permission any more; the file was made elsewhere meanwhile. */
    @Test
    void createOfAFileThatIsThereDoesNotOpenWhatTheCallerMayNot() throws Exception {
        Call owner = new Call(1, 1000, 1000, 1, true, Call.Interruption.NEVER);
        Call stranger = new Call(2, 1001, 1001, 1, true, Call.Interruption.NEVER);
        Operations.Created f = node.create(owner, 1, "f".getBytes(), 0640, 0, O_RDWR);
        assertEquals(Errno.ESTALE, assertThrows(FsException.class, () -> node.create(stranger, 1, "f".getBytes(), 0644, 0, O_RDWR)).errno());
        assertEquals(Errno.ESTALE, assertThrows(FsException.class, () -> node.create(stranger, 1, "f".getBytes(), 0644, 0, 0)).errno());
        Operations.Created again = node.create(owner, 1, "f".getBytes(), 0644, 0, O_RDWR);
        assertEquals(f.entry().ino(), again.entry().ino());
        Operations.Entry link = node.symlink(owner, 1, "s".getBytes(), "f".getBytes());
        assertEquals(Errno.ESTALE, assertThrows(FsException.class, () -> node.create(owner, 1, "s".getBytes(), 0644, 0, O_RDWR)).errno());
        node.release(owner, f.entry().ino(), f.opened().handle());
        node.release(owner, f.entry().ino(), again.opened().handle());
        node.forget(f.entry().ino(), 2);
        node.forget(link.ino(), 1);
    }

    /** As above: whether the caller may keep such bits, and that capabilities have to go first, only the open of a file that was there says. */
    @Test
    void createDoesNotCutAFileThatRunsWithOthersRights() throws Exception {
        Call owner = new Call(1, 1000, 1000, 1, true, Call.Interruption.NEVER);
        for (int mode : new int[] {04755, 02755, 0755}) {
            byte[] name = Integer.toOctalString(mode).getBytes();
            Operations.Created f = node.create(owner, 1, name, mode, 0, O_RDWR);
            long ino = f.entry().ino();
            assertEquals(5, node.write(owner, ino, f.opened().handle(), 0, MemorySegment.ofArray("bytes".getBytes()), O_RDWR, false, false));
            if (mode == 0755) {
                node.setxattr(new Call(3, 0, 0, 1, true, Call.Interruption.NEVER), ino, "security.capability".getBytes(), new byte[20], 0);
            }
            assertEquals(Errno.ESTALE, assertThrows(FsException.class, () -> node.create(owner, 1, name, 0644, 0, O_RDWR | O_TRUNC)).errno());
            assertEquals(5, node.getattr(owner, ino, 0).attributes().size());
            Operations.Created again = node.create(owner, 1, name, 0644, 0, O_RDWR);
            node.release(owner, ino, f.opened().handle());
            node.release(owner, ino, again.opened().handle());
            node.forget(ino, 2);
        }
    }

    @Test
    void closeWaitsForTheSideBuffer() throws Exception {
        TestClient other = new TestClient(cluster.start("n2"));
        for (int i = 0; i < 10; i++) {
            String name = "c" + i;
            Operations.Created f = sharedFile(other, name, random(i, 4096));
            byte[] page = random(100 + i, 4096);
            write(f, 0, page, 0, true);
            request(c -> {
                node.flush(c, f.entry().ino(), f.opened().handle(), 0);
                return null;
            });
            close(f);
            assertArrayEquals(page, other.read("/" + name), name);
        }
    }

    /** A kernel whose pages are dropped once the write-backs under way in them are answered. */
    private static final class WritingKernel extends ForgettingKernel {
        final CountDownLatch asked = new CountDownLatch(1);
        volatile Thread writeBack;

        @Override
        public void invalidatePages(long ino, long offsetBytes, long lengthBytes, Runnable done) {
            asked.countDown();
            Thread.ofVirtual().start(() -> {
                try {
                    writeBack.join();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
                done.run();
            });
        }
    }

    private Thread writeBack(Operations.Created file, long offset, byte[] data) {
        return Thread.ofVirtual().start(() -> {
            try {
                write(file, offset, data, 0, true);
            } catch (FsException e) {
                throw new IllegalStateException(e);
            }
        });
    }

    /** n2 is kept from giving the token of the directory a by a read that does not end; of b both nodes have S. */
    @Test
    void writeBackWaitsWhileTheSideBuffersAreFullButNotInARecall() throws Exception {
        WritingKernel kernel = new WritingKernel();
        TestCluster two = new TestCluster(256L << 20);
        CountDownLatch release = new CountDownLatch(1);
        try (two) {
            ClusterNode n1 = two.start("n1");
            TestClient other = new TestClient(two.start("n2"));
            node = n1;
            client = new TestClient(n1);
            List<Operations.Created> files = new ArrayList<>();
            for (String dir : new String[] {"a", "b"}) {
                other.mkdir("/" + dir);
                other.write("/" + dir + "/f", 0, random(1, 8192), 0);
                other.fsync("/" + dir + "/f");
                Operations.Entry d = node.lookup(call(true), 1, dir.getBytes());
                Operations.Entry e = node.lookup(call(true), d.ino(), "f".getBytes());
                Operations.Created f = new Operations.Created(e, node.open(call(true), e.ino(), O_RDWR, false));
                try (Arena arena = Arena.ofConfined()) {
                    node.read(call(true), e.ino(), f.opened().handle(), 0, 8192, O_RDWR, arena.allocate(16_384, 4096));
                }
                files.add(f);
            }
            CountDownLatch reading = new CountDownLatch(1);
            Thread reader = Thread.ofVirtual().unstarted(() -> {
                try {
                    other.read("/a/f");
                } catch (FsException e) {
                    throw new IllegalStateException(e);
                }
            });
            two.device.beforeRead = offset -> {
                if (Thread.currentThread() == reader) {
                    reading.countDown();
                    try {
                        release.await();
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                }
            };
            reader.start();
            reading.await();

            n1.attachKernel(kernel);
            byte[] pageA = random(2, 4096);
            byte[] pageB = random(3, 4096);
            write(files.get(0), 0, pageA, 0, true);
            // Behind the end, as of a file that was truncated elsewhere: nothing comes of them.
            byte[] large = new byte[1 << 20];
            for (int i = 1; i <= 64; i++) {
                write(files.get(0), (long) i << 20, large, 0, true);
            }
            Thread a = writeBack(files.get(0), 4096, pageA);
            kernel.writeBack = writeBack(files.get(1), 4096, pageB);
            assertFalse(a.join(Duration.ofMillis(300)), "write-back was taken though the side buffers are full");
            assertTrue(kernel.writeBack.isAlive(), "write-back was taken though the side buffers are full");
            assertEquals(1, kernel.asked.getCount());

            long start = System.nanoTime();
            other.write("/b/f", 0, pageA, 0);
            assertTrue(System.nanoTime() - start < 2_000_000_000L, "the recall waited " + (System.nanoTime() - start) / 1_000_000 + " ms");
            assertEquals(0, kernel.asked.getCount());
            assertFalse(kernel.writeBack.isAlive());
            assertTrue(a.isAlive(), "write-back was taken for another inode's recall");

            release.countDown();
            a.join();
            reader.join();
            for (Operations.Created f : files) {
                node.fsync(call(true), f.entry().ino(), f.opened().handle(), false);
                close(f);
            }
            assertArrayEquals(concat(pageA, pageA), other.read("/a/f"));
            assertArrayEquals(concat(pageA, pageB), other.read("/b/f"));
        } finally {
            release.countDown();
        }
        assertEquals(List.of(), two.stopped);
    }

    /** A kernel with one page that a mapping has written, and that is written back when its range is dropped. */
    private final class DirtyKernel extends ForgettingKernel {
        Operations.Created file;
        long offset;
        byte[] page;

        void dirty(Operations.Created file, long offset, byte[] page) {
            this.file = file;
            this.offset = offset;
            this.page = page;
        }

        @Override
        public void invalidatePages(long ino, long offsetBytes, long lengthBytes, Runnable done) {
            byte[] dirty = page;
            boolean asked = dirty != null && ino == file.entry().ino() && offsetBytes < offset + dirty.length && (lengthBytes == 0 || offset < offsetBytes + lengthBytes);
            if (asked) {
                page = null;
            }
            Thread.ofVirtual().start(() -> {
                try {
                    if (asked) {
                        write(file, offset, dirty, 0, true);
                    }
                } catch (FsException e) {
                    throw new IllegalStateException(e);
                }
                done.run();
            });
        }
    }

    private long seek(Operations.Created file, long offset, int whence) throws FsException {
        return request(c -> node.lseek(c, file.entry().ino(), file.opened().handle(), offset, whence));
    }

    /** Next to the file's block or far from it; the page is written at once, or waits in the side buffer for the token that both nodes share. */
    @ParameterizedTest
    @CsvSource({"524288,false", "4096,false", "524288,true", "4096,true"})
    void bytesThatOnlyAMappingHasAreNoHole(long at, boolean shared) throws Exception {
        ClusterNode n1 = (ClusterNode) node;
        TestClient other = new TestClient(cluster.start("n2"));
        Operations.Created f = create("f", 0);
        write(f, 0, new byte[1], 0, false);
        client.truncate("/f", 1 << 20);
        if (shared) {
            assertEquals(1 << 20, other.read("/f").length);
        }
        DirtyKernel kernel = new DirtyKernel();
        n1.attachKernel(kernel);
        request(c -> node.read(c, f.entry().ino(), f.opened().handle(), 0, 4096, O_RDWR, MemorySegment.ofArray(new byte[8192])));
        assertEquals(4096, seek(f, 0, 4));
        assertEquals(Errno.ENXIO, assertThrows(FsException.class, () -> seek(f, 4096, 3)).errno());
        kernel.dirty(f, at, random(1, 4096));
        assertEquals(at, seek(f, 4096, 3));
        kernel.dirty(f, at + 4096, random(2, 4096));
        assertEquals(at + 8192, seek(f, at, 4));
        close(f);
    }

    /** Both nodes share the file; the page is written back because the other one is about to change it, and waits for X behind that change. */
    @ParameterizedTest
    @CsvSource({"false", "true"})
    void whatAMappingDidNotChangeIsNotWrittenOverWhatOthersDid(boolean newContents) throws Exception {
        TestClient other = new TestClient(cluster.start("n2"));
        byte[] bytes = random(1, 10_000);
        Operations.Created f = sharedFile(other, "f", bytes);
        DirtyKernel kernel = new DirtyKernel();
        ((ClusterNode) node).attachKernel(kernel);
        for (int round = 0; round < 3; round++) {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment scratch = arena.allocate(16_384, 4096);
                request(c -> node.read(c, f.entry().ino(), f.opened().handle(), 0, 10_000, O_RDWR, scratch));
            }
            byte[] pages = Arrays.copyOf(bytes, bytes.length);
            for (int at : new int[] {10, 11, 12, 4000, 4095, 4096, 9_000, 9_999}) {
                pages[at]++;
            }
            kernel.dirty(f, 0, pages);
            byte[] theirs = random(10 + round, newContents ? 10_000 : 3_000);
            if (newContents) {
                other.truncate("/f", 0);
            }
            other.write("/f", newContents ? 0 : 500, theirs, 0);
            assertEquals(null, kernel.page);
            request(c -> {
                node.fsync(c, f.entry().ino(), f.opened().handle(), false);
                return null;
            });
            if (newContents) {
                // What the mapping changed comes behind the truncation, which takes it away, or behind the write.
                byte[] now = other.read("/f");
                for (int at : new int[] {10, 11, 12, 4000, 4095, 4096, 9_000, 9_999}) {
                    theirs[at] = now[at] == pages[at] ? now[at] : theirs[at];
                }
                bytes = theirs;
            } else {
                bytes = pages;
                System.arraycopy(theirs, 0, bytes, 500, theirs.length);
            }
            assertArrayEquals(bytes, other.read("/f"), "round " + round);
            assertArrayEquals(bytes, client.read("/f"), "round " + round);
        }
        close(f);
    }

    private static byte[] concat(byte[] one, byte[] other) {
        byte[] both = Arrays.copyOf(one, one.length + other.length);
        System.arraycopy(other, 0, both, one.length, other.length);
        return both;
    }
}
