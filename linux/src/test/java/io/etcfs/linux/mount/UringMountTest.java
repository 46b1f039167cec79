package io.etcfs.linux.mount;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class UringMountTest extends FuseMountContract {
    UringMountTest() {
        super(Transport.URING);
    }

    @BeforeEach
    void needsUring() {
        UringSwitch.assumeThere();
    }

    @Test
    void moreRequestsCanWaitThanThereWereEntriesAtFirst() throws Exception {
        int clients = 2 * UringQueue.ENTRIES + 100;
        CountDownLatch gate = new CountDownLatch(1);
        try (TestMount mount = mount()) {
            Files.writeString(mount.path("f"), "text");
            mount.filesystem.before = (operation, call, ino, data) -> {
                if (operation.equals("open")) {
                    waitFor(gate, call);
                }
            };
            var reads = IntStream.range(0, clients).mapToObj(i -> inBackground(() -> assertEquals("text", Files.readString(mount.path("f"))))).toList();
            await("all wait", () -> mount.session.statistics().waiting() == clients);
            Files.createFile(mount.path("meanwhile"));
            assertTrue(mount.session.statistics().memoryBytes() >= clients * (1L << 20));
            gate.countDown();
            for (var read : reads) {
                assertEquals(null, read.get());
            }
            await("all are back", () -> mount.session.statistics().memoryBytes() < 32 << 20);
        }
    }

    @Test
    void isRefusedWithAReasonWhereTheKernelDoesNotOfferIt() throws Exception {
        Path root = Files.createTempDirectory("etcfs-mount").toRealPath();
        MountOptions options = MountOptions.of("s", root).withTransport(Transport.URING);
        try {
            var refused = assertThrows(TransportUnavailableException.class,
                    () -> UringSwitch.off(() -> FuseMount.mount(options, cache -> new MemoryFilesystem(), (thread, thrown) -> { })));
            assertTrue(refused.getMessage().contains("/sys/module/fuse/parameters/enable_uring"), refused.getMessage());
            assertTrue(Mounts.at(root).isEmpty());
            try (FuseSession session = UringSwitch.off(() -> FuseMount.mount(options.withTransport(Transport.AUTO), cache -> new MemoryFilesystem(), (thread, thrown) -> { }))) {
                assertEquals(Transport.DEV, session.transport());
            }
        } finally {
            Files.delete(root);
        }
    }

    @Test
    void leavesNoThreadsAndNoDescriptors() throws Exception {
        try (TestMount mount = mount()) {
            Files.writeString(mount.path("f"), "text");
            assertTrue(threads() > 0);
        }
        await("threads have ended", () -> threads() == 0);
        await("rings are closed", () -> Path.of("/proc/self/fd").toFile().listFiles() != null && java.util.Arrays.stream(Path.of("/proc/self/fd").toFile().listFiles()).noneMatch(fd -> {
            try {
                String target = Files.readSymbolicLink(fd.toPath()).toString();
                return target.contains("io_uring") || target.contains("eventfd") || target.equals("/dev/fuse");
            } catch (java.io.IOException e) {
                return false;
            }
        }));
    }

    private static long threads() {
        return Thread.getAllStackTraces().keySet().stream().filter(t -> t.getName().startsWith("fuse-queue-") || t.getName().equals("fuse-affinity")).count();
    }
}
