package io.etcfs.linux.device;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.etcfs.core.device.DeviceException;
import io.etcfs.linux.call.Descriptors;
import io.etcfs.linux.call.ErrorNumbers;
import io.etcfs.linux.call.LinuxException;
import java.io.RandomAccessFile;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DirectDeviceTest {
    private static final int MIB = 1 << 20;

    @TempDir
    Path directory;

    private Path image(long bytes) throws Exception {
        Path image = directory.resolve("image");
        try (RandomAccessFile file = new RandomAccessFile(image.toFile(), "rw")) {
            file.setLength(bytes);
        }
        return image;
    }

    private static MemorySegment filled(Arena arena, int bytes, int seed) {
        MemorySegment memory = arena.allocate(bytes, 4096);
        for (int i = 0; i < bytes; i += 4) {
            memory.set(ValueLayout.JAVA_INT, i, i * 31 + seed);
        }
        return memory;
    }

    private static void writesAndReads(DirectDevice device) throws DeviceException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment written = filled(arena, MIB + 4096, 7);
            device.write(3 * 4096, written);
            device.flush();
            MemorySegment read = arena.allocate(MIB + 4096, 4096);
            device.read(3 * 4096, read);
            assertEquals(-1, read.mismatch(written));
            device.read(4 * 4096, read.asSlice(0, 4096));
            assertEquals(-1, read.asSlice(0, 4096).mismatch(written.asSlice(4096, 4096)));
        }
    }

    @Test
    void aFileIsADevice() throws Exception {
        try (DirectDevice device = DirectDevice.open(image(4 * MIB + 5_000))) {
            assertEquals(4 * MIB + 4096, device.sizeBytes());
            assertTrue(device.hasVolatileCache());
            writesAndReads(device);
        }
    }

    @Test
    void virtualThreadsHaveTheirAccessesMadeElsewhere() throws Exception {
        try (DirectDevice device = DirectDevice.open(image(64L * 64 * 1024), 4); var executor = Executors.newVirtualThreadPerTaskExecutor()) {
            List<Future<Long>> results = new ArrayList<>();
            for (int i = 0; i < 64; i++) {
                long offset = i * 65_536L;
                int seed = i;
                results.add(executor.submit(() -> {
                    try (Arena arena = Arena.ofShared()) {
                        MemorySegment written = filled(arena, 65_536, seed);
                        // An interrupt must not end the wait for an access that is under way.
                        Thread.currentThread().interrupt();
                        device.write(offset, written);
                        MemorySegment read = arena.allocate(65_536, 4096);
                        device.read(offset, read);
                        device.flush();
                        return read.mismatch(written);
                    }
                }));
            }
            for (Future<Long> result : results) {
                assertEquals(-1, result.get());
            }
        }
    }

    @Test
    void refusesWhatIsNotAlignedOrOutside() throws Exception {
        try (DirectDevice device = DirectDevice.open(image(MIB)); Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(8192, 4096);
            assertThrows(IllegalArgumentException.class, () -> device.read(512, memory));
            assertThrows(IllegalArgumentException.class, () -> device.read(0, memory.asSlice(0, 512)));
            assertThrows(IllegalArgumentException.class, () -> device.write(0, memory.asSlice(512, 4096)));
            assertThrows(IllegalArgumentException.class, () -> device.write(0, MemorySegment.ofArray(new byte[4096])));
            assertThrows(DeviceException.class, () -> device.write(MIB - 4096, memory));
            assertThrows(IllegalArgumentException.class, () -> device.read(-4096, memory));
            assertThrows(DeviceException.class, () -> device.read(Long.MAX_VALUE & -4096, memory));
        }
    }

    @Test
    void nothingIsWrittenOnceItMayNotBe() throws Exception {
        try (DirectDevice device = DirectDevice.open(image(MIB)); Arena arena = Arena.ofShared()) {
            MemorySegment memory = arena.allocate(4096, 4096).fill((byte) 7);
            DeviceException late = assertThrows(DeviceException.class, () -> device.write(0, memory, () -> false));
            assertEquals(DeviceException.LATE, late.errno());
            assertTrue(late.getMessage().endsWith("not sent, as the time for it was over"), late.getMessage());
            // Asked where it is carried out: by the time a thread is free for it the answer may be another one.
            Thread caller = Thread.ofVirtual().unstarted(() -> assertEquals(DeviceException.LATE,
                    assertThrows(DeviceException.class, () -> device.write(0, memory, () -> Thread.currentThread().isVirtual())).errno()));
            AtomicReference<Throwable> failed = new AtomicReference<>();
            caller.setUncaughtExceptionHandler((t, e) -> failed.set(e));
            caller.start();
            caller.join();
            assertNull(failed.get());
            MemorySegment read = arena.allocate(4096, 4096).fill((byte) 1);
            device.read(0, read);
            assertNotEquals((byte) 7, read.get(ValueLayout.JAVA_BYTE, 0));
            device.write(0, memory, () -> true);
            device.read(0, read);
            assertEquals((byte) 7, read.get(ValueLayout.JAVA_BYTE, 0));
        }
    }

    @Test
    void aDeviceThatGetsShorterIsAnError() throws Exception {
        Path image = image(MIB);
        try (DirectDevice device = DirectDevice.open(image); Arena arena = Arena.ofConfined()) {
            try (RandomAccessFile file = new RandomAccessFile(image.toFile(), "rw")) {
                file.setLength(10_000);
            }
            MemorySegment memory = arena.allocate(65_536, 4096);
            assertEquals(5, assertThrows(DeviceException.class, () -> device.read(0, memory)).errno());
            assertEquals(5, assertThrows(DeviceException.class, () -> device.read(65_536, memory)).errno());
        }
    }

    @Test
    void nothingReachesAClosedDevice() throws Exception {
        DirectDevice device = DirectDevice.open(image(MIB));
        device.close();
        device.close();
        try (Arena arena = Arena.ofShared()) {
            MemorySegment memory = arena.allocate(4096, 4096);
            assertThrows(DeviceException.class, () -> device.read(0, memory));
            Thread thread = Thread.ofVirtual().start(() -> assertThrows(DeviceException.class, () -> device.write(0, memory)));
            thread.join();
        }
    }

    @Test
    void otherThingsAreRefused() {
        assertEquals(2, assertThrows(LinuxException.class, () -> DirectDevice.open(directory.resolve("nothing"))).errno());
        assertThrows(LinuxException.class, () -> DirectDevice.open(directory));
        assertThrows(LinuxException.class, () -> DirectDevice.open(Path.of("/dev/null")));
    }

    @Test
    void volatileCacheIsAssumedUnlessTheKernelDeniesIt() throws Exception {
        Path disk = Files.createDirectories(directory.resolve("disk/queue")).getParent();
        Path partition = Files.createDirectories(disk.resolve("disk1"));
        Path link = Files.createSymbolicLink(directory.resolve("8:1"), partition);
        assertTrue(DirectDevice.hasVolatileCache(directory.resolve("none")));
        assertTrue(DirectDevice.hasVolatileCache(disk));
        Files.writeString(disk.resolve("queue/write_cache"), "write back\n");
        assertTrue(DirectDevice.hasVolatileCache(disk));
        Files.writeString(disk.resolve("queue/write_cache"), "write through\n");
        assertFalse(DirectDevice.hasVolatileCache(disk));
        assertFalse(DirectDevice.hasVolatileCache(link));
    }

    /** Two nodes on one host: the second has it when the first has left. */
    @Test
    void aBlockDeviceIsClaimedForAsLongAsAnybodyHasItOpen() throws Exception {
        assumeTrue("root".equals(System.getProperty("user.name")));
        String loop = attach(image(8 * MIB));
        try (DirectDevice second = claimedByTwo(loop)) {
            writesAndReads(second);
            long end = System.nanoTime() + 10_000_000_000L;
            while (canBeClaimed(loop)) {
                assertTrue(System.nanoTime() < end, "nobody claims it");
                Thread.sleep(20);
            }
        } finally {
            new ProcessBuilder("losetup", "--detach", loop).start().waitFor();
        }
    }

    /** The first one is closed. */
    private static DirectDevice claimedByTwo(String loop) throws Exception {
        try (DirectDevice first = DirectDevice.open(Path.of(loop))) {
            assertFalse(canBeClaimed(loop));
            return DirectDevice.open(Path.of(loop));
        }
    }

    /** As mkfs and mount do. */
    private static boolean canBeClaimed(String device) {
        int fd = Descriptors.open(device, Descriptors.O_RDWR | Descriptors.O_EXCL, 0);
        if (fd >= 0) {
            Descriptors.close(fd);
        }
        return fd != -ErrorNumbers.EBUSY;
    }

    private static String attach(Path image) throws Exception {
        Process losetup = new ProcessBuilder("losetup", "--find", "--show", image.toString()).start();
        String loop = new String(losetup.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
        assumeTrue(losetup.waitFor() == 0 && !loop.isEmpty());
        return loop;
    }

    @Test
    void aLoopDeviceIsABlockDevice() throws Exception {
        assumeTrue("root".equals(System.getProperty("user.name")));
        String loop = attach(image(8 * MIB));
        try (DirectDevice device = DirectDevice.open(Path.of(loop))) {
            assertEquals(8 * MIB, device.sizeBytes());
            writesAndReads(device);
        } finally {
            new ProcessBuilder("losetup", "--detach", loop).start().waitFor();
        }
    }
}
