package io.etcfs.linux.scsi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.etcfs.core.device.DeviceException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Structures of SG_IO and of the NVMe passthrough as C has them, and devices that have no reservations. */
class KernelUnitTest {
    @Test
    void theHeaderOfSgIo() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment data = arena.allocate(0x1234, 8);
            MemorySegment cdb = arena.allocate(10);
            MemorySegment sense = arena.allocate(64);
            MemorySegment header = KernelUnit.Scsi.header(ScsiCommand.reserveIn(0, data), cdb, sense, arena);
            assertEquals(88, header.byteSize());
            assertEquals('S', header.get(ValueLayout.JAVA_INT, 0));
            assertEquals(-3, header.get(ValueLayout.JAVA_INT, 4), "SG_DXFER_FROM_DEV");
            assertEquals(10, header.get(ValueLayout.JAVA_BYTE, 8));
            assertEquals(64, header.get(ValueLayout.JAVA_BYTE, 9));
            assertEquals(0x1234, header.get(ValueLayout.JAVA_INT, 12));
            assertEquals(data.address(), header.get(ValueLayout.JAVA_LONG, 16));
            assertEquals(cdb.address(), header.get(ValueLayout.JAVA_LONG, 24));
            assertEquals(sense.address(), header.get(ValueLayout.JAVA_LONG, 32));
            assertEquals(10_000, header.get(ValueLayout.JAVA_INT, 40));
        }
    }

    private static ScsiResult result(int status, int hostStatus, int... sense) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment header = arena.allocate(88, 8);
            header.set(ValueLayout.JAVA_BYTE, 64, (byte) status);
            header.set(ValueLayout.JAVA_BYTE, 67, (byte) sense.length);
            header.set(ValueLayout.JAVA_SHORT, 68, (short) hostStatus);
            MemorySegment bytes = arena.allocate(64, 8);
            for (int i = 0; i < sense.length; i++) {
                bytes.set(ValueLayout.JAVA_BYTE, i, (byte) sense[i]);
            }
            return KernelUnit.Scsi.result(header, bytes);
        }
    }

    @Test
    void senseDataOfBothFormats() {
        assertEquals(new ScsiResult(0, 0, 0), result(0, 0));
        assertEquals(new ScsiResult(2, 6, 0x2a03), result(2, 0, 0x70, 0, 6, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x2a, 0x03, 0, 0, 0, 0));
        assertEquals(new ScsiResult(2, 5, 0x2400), result(2, 0, 0x72, 5, 0x24, 0, 0, 0, 0, 0));
        assertEquals(new ScsiResult(0x18, 0, 0), result(0x18, 0));
        assertEquals(new ScsiResult(ScsiResult.LOST, 0, 0), result(0, 3), "DID_TIME_OUT");
        assertTrue(result(2, 0, 0x70, 0, 6, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x29, 0).again());
    }

    @Test
    void theReportOfNvme() throws Exception {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment report = arena.allocate(65_536, 8);
            MemorySegment command = KernelUnit.Nvme.command(7, true, report, arena);
            assertEquals(72, command.byteSize());
            assertEquals(0x0e, command.get(ValueLayout.JAVA_BYTE, 0));
            assertEquals(7, command.get(ValueLayout.JAVA_INT, 4));
            assertEquals(report.address(), command.get(ValueLayout.JAVA_LONG, 24));
            assertEquals(65_536, command.get(ValueLayout.JAVA_INT, 36));
            assertEquals(16_383, command.get(ValueLayout.JAVA_INT, 40), "dwords, counted from 0");
            assertEquals(1, command.get(ValueLayout.JAVA_INT, 44));
            assertEquals(List.of(), KernelUnit.Nvme.keys(report, true));
            assertEquals(Reservations.NO_TYPE, KernelUnit.Nvme.type(report));
            report.set(ValueLayout.JAVA_BYTE, 4, (byte) 3);
            report.set(ValueLayout.JAVA_BYTE, 5, (byte) 2);
            report.set(ValueLayout.JAVA_LONG, 64 + 8, 0x11);
            report.set(ValueLayout.JAVA_LONG, 128 + 8, 0x22);
            report.set(ValueLayout.JAVA_LONG, 24 + 16, 0x33);
            assertEquals(List.of(0x11L, 0x22L), KernelUnit.Nvme.keys(report, true));
            assertEquals(List.of(0x33L, 0L), KernelUnit.Nvme.keys(report, false));
            assertEquals(Reservations.WRITE_EXCLUSIVE_REGISTRANTS_ONLY, KernelUnit.Nvme.type(report));
            report.set(ValueLayout.JAVA_BYTE, 6, (byte) 0xff);
            assertThrows(DeviceException.class, () -> KernelUnit.Nvme.keys(report, true));
        }
    }

    private static Path image(Path directory) throws IOException {
        Path image = directory.resolve("image");
        try (RandomAccessFile file = new RandomAccessFile(image.toFile(), "rw")) {
            file.setLength(1 << 20);
        }
        return image;
    }

    private static void assertRefused(Path device) {
        DeviceException refused = assertThrows(DeviceException.class, () -> KernelUnit.open(device).close());
        assertTrue(refused.getMessage().startsWith(device + " has no persistent reservations that can be read: SG_IO: "), refused.getMessage());
    }

    @Test
    void aFileHasNone(@TempDir Path directory) throws Exception {
        assertRefused(image(directory));
        assertThrows(DeviceException.class, () -> KernelUnit.open(directory.resolve("missing")));
    }

    @Test
    void aLoopDeviceHasNone(@TempDir Path directory) throws Exception {
        Process losetup = new ProcessBuilder("losetup", "--show", "-f", image(directory).toString()).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        String device = new String(losetup.getInputStream().readAllBytes()).strip();
        assumeTrue(losetup.waitFor() == 0, "no loop device without root");
        try {
            assertRefused(Path.of(device));
        } finally {
            assertEquals(0, new ProcessBuilder("losetup", "-d", device).start().waitFor());
        }
    }

    @Test
    void onlyPcieEndsAllWithItsController(@TempDir Path owner) throws Exception {
        assertFalse(KernelUnit.arePcie(owner), "not known");
        for (String controller : List.of("nvme0", "nvme1")) {
            Files.createDirectories(owner.resolve(controller));
            Files.writeString(owner.resolve(controller).resolve("transport"), "pcie\n");
            assertTrue(KernelUnit.arePcie(owner));
        }
        Files.writeString(owner.resolve("nvme1").resolve("transport"), "tcp\n");
        assertFalse(KernelUnit.arePcie(owner));
        Path controller = Files.createDirectories(owner.resolve("alone"));
        Files.writeString(controller.resolve("transport"), "pcie\n");
        assertTrue(KernelUnit.arePcie(controller));
    }
}
