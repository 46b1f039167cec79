package io.etcfs.node.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.etcfs.linux.mount.MountInfo;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DeviceUseTest {
    private static final Path LOOP = Path.of("/dev/loop0");

    @TempDir
    private Path root;

    private void write(String path, String text) throws Exception {
        Path file = root.resolve(path);
        Files.createDirectories(file.getParent());
        Files.writeString(file, text);
    }

    private Optional<String> find(Path device, MountInfo... mounts) throws Exception {
        return new DeviceUse(root, List.of(mounts)).find(device);
    }

    private static MountInfo mount(int major, int minor, String point, String source) {
        return new MountInfo(1, 0, major, minor, "/", point, "rw", "ext4", source, "rw");
    }

    @Test
    void findsWhatLiesOnABlockDevice() throws Exception {
        assumeTrue(Files.exists(LOOP), "no loop device here");
        assertEquals(Optional.empty(), find(LOOP, mount(7, 1, "/", "/dev/loop1")));
        assertEquals(Optional.of("is mounted on /data"), find(LOOP, mount(7, 0, "/data", "/dev/root")));
        assertEquals(Optional.of("is mounted on /btrfs"), find(LOOP, mount(0, 44, "/btrfs", "/dev/loop0")));

        write("sys/dev/block/7:0/loop0p1/partition", "1");
        write("sys/dev/block/7:0/loop0p1/dev", "259:3\n");
        assertEquals(Optional.empty(), find(LOOP));
        assertEquals(Optional.of("has partition loop0p1, which is mounted on /boot"), find(LOOP, mount(259, 3, "/boot", "x")));

        write("sys/dev/block/7:0/holders/dm-3", "");
        assertEquals(Optional.of("is part of /dev/dm-3"), find(LOOP));

        write("proc/swaps", "Filename Type Size Used Priority\n/dev/loop0   partition 1 0 -2\n");
        assertEquals(Optional.of("is in use as swap space"), find(LOOP));
    }

    @Test
    void findsALoopDeviceOnAnImage() throws Exception {
        Path image = root.toRealPath().resolve("image");
        Files.writeString(image, "");
        assertEquals(Optional.empty(), find(image));
        write("sys/block/loop5/loop/backing_file", image + "\n");
        assertEquals(Optional.of("is behind /dev/loop5"), find(image));
    }

    @Test
    void refusesWhatIsNoDevice() {
        assertEquals(32, assertThrows(Refusal.class, () -> DeviceUse.requireDevice(root, 32)).exitCode());
        assertThrows(Refusal.class, () -> DeviceUse.requireDevice(root.resolve("none"), 1));
        assertThrows(Refusal.class, () -> DeviceUse.requireDevice(Path.of("/dev/null"), 1));
    }
}
