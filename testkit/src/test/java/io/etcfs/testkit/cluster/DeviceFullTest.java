package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.fs.Operations;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** No block is left: who is told so, when, and what goes on. */
@Timeout(60)
class DeviceFullTest {
    private static final int KEEP_SIZE = 1;
    private static final int ZERO_RANGE = 16;
    private static final int BLOCK = 4096;
    private static final long RESERVED_BYTES = (long) io.etcfs.core.space.Arena.RESERVED_BLOCKS * BLOCK;
    private static final int O_RDWR = 2;
    private static final int O_APPEND = 02000;
    private static final long DEVICE_BYTES = 32L << 20;

    private final Arena memory = Arena.ofShared();
    private TestCluster cluster;
    private ClusterNode n1;
    private ClusterNode n2;

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(DEVICE_BYTES);
        n1 = cluster.start("n1");
        n2 = cluster.start("n2");
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

    private MemorySegment data(int size, int value) {
        return memory.allocate(size, BLOCK).fill((byte) value);
    }

    /** A file, open. */
    private final class Open {
        final ClusterNode node;
        final long ino;
        final long handle;

        Open(ClusterNode node, String name) throws FsException {
            this.node = node;
            Operations.Created c = node.create(call(), 1, bytes(name), 0644, 0, O_RDWR);
            ino = c.entry().ino();
            handle = c.opened().handle();
        }

        int write(long offset, int size, int value) throws FsException {
            return node.write(call(), ino, handle, offset, data(size, value), O_RDWR, false, false);
        }

        int append(int size, int value) throws FsException {
            return node.write(call(), ino, handle, 0, data(size, value), O_RDWR | O_APPEND, false, false);
        }

        int writeBack(long offset, int size, int value) throws FsException {
            return node.write(call(), ino, handle, offset, data(size, value), O_RDWR, true, false);
        }

        long size() throws FsException {
            return node.getattr(call(), ino, handle).attributes().size();
        }

        void setSize(long size) throws FsException {
            node.setattr(call(), ino, new Operations.Change(null, null, null, size, null, null, null, handle, false));
        }

        byte[] read(long offset, int size) throws FsException {
            return node.read(call(), ino, handle, offset, size, O_RDWR, memory.allocate(size + 8192L, BLOCK)).toArray(ValueLayout.JAVA_BYTE);
        }

        void close() {
            node.release(call(), ino, handle);
            node.forget(ino, 1);
        }
    }

    private static Errno refused(org.junit.jupiter.api.function.Executable body) {
        return assertThrows(FsException.class, body).errno();
    }

    private static byte[] filled(int size, int value) {
        byte[] b = new byte[size];
        Arrays.fill(b, (byte) value);
        return b;
    }

    /** Writes until nothing more goes in; the file's size. */
    private long fill(Open file) throws FsException {
        long at = file.size();
        int size = 1 << 20;
        while (true) {
            try {
                at += file.write(at, size, 'f');
            } catch (FsException e) {
                assertEquals(Errno.ENOSPC, e.errno());
                return at;
            }
        }
    }

    @Test
    void theLastBlockIsUsedByAWriteThatIsCutShort() throws Exception {
        Open file = new Open(n1, "f");
        long size = fill(file);
        assertEquals(DEVICE_BYTES - RESERVED_BYTES, size);
        assertEquals(0, n1.statfs(call()).freeBlocks());
        assertEquals(size, file.size());
        assertArrayEquals(filled(BLOCK, 'f'), file.read(size - BLOCK, BLOCK));
        file.close();
    }

