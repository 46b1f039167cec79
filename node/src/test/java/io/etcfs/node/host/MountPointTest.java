package io.etcfs.node.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MountPointTest {
    @TempDir
    private Path directory;

    @Test
    void resolvesLinksToAFreeDirectory() throws Exception {
        Path real = Files.createDirectory(directory.toRealPath().resolve("real"));
        Path link = Files.createSymbolicLink(directory.resolve("link"), real);
        assertEquals(real, MountPoint.prepare(real));
        assertEquals(real, MountPoint.prepare(link));
        assertEquals(real, MountPoint.prepare(directory.resolve("x/../real/.")));
    }

    @Test
    void eachBadPlaceIsNamedWithARemedy() throws Exception {
        Path file = Files.writeString(directory.resolve("file"), "");
        assertRefused(file, "is not a directory");
        assertRefused(directory.resolve("none"), "does not exist");
        assertRefused(directory.resolve("none/below"), "does not exist");
        assertRefused(file.resolve("below"), "does not exist");
        assertRefused(Path.of("/proc"), "is busy");
    }

    private static void assertRefused(Path point, String why) {
        Refusal refusal = assertThrows(Refusal.class, () -> MountPoint.prepare(point));
        assertEquals(ExitCode.MOUNT_FAILED, refusal.exitCode());
        assertTrue(refusal.getMessage().contains(why) && refusal.getMessage().contains(point.toString()), refusal.getMessage());
    }
}
