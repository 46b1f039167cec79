package io.etcfs.node.daemon;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.etcfs.linux.device.DirectDevice;
import io.etcfs.node.host.Refusal;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SharedDeviceTest {
    @TempDir
    Path directory;

    private static String refused(String device) {
        return assertThrows(Refusal.class, () -> SharedDevice.open(device, "fs/n2", new FencerChoice(FencerChoice.Kind.PR, null), () -> {}, 32)).getMessage();
    }

    /** Also where that has been cut off, and only stands still. */
    @Test
    void aSecondNodeOfAHostIsRefusedWhereOnlyHostsAreKnown() throws Exception {
        assumeTrue("root".equals(System.getProperty("user.name")));
        Path image = directory.resolve("image");
        try (RandomAccessFile file = new RandomAccessFile(image.toFile(), "rw")) {
            file.setLength(8 << 20);
        }
        Process losetup = new ProcessBuilder("losetup", "--find", "--show", image.toString()).start();
        String loop = new String(losetup.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
        assumeTrue(losetup.waitFor() == 0 && !loop.isEmpty());
        try {
            try (DirectDevice first = DirectDevice.open(Path.of(loop))) {
                assertTrue(first.isClaimed());
                assertTrue(refused(loop).contains("another process of this host uses " + loop), loop);
            }
            // A loop device has no reservations.
            assertFalse(refused(loop).contains("another process"), loop);
        } finally {
            new ProcessBuilder("losetup", "--detach", loop).start().waitFor();
        }
    }
}