    @Test
    void aWriteOverBlocksThatAreThereGoesAsFarAsTheyDo() throws Exception {
        Open file = new Open(n1, "f");
        Open sparse = new Open(n1, "sparse");
        sparse.write(8 * BLOCK, 4 * BLOCK, 's');
        sparse.write(16 * BLOCK, BLOCK, 's');
        fill(file);
        assertEquals(3 * BLOCK - 7, sparse.write(9 * BLOCK + 7, 20 * BLOCK, 'o'));
        assertArrayEquals(filled(3 * BLOCK - 7, 'o'), sparse.read(9 * BLOCK + 7, 3 * BLOCK - 7));
        assertArrayEquals(new byte[4 * BLOCK], sparse.read(12 * BLOCK, 4 * BLOCK));
        assertEquals(Errno.ENOSPC, refused(() -> sparse.write(12 * BLOCK, 5 * BLOCK, 'o')));
        assertEquals(17L * BLOCK, sparse.size());
    }

    @Test
    void anAppendThatIsRefusedHasAddedNothing() throws Exception {
        Open file = new Open(n1, "f");
        Open log = new Open(n1, "log");
        log.append(100, 'l');
        fill(file);
        assertEquals(BLOCK - 100, log.append(BLOCK, 'l'));
        assertEquals(Errno.ENOSPC, refused(() -> log.append(BLOCK, 'l')));
        assertEquals(BLOCK, log.size());
        file.setSize(file.size() - 3 * BLOCK);
        assertEquals(2 * BLOCK, log.append(2 * BLOCK, 'm'));
        assertEquals(3L * BLOCK, log.size());
        assertArrayEquals(filled(2 * BLOCK, 'm'), log.read(BLOCK, 2 * BLOCK));
    }

    @Test
    void whatFreesAndWhatOverwritesGoesOn() throws Exception {
        Open file = new Open(n1, "f");
        Open other = new Open(n1, "other");
        other.write(0, 5 * BLOCK, 'o');
        long size = fill(file);
        assertEquals(100, other.write(50, 100, 'p'));
        assertEquals(4 * BLOCK, other.write(0, 4 * BLOCK, 'q'));
        n1.fsync(call(), other.ino, other.handle, false);
        n1.mkdir(call(), 1, bytes("directory"), 0755, 0);
        new Open(n1, "empty").close();
        n1.setxattr(call(), other.ino, bytes("user.x"), new byte[30_000], 0);
        n1.rename(call(), 1, bytes("other"), 1, bytes("renamed"), 0);
        other.setSize(1 << 30);
        other.setSize(2 * BLOCK);
        n1.fallocate(call(), other.ino, other.handle, 0, BLOCK, 3);
        assertEquals(Errno.ENOSPC, refused(() -> n1.fallocate(call(), other.ino, other.handle, 1 << 20, 100L << 20, 0)));
        n1.unlink(call(), 1, bytes("renamed"));
        other.close();
        file.setSize(size / 2);
        n1.unlink(call(), 1, bytes("f"));
        file.close();
        n1.sync(5_000_000_000L);
        // The directory's maker has all blocks again, but for those that are reserved.
        assertEquals((DEVICE_BYTES - RESERVED_BYTES) / BLOCK, eventuallyFree());
    }

    private long eventuallyFree() throws Exception {
        long free = 0;
        for (int i = 0; i < 100 && free != (DEVICE_BYTES - RESERVED_BYTES) / BLOCK; i++) {
            Thread.sleep(20);
            free = n1.statfs(call()).freeBlocks();
        }
        return free;
    }

    /** ENOSPC means that there was no block when it was asked for, also right after some were freed. */
    @Test
    void whatWasJustFreedHereIsUsedAtOnce() throws Exception {
        Open file = new Open(n1, "f");
        Open next = new Open(n1, "next");
        fill(file);
        for (int i = 0; i < 10; i++) {
            assertEquals(Errno.ENOSPC, refused(() -> next.write(next.size(), BLOCK, 'n')));
            file.setSize(file.size() - 2 * BLOCK);
            assertEquals(2 * BLOCK, next.write(next.size(), 2 * BLOCK, 'n'), "after truncate " + i);
            assertEquals(Errno.ENOSPC, refused(() -> next.write(next.size(), BLOCK, 'n')));
            Open small = new Open(n1, "small");
            file.setSize(file.size() - BLOCK);
            small.write(0, BLOCK, 's');
            n1.unlink(call(), 1, bytes("small"));
            assertEquals(Errno.ENOSPC, refused(() -> next.write(next.size(), BLOCK, 'n')));
            // Freed by a task of its own once it is closed.
            small.close();
            assertEquals(BLOCK, next.write(next.size(), BLOCK, 'n'), "after unlink " + i);
        }
    }

