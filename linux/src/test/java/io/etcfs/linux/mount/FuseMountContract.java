package io.etcfs.linux.mount;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.fs.MustWait;
import io.etcfs.linux.device.DirectDevice;
import io.etcfs.linux.process.OwnProcess;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.nio.file.attribute.UserDefinedFileAttributeView;
import java.time.Instant;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What a mount does on the running kernel, by whichever transport. */
@Timeout(30)
abstract class FuseMountContract {
    private static final long HOUR_NS = TimeUnit.HOURS.toNanos(1);

    private final Transport transport;

    FuseMountContract(Transport transport) {
        this.transport = transport;
    }

    @BeforeAll
    static void needsDevice() {
        assumeTrue(Files.isWritable(Path.of("/dev/fuse")) && "root".equals(System.getProperty("user.name")));
    }

    TestMount mount() throws Exception {
        return mount(options -> options);
    }

    TestMount mount(UnaryOperator<MountOptions> change) throws Exception {
        TestMount mount = new TestMount(transport, change);
        assertEquals(transport, mount.session.transport());
        return mount;
    }

    static byte[] bytes(int length) {
        byte[] bytes = new byte[length];
        new Random(length).nextBytes(bytes);
        return bytes;
    }

    static void await(String what, java.util.function.BooleanSupplier condition) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(5);
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() < end, what);
            Thread.sleep(5);
        }
    }

    static CompletableFuture<Throwable> inBackground(Client client) {
        CompletableFuture<Throwable> ended = new CompletableFuture<>();
        Thread.ofPlatform().daemon().start(() -> {
            try {
                client.run();
                ended.complete(null);
            } catch (Throwable t) {
                ended.complete(t);
            }
        });
        return ended;
    }

    interface Client {
        void run() throws Exception;
    }

    @Test
    void isShownByItsSourceAndType() throws Exception {
        try (TestMount mount = mount(o -> o.withFlags(MountFlags.NODEV | MountFlags.NOATIME))) {
            MountInfo info = Mounts.at(mount.root).orElseThrow();
            assertEquals("test source", info.source());
            assertEquals("fuse.etcfs", info.type());
            assertTrue(Set.of(info.options().split(",")).containsAll(Set.of("rw", "nodev", "noatime")), info.options());
            assertTrue(info.superOptions().contains("default_permissions") && info.superOptions().contains("allow_other"), info.superOptions());
            assertEquals(info.minor(), mount.session.connectionNumber());
            assertTrue(Files.exists(Path.of("/sys/fs/fuse/connections/" + info.minor() + "/abort")));
            assertEquals("1024", Files.readString(Path.of("/sys/class/bdi/0:" + info.minor() + "/read_ahead_kb")).strip());
            assertFalse(Mounts.isDead(mount.root));
        }
    }

    @Test
    void canBeMountedReadOnly() throws Exception {
        try (TestMount mount = mount(o -> o.withFlags(MountFlags.RDONLY))) {
            assertThrows(java.nio.file.FileSystemException.class, () -> Files.writeString(mount.path("f"), "x"));
        }
    }

    @Test
    void createsWritesReadsListsRenamesAndRemoves() throws Exception {
        try (TestMount mount = mount()) {
            byte[] content = bytes(300_001);
            Path file = mount.path("file");
            Files.write(file, content);
            assertArrayEquals(content, Files.readAllBytes(file));
            try (RandomAccessFile random = new RandomAccessFile(file.toFile(), "rw")) {
                random.seek(4096 + 3);
                random.write(new byte[] {1, 2, 3});
                random.setLength(5_000);
            }
            assertEquals(5_000, Files.size(file));
            assertEquals(2, Files.readAllBytes(file)[4096 + 4]);

            Path directory = Files.createDirectory(mount.path("directory"));
            Files.move(file, directory.resolve("moved"));
            assertThrows(NoSuchFileException.class, () -> Files.size(file));
            Files.createLink(file, directory.resolve("moved"));
            assertEquals(2, Files.getAttribute(file, "unix:nlink"));
            Files.createSymbolicLink(mount.path("link"), Path.of("directory/moved"));
            assertEquals(Path.of("directory/moved"), Files.readSymbolicLink(mount.path("link")));
            assertEquals(5_000, Files.readAllBytes(mount.path("link")).length);
            assertThrows(DirectoryNotEmptyException.class, () -> Files.delete(directory));
            Files.writeString(mount.path("other"), "replaces");
            Files.move(mount.path("other"), directory.resolve("moved"), StandardCopyOption.ATOMIC_MOVE);
            assertEquals("replaces", Files.readString(directory.resolve("moved")));
            Files.delete(directory.resolve("moved"));
            Files.delete(directory);
            assertEquals(Set.of("file", "link"), names(mount.root));
        }
    }

    private static Set<String> names(Path directory) throws IOException {
        Set<String> names = new TreeSet<>();
        try (var stream = Files.newDirectoryStream(directory)) {
            for (Path path : stream) {
                assertTrue(names.add(path.getFileName().toString()), "listed twice: " + path);
            }
        }
        return names;
    }

    @Test
    void listsDirectoriesLargerThanAReply() throws Exception {
        try (TestMount mount = mount()) {
            Set<String> expected = new TreeSet<>();
            for (int i = 0; i < 1_000; i++) {
                String name = "n".repeat(1 + i % 200) + i;
                expected.add(name);
                Files.createFile(mount.path(name));
            }
            assertEquals(expected, names(mount.root));
            try (var stream = Files.list(mount.root)) {
                assertEquals(1_000, stream.filter(Files::isRegularFile).count());
            }
        }
    }

    @Test
    void setsModeOwnerAndTimes() throws Exception {
        try (TestMount mount = mount()) {
            int umask = OwnProcess.setUmask(027);
            try {
                Files.createFile(mount.path("f"));
                Files.createDirectory(mount.path("d"));
            } finally {
                OwnProcess.setUmask(umask);
            }
            assertEquals("rw-r-----", PosixFilePermissions.toString(Files.getPosixFilePermissions(mount.path("f"))));
            assertEquals("rwxr-x---", PosixFilePermissions.toString(Files.getPosixFilePermissions(mount.path("d"))));
            Files.setAttribute(mount.path("f"), "unix:mode", 04751);
            Files.setAttribute(mount.path("f"), "unix:uid", 17);
            Files.setAttribute(mount.path("f"), "unix:gid", 18);
            FileTime before1970 = FileTime.from(Instant.parse("1969-07-20T20:17:40.123456789Z"));
            assertEquals(0, new ProcessBuilder("touch", "-d", before1970.toString(), mount.path("f").toString()).start().waitFor());
            assertEquals(0104751 & 07777, (int) Files.getAttribute(mount.path("f"), "unix:mode") & 07777);
            assertEquals(17, Files.getAttribute(mount.path("f"), "unix:uid"));
            assertEquals(18, Files.getAttribute(mount.path("f"), "unix:gid"));
            assertEquals(before1970, Files.getLastModifiedTime(mount.path("f")));
            assertEquals(1_234_567_890L, ((FileTime) Files.getAttribute(mount.path("f"), "creationTime")).to(TimeUnit.NANOSECONDS));
        }
    }

    @Test
    void answersStatfsAndExtendedAttributes() throws Exception {
        try (TestMount mount = mount()) {
            Path file = Files.createFile(mount.path("f"));
            FileStore store = Files.getFileStore(file);
            assertEquals(1000 * 4096, store.getTotalSpace());
            assertEquals(900 * 4096, store.getUnallocatedSpace());
            assertEquals(800 * 4096, store.getUsableSpace());
            UserDefinedFileAttributeView view = Files.getFileAttributeView(file, UserDefinedFileAttributeView.class);
            byte[] value = bytes(20_000);
            view.write("large", ByteBuffer.wrap(value));
            view.write("empty", ByteBuffer.allocate(0));
            assertEquals(Set.of("large", "empty"), Set.copyOf(view.list()));
            ByteBuffer read = ByteBuffer.allocate(view.size("large"));
            view.read("large", read);
            assertArrayEquals(value, read.array());
            assertThrows(IOException.class, () -> view.read("large", ByteBuffer.allocate(19_999)));
            view.delete("large");
            assertEquals(1, view.list().size());
            assertThrows(IOException.class, () -> view.size("large"));
        }
    }

    @Test
    void dataGoesToAndFromADeviceWithoutACopy(@TempDir Path directory) throws Exception {
        Path image = directory.resolve("image");
        try (RandomAccessFile file = new RandomAccessFile(image.toFile(), "rw")) {
            file.setLength(8 << 20);
        }
        AtomicInteger largest = new AtomicInteger();
        try (TestMount mount = mount(); DirectDevice device = DirectDevice.open(image)) {
            mount.filesystem.before = (operation, call, ino, data) -> {
                try {
                    if (operation.equals("write")) {
                        assertEquals(0, data.address() % 4096);
                        largest.accumulateAndGet((int) data.byteSize(), Math::max);
                        device.write(0, data.asSlice(0, data.byteSize() & -4096));
                    } else if (operation.equals("read")) {
                        assertEquals(0, data.address() % 4096);
                        device.read(4096, data.asSlice(0, 8192));
                    }
                } catch (io.etcfs.core.device.DeviceException e) {
                    throw new IllegalStateException(e);
                }
            };
            byte[] content = bytes(1 << 20);
            Files.write(mount.path("f"), content, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
            try (FileChannel channel = FileChannel.open(mount.path("f"), StandardOpenOption.WRITE)) {
                channel.write(ByteBuffer.wrap(content));
            }
            try (FileChannel channel = FileChannel.open(mount.path("f"), StandardOpenOption.READ)) {
                ByteBuffer read = ByteBuffer.allocateDirect((1 << 20) + 4096).alignedSlice(4096).limit(1 << 20);
                assertEquals(1 << 20, channel.read(read));
                byte[] got = new byte[1 << 20];
                read.flip().get(got);
                assertArrayEquals(content, got);
            }
            assertTrue(largest.get() >= 128 << 10, "largest write: " + largest);
            assertTrue(mount.errors.isEmpty());
        }
    }

    @Test
    void writesArriveAsOneMebibyte() throws Exception {
        AtomicInteger largest = new AtomicInteger();
        try (TestMount mount = mount()) {
            mount.filesystem.before = (operation, call, ino, data) -> {
                if (operation.equals("write")) {
                    largest.accumulateAndGet((int) data.byteSize(), Math::max);
                }
            };
            try (FileChannel channel = FileChannel.open(mount.path("f"), StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
                ByteBuffer buffer = ByteBuffer.allocateDirect(4 << 20);
                channel.write(buffer);
            }
            assertEquals(1 << 20, largest.get());
        }
    }

    @Test
    void requestsThatMustWaitGoOnElsewhere() throws Exception {
        AtomicInteger waited = new AtomicInteger();
        BlockingQueue<String> wrong = new LinkedBlockingQueue<>();
        try (TestMount mount = mount()) {
            mount.filesystem.before = (operation, call, ino, data) -> {
                if (!call.mayWait()) {
                    throw MustWait.INSTANCE;
                }
                waited.incrementAndGet();
                if (!Thread.currentThread().isVirtual() || (data != null && data.address() % 4096 != 0)) {
                    wrong.add(operation + " on " + Thread.currentThread() + " with " + data);
                }
                pause(2);
            };
            byte[] content = bytes((3 << 20) + 12_345);
            try (FileChannel channel = FileChannel.open(mount.path("f"), StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
                ByteBuffer buffer = ByteBuffer.allocateDirect(content.length).put(content).flip();
                channel.write(buffer);
            }
            assertArrayEquals(content, Files.readAllBytes(mount.path("f")));
            try (var stream = Files.list(mount.root)) {
                assertEquals(1, stream.count());
            }
            assertEquals(Set.of(), Set.copyOf(wrong));
            FuseSession.Statistics statistics = mount.session.statistics();
            assertTrue(statistics.handedOver() == waited.get() && waited.get() > 10, statistics + ", waited " + waited);
            await("memory is given back", () -> mount.session.statistics().waiting() == 0
                    && mount.session.statistics().memoryBytes() < 2L * 4 * (1 << 20) * 3);
        }
    }

    @Test
    void manyMoreRequestsCanWaitThanThereAreReaders() throws Exception {
        int clients = 60;
        CountDownLatch gate = new CountDownLatch(1);
        try (TestMount mount = mount(o -> o.withReaders(2))) {
            for (int i = 0; i < clients; i++) {
                Files.write(mount.path("f" + i), bytes(i + 1));
            }
            mount.filesystem.before = (operation, call, ino, data) -> {
                if (operation.equals("open")) {
                    waitFor(gate, call);
                }
            };
            var reads = IntStream.range(0, clients).mapToObj(i -> inBackground(() -> assertArrayEquals(bytes(i + 1), Files.readAllBytes(mount.path("f" + i)))))
                    .toList();
            await("all wait", () -> mount.session.statistics().waiting() == clients);
            Files.createFile(mount.path("meanwhile"));
            gate.countDown();
            for (var read : reads) {
                assertEquals(null, read.get());
            }
        }
    }

    /** As an operation does that waits for a token. */
    static void waitFor(CountDownLatch gate, Call call) throws FsException {
        if (gate.getCount() == 0) {
            return;
        }
        if (!call.mayWait()) {
            throw MustWait.INSTANCE;
        }
        try {
            while (!gate.await(20, TimeUnit.MILLISECONDS)) {
                if (call.interruption().callerIsDying()) {
                    throw new FsException(Errno.EINTR);
                }
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void aKilledProcessDoesNotHang() throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        try (TestMount mount = mount()) {
            Files.writeString(mount.path("f"), "text");
            mount.filesystem.before = (operation, call, ino, data) -> {
                if (operation.equals("open")) {
                    waitFor(gate, call);
                }
            };
            Process process = new ProcessBuilder("cat", mount.path("f").toString()).start();
            await("waits", () -> mount.session.statistics().waiting() == 1);
            Thread.sleep(200);
            assertTrue(process.isAlive());
            process.destroyForcibly();
            assertTrue(process.waitFor(3, TimeUnit.SECONDS), "killed, and still there");
            assertEquals(0, mount.session.statistics().waiting());
        }
    }

    @Test
    void aProcessKilledBeforeItsRequestWaitsDoesNotHang() throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        CountDownLatch onReader = new CountDownLatch(1);
        try (TestMount mount = mount()) {
            Files.writeString(mount.path("f"), "text");
            mount.filesystem.before = (operation, call, ino, data) -> {
                if (operation.equals("open")) {
                    if (!call.mayWait()) {
                        onReader.countDown();
                        pause(500);
                    }
                    waitFor(gate, call);
                }
            };
            Process process = new ProcessBuilder("cat", mount.path("f").toString()).start();
            assertTrue(onReader.await(5, TimeUnit.SECONDS));
            Thread.sleep(50);
            process.destroyForcibly();
            assertTrue(process.waitFor(3, TimeUnit.SECONDS), "killed, and still there");
        }
    }

    @Test
    void aSignalThatDoesNotKillChangesNothing() throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        try (TestMount mount = mount()) {
            Files.writeString(mount.path("f"), "text\n");
            mount.filesystem.before = (operation, call, ino, data) -> {
                if (operation.equals("open")) {
                    waitFor(gate, call);
                }
            };
            Process process = new ProcessBuilder("bash", "-c", "trap 'true' USR1; echo ready; read line < \"$1\" && echo \"got $line\"", "bash",
                    mount.path("f").toString()).redirectErrorStream(true).start();
            await("waits", () -> mount.session.statistics().waiting() == 1);
            new ProcessBuilder("kill", "-USR1", Long.toString(process.pid())).start().waitFor();
            Thread.sleep(400);
            assertEquals(1, mount.session.statistics().waiting());
            gate.countDown();
            assertEquals("ready\ngot text\n", new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8));
            assertEquals(0, process.waitFor());
        }
    }

    @Test
    void anAnswerThatIsTooOldWhenItIsWrittenIsNotBelieved() throws Exception {
        try (TestMount mount = mount()) {
            MemoryFilesystem filesystem = mount.filesystem;
            for (boolean waits : new boolean[] {false, true}) {
                filesystem.before = (operation, call, ino, data) -> { };
                filesystem.validNs = 0;
                Path file = mount.path(waits ? "waits" : "at once");
                Files.write(file, bytes(10));
                filesystem.validNs = HOUR_NS;
                filesystem.before = (operation, call, ino, data) -> {
                    if (waits && !call.mayWait()) {
                        throw MustWait.INSTANCE;
                    }
                };
                filesystem.grantsStand = false;
                for (int i = 0; i < 3; i++) {
                    int lookups = filesystem.lookups.get();
                    int getattrs = filesystem.getattrs.get();
                    assertEquals(10, Files.size(file));
                    assertTrue(filesystem.lookups.get() > lookups, "the name is believed");
                    assertTrue(filesystem.getattrs.get() > getattrs, "the attributes are believed");
                }
                filesystem.grantsStand = true;
                assertEquals(10, Files.size(file));
                int asked = filesystem.lookups.get() + filesystem.getattrs.get();
                assertEquals(10, Files.size(file));
                assertEquals(asked, filesystem.lookups.get() + filesystem.getattrs.get(), "an answer that is not too old is not believed");
            }
        }
    }

    @Test
    void notificationsDropNamesAttributesAndPages() throws Exception {
        try (TestMount mount = mount()) {
            MemoryFilesystem filesystem = mount.filesystem;
            filesystem.validNs = HOUR_NS;
            Files.writeString(mount.path("f"), "before");
            long ino = filesystem.inoOf("f");
            assertEquals("before", Files.readString(mount.path("f")));
            // A read makes the kernel forget the access time.
            assertEquals(6, Files.size(mount.path("f")));
            filesystem.put(ino, "later and longer".getBytes(StandardCharsets.UTF_8));
            assertEquals(6, Files.size(mount.path("f")));
            notified(done -> mount.session.kernelCache().invalidateAttributes(ino, done));
            assertEquals(16, Files.size(mount.path("f")));
            notified(done -> mount.session.kernelCache().invalidatePages(ino, 0, 0, done));
            assertEquals("later and longer", Files.readString(mount.path("f")));

            int lookups = filesystem.lookups.get();
            assertTrue(Files.exists(mount.path("f")));
            assertEquals(lookups, filesystem.lookups.get());
            notified(done -> mount.session.kernelCache().invalidateEntry(1, name("f"), true, done));
            assertTrue(Files.exists(mount.path("f")));
            assertEquals(lookups + 1, filesystem.lookups.get());
            filesystem.removeFromRoot("f");
            notified(done -> mount.session.kernelCache().invalidateEntry(1, name("f"), false, done));
            assertFalse(Files.exists(mount.path("f")));

            notified(done -> mount.session.kernelCache().invalidateEntry(1, name("never seen"), false, done));
            notified(done -> mount.session.kernelCache().invalidateAttributes(4711, done));
        }
    }

    private static byte[] name(String name) {
        return name.getBytes(StandardCharsets.UTF_8);
    }

    private interface Notification {
        void send(Runnable done);
    }

    private static void notified(Notification notification) throws InterruptedException {
        CountDownLatch done = new CountDownLatch(1);
        notification.send(done::countDown);
        assertTrue(done.await(5, TimeUnit.SECONDS));
    }

    @Test
    void aNotificationWaitsForAReadOfItsPageWhileOthersGoThrough() throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        try (TestMount mount = mount()) {
            mount.filesystem.validNs = HOUR_NS;
            Files.writeString(mount.path("f"), "text");
            Files.writeString(mount.path("g"), "text");
            long f = mount.filesystem.inoOf("f");
            notified(done -> mount.session.kernelCache().invalidatePages(f, 0, 0, done));
            mount.filesystem.before = (operation, call, ino, data) -> {
                if (operation.equals("read") && ino == f) {
                    waitFor(gate, call);
                }
            };
            CompletableFuture<Throwable> read = inBackground(() -> assertEquals("text", Files.readString(mount.path("f"))));
            await("waits", () -> mount.session.statistics().waiting() > 0);
            AtomicLong done = new AtomicLong();
            for (int i = 0; i < 5; i++) {
                mount.session.kernelCache().invalidatePages(f, 0, 0, done::incrementAndGet);
            }
            Thread.sleep(100);
            assertEquals(0, done.get());
            notified(d -> mount.session.kernelCache().invalidatePages(mount.filesystem.inoOf("g"), 0, 0, d));
            notified(d -> mount.session.kernelCache().invalidateEntry(1, name("g"), false, d));
            assertEquals("text", Files.readString(mount.path("g")));
            assertTrue(mount.session.statistics().notifiers() >= 6);
            gate.countDown();
            assertEquals(null, read.get());
            await("all are done", () -> done.get() == 5);
        }
    }

    @Test
    void abortReleasesClientsAndNotifications() throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        try (TestMount mount = mount()) {
            Files.writeString(mount.path("f"), "text");
            long f = mount.filesystem.inoOf("f");
            notified(done -> mount.session.kernelCache().invalidatePages(f, 0, 0, done));
            mount.filesystem.before = (operation, call, ino, data) -> {
                if (operation.equals("read")) {
                    waitFor(gate, call);
                }
            };
            CompletableFuture<Throwable> read = inBackground(() -> Files.readString(mount.path("f")));
            await("waits", () -> mount.session.statistics().waiting() > 0);
            CountDownLatch notified = new CountDownLatch(1);
            mount.session.kernelCache().invalidatePages(f, 0, 0, notified::countDown);
            assertFalse(notified.await(100, TimeUnit.MILLISECONDS));
            mount.session.kernelCache().abort();
            assertInstanceOf(IOException.class, read.get(5, TimeUnit.SECONDS));
            assertTrue(notified.await(5, TimeUnit.SECONDS));
            assertEquals(FuseSession.Ending.ABORTED, mount.session.awaitUnmounted());
            assertTrue(Mounts.isDead(mount.root));
            assertEquals(1, Mounts.clearDead(mount.root));
            assertFalse(Mounts.isDead(mount.root));
            mount.session.abort();
            gate.countDown();
            notified(done -> mount.session.kernelCache().invalidateAttributes(f, done));
        }
    }

    @Test
    void endsWhenItIsUnmountedFromOutside() throws Exception {
        try (TestMount mount = mount()) {
            Files.writeString(mount.path("f"), "text");
            assertEquals(0, new ProcessBuilder("umount", mount.root.toString()).inheritIO().start().waitFor());
            assertEquals(FuseSession.Ending.UNMOUNTED, mount.session.awaitUnmounted());
        }
    }

    @Test
    void servesOpenFilesAfterItWasDetached() throws Exception {
        try (TestMount mount = mount()) {
            try (FileChannel channel = FileChannel.open(mount.path("f"), StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
                assertThrows(IOException.class, mount.session::unmount);
                mount.session.detach();
                assertEquals(4, channel.write(ByteBuffer.wrap(new byte[4])));
                channel.force(true);
                assertTrue(mount.session.awaitUnmounted(100, TimeUnit.MILLISECONDS).isEmpty());
            }
            assertEquals(FuseSession.Ending.UNMOUNTED, mount.session.awaitUnmounted());
        }
    }

    @Test
    void aFaultIsAnsweredAndAnErrorGoesToTheHandler() throws Exception {
        AtomicReference<RuntimeException> fault = new AtomicReference<>(new IllegalStateException("meant to happen"));
        AtomicReference<Error> error = new AtomicReference<>();
        try (TestMount mount = mount()) {
            Files.createFile(mount.path("f"));
            mount.filesystem.before = (operation, call, ino, data) -> {
                if (operation.equals("mkdir") && fault.get() != null) {
                    throw fault.getAndSet(null);
                }
                if (operation.equals("open") && error.get() != null) {
                    if (!call.mayWait()) {
                        throw MustWait.INSTANCE;
                    }
                    throw error.get();
                }
            };
            IOException io = assertThrows(IOException.class, () -> Files.createDirectory(mount.path("d")));
            assertTrue(io.getMessage().contains("Input/output error"), io.getMessage());
            Files.createDirectory(mount.path("d"));
            error.set(new Error("meant to happen"));
            CompletableFuture<Throwable> open = inBackground(() -> Files.readString(mount.path("f")));
            assertEquals(error.get(), mount.errors.poll(5, TimeUnit.SECONDS));
            assertFalse(open.isDone());
            mount.session.abort();
            assertInstanceOf(IOException.class, open.get(5, TimeUnit.SECONDS));
        }
    }

    private <T> T switched(Callable<T> mount) throws Exception {
        return transport == Transport.URING ? UringSwitch.on(mount) : mount.call();
    }

    @Test
    void canBeClosedWithoutBeingStarted() throws Exception {
        Path root = Files.createTempDirectory("etcfs-mount").toRealPath();
        try {
            MountOptions options = MountOptions.of("s", root).withTransport(transport);
            FuseSession session = switched(() -> FuseMount.mount(options, cache -> new MemoryFilesystem(), (thread, thrown) -> { }));
            session.close();
            assertEquals(FuseSession.Ending.UNMOUNTED, session.awaitUnmounted());
            assertTrue(Mounts.at(root).isEmpty());
            assertThrows(IllegalStateException.class, () -> switched(() -> FuseMount.mount(options, cache -> {
                throw new IllegalStateException("no operations");
            }, (thread, thrown) -> { })));
            assertTrue(Mounts.at(root).isEmpty());
        } finally {
            Files.delete(root);
        }
    }

    @Test
    void descriptorsAreClosedAfterTheEnd() throws Exception {
        try (TestMount mount = mount()) {
            Files.createFile(mount.path("f"));
        }
        await("no /dev/fuse is open", () -> {
            try (var stream = Files.list(Path.of("/proc/self/fd"))) {
                return stream.noneMatch(fd -> {
                    try {
                        return Files.readSymbolicLink(fd).equals(Path.of("/dev/fuse"));
                    } catch (IOException e) {
                        return false;
                    }
                });
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        });
    }
}