    /** A removed file that the kernel has not given back yet is given back in a moment. */
    @Test
    void aFileWhoseInodeTheKernelGivesBackInAMomentIsWaitedFor() throws Exception {
        Open file = new Open(n1, "f");
        Open next = new Open(n1, "next");
        file.write(0, BLOCK, 'f');
        fill(next);
        n1.release(call(), file.ino, file.handle);
        n1.unlink(call(), 1, bytes("f"));
        Thread.ofVirtual().start(() -> {
            try {
                Thread.sleep(300);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            n1.forget(file.ino, 1);
        });
        assertEquals(BLOCK, next.write(next.size(), BLOCK, 'n'));
    }

    @Test
    void whatAnotherNodeFreesIsUsed() throws Exception {
        Open file = new Open(n1, "f");
        Open next = new Open(n1, "next");
        fill(file);
        TestClient other = new TestClient(n2);
        for (int i = 0; i < 5; i++) {
            assertEquals(Errno.ENOSPC, refused(() -> next.write(next.size(), BLOCK, 'n')));
            other.truncate("/f", file.size() - BLOCK);
            // For up to 0.1 s it may say that there is no room without looking.
            Thread.sleep(150);
            assertEquals(BLOCK, next.write(next.size(), BLOCK, 'n'), "round " + i);
        }
    }

    /** One has all arenas: the other is told that there is no room, and goes on in what its own files had once it has some. */
    @Test
    void twoNodesFillTheDevice() throws Exception {
        Open here = new Open(n1, "here");
        Open there = new Open(n2, "there");
        here.write(0, BLOCK, 'h');
        there.write(0, 4 * BLOCK, 't');
        long a = fill(here);
        long b = fill(there);
        assertEquals(DEVICE_BYTES - RESERVED_BYTES, a + b);
        assertEquals(Errno.ENOSPC, refused(() -> here.write(a, BLOCK, 'h')));
        new TestClient(n1).truncate("/there", b - 2 * BLOCK);
        // It may have said that there is no room for up to 0.1 s without looking.
        Thread.sleep(150);
        assertEquals(2 * BLOCK, there.write(b - 2 * BLOCK, 2 * BLOCK, 'u'));
        // All that is free was in arenas of the other node.
        assertEquals(Errno.ENOSPC, refused(() -> here.write(a, BLOCK, 'h')));
        for (Map.Entry<Open, Long> f : Map.of(here, a, there, b).entrySet()) {
            assertEquals(f.getValue(), f.getKey().size());
            f.getKey().node.fsync(call(), f.getKey().ino, f.getKey().handle, false);
        }
        assertArrayEquals(filled(2 * BLOCK, 'u'), new TestClient(n1).read("/there", b - 2 * BLOCK, 2 * BLOCK));
        assertArrayEquals(filled(BLOCK, 'f'), new TestClient(n2).read("/here", a - BLOCK, BLOCK));
    }

    /** Its holes are to be reserved, and there is no room for that: what is there stays. */
    @Test
    void aRangeThatCantBeZeroedForWantOfRoomStaysAsItIs() throws Exception {
        Open file = new Open(n1, "f");
        Open other = new Open(n1, "other");
        file.write(0, 8 * BLOCK, 'z');
        file.setSize(16 * BLOCK);
        n1.fsync(call(), file.ino, file.handle, false);
        fill(other);
        long blocks = new TestClient(n1).stat("/f").blocks();
        for (long from : new long[] {0, 100}) {
            assertEquals(Errno.ENOSPC, refused(() -> n1.fallocate(call(), file.ino, file.handle, from, 16 * BLOCK - from, ZERO_RANGE | KEEP_SIZE)));
            assertArrayEquals(filled(8 * BLOCK, 'z'), new TestClient(n2).read("/f", 0, 8 * BLOCK));
            assertEquals(blocks, new TestClient(n1).stat("/f").blocks());
        }
        // What has its blocks can be zeroed however full the device is, and keeps them.
        n1.fallocate(call(), file.ino, file.handle, 0, 8 * BLOCK, ZERO_RANGE | KEEP_SIZE);
        assertArrayEquals(new byte[8 * BLOCK], new TestClient(n2).read("/f", 0, 8 * BLOCK));
        assertEquals(blocks, new TestClient(n1).stat("/f").blocks());
    }

    @Test
    void pagesOfAMappingWithoutRoomAreToldOfOnceAndTheOthersAreKept() throws Exception {
        Open file = new Open(n1, "f");
        Open mapped = new Open(n1, "mapped");
        mapped.write(0, BLOCK, 'm');
        mapped.write(2 * BLOCK, BLOCK, 'm');
        mapped.setSize(4 * BLOCK);
        fill(file);
        assertEquals(Errno.ENOSPC, refused(() -> mapped.writeBack(0, 4 * BLOCK, 'n')));
        byte[] wanted = new byte[4 * BLOCK];
        Arrays.fill(wanted, 0, BLOCK, (byte) 'n');
        Arrays.fill(wanted, 2 * BLOCK, 3 * BLOCK, (byte) 'n');
        assertArrayEquals(wanted, mapped.read(0, 4 * BLOCK));
        n1.fsync(call(), mapped.ino, mapped.handle, false);
    }

    /** What was written back while the token was elsewhere is in the side buffer: fsync says that it is lost, with the reason. */
    @Test
    void pagesOfAMappingThatWaitedForTheirTokenAreToldOfByFsync() throws Exception {
        Open mapped = new Open(n1, "mapped");
        mapped.setSize(4 * BLOCK);
        fill(new Open(n1, "f"));
        n1.mkdir(call(), 1, bytes("x"), 0755, 0);
        new TestClient(n2).mkdir("/elsewhere");
        assertEquals(2 * BLOCK, mapped.writeBack(0, 2 * BLOCK, 'n'));
        assertEquals(Errno.ENOSPC, refused(() -> n1.fsync(call(), mapped.ino, mapped.handle, false)));
        n1.fsync(call(), mapped.ino, mapped.handle, false);
    }

    private static final Set<String> NEED_BLOCKS = Set.of("write of new blocks", "write of new blocks, O_DIRECT", "write at the end", "fallocate");

    /** The row "device full" of the table "Operation and error" in docs/SEMANTICS.md. */
    @Test
    void everyOtherOperationSucceeds() throws Exception {
        EachOperation.prepare(n1);
        EachOperation each = new EachOperation(n1);
        each.look();
        fill(new Open(n1, "f"));
        Map<String, Errno> refused = new TreeMap<>();
        for (Map.Entry<String, EachOperation.Body> o : each.all().entrySet()) {
            if (NEED_BLOCKS.contains(o.getKey())) {
                refused.put(o.getKey(), refused(() -> o.getValue().run(call())));
            }
        }
        assertEquals(Set.of(Errno.ENOSPC), Set.copyOf(refused.values()), refused.toString());
        for (Map.Entry<String, EachOperation.Body> o : each.all().entrySet()) {
            if (!NEED_BLOCKS.contains(o.getKey())) {
                o.getValue().run(call());
            }
        }
        assertTrue(refused.size() == NEED_BLOCKS.size());
    }
}
