package io.etcfs.cli.mkfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.etcfs.core.label.Signature;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What the real tools write is recognised, by us and, where it is there, by blkid. Tools that this machine lacks are left out. */
class ForeignSignaturesTest {
    record Tool(String expected, List<String> command) {}

    @TempDir
    private Path directory;

    static Stream<Tool> tools() {
        return Stream.of(
                new Tool("ext2/3/4", List.of("mkfs.ext4", "-q", "-F")),
                new Tool("ext2/3/4", List.of("mkfs.ext2", "-q", "-F")),
                new Tool("xfs", List.of("mkfs.xfs", "-q", "-f")),
                new Tool("btrfs", List.of("mkfs.btrfs", "-q", "-f")),
                new Tool("FAT", List.of("mkfs.vfat", "-F", "32")),
                new Tool("f2fs", List.of("mkfs.f2fs", "-q", "-f")),
                new Tool("swap", List.of("mkswap")),
                new Tool("gfs2", List.of("mkfs.gfs2", "-q", "-O", "-p", "lock_nolock")),
                new Tool("partition table", List.of("sh", "-c", "echo 2048,,83 | sfdisk -q \"$0\"")),
                new Tool("GPT", List.of("sh", "-c", "printf 'label: gpt\\n,,L\\n' | sfdisk -q \"$0\"")));
    }

    @ParameterizedTest
    @MethodSource("tools")
    void recognisesWhatToolsWrite(Tool tool) throws Exception {
        Path image = directory.resolve("image");
        try (ImageDevice device = new ImageDevice(image, 400L << 20)) {
            assertEquals(Optional.empty(), Signature.find(device));
            Process process;
            try {
                process = new ProcessBuilder(Stream.concat(tool.command().stream(), Stream.of(image.toString())).toList())
                        .redirectErrorStream(true).redirectOutput(directory.resolve("out").toFile()).start();
            } catch (IOException e) {
                assumeTrue(false, tool.command().getFirst() + " is not installed");
                return;
            }
            assumeTrue(process.waitFor() == 0, () -> tool + " can't be run here");
            String found = Signature.find(device).orElse("nothing");
            assertTrue(found.contains(tool.expected()), found);
            assumeTrue(Files.exists(Path.of("/usr/sbin/blkid")) || Files.exists(Path.of("/sbin/blkid")), "no blkid");
            assertTrue(Blkid.find(image).isPresent());
        }
    }

    @Test
    void blkidsAnswersBecomePhrases() {
        assertEquals(Optional.of("a signature of type LVM2_member"), Blkid.describe(0, "DEVNAME=/dev/x\nTYPE=LVM2_member\n"));
        assertEquals(Optional.of("a partition table of type dos"), Blkid.describe(0, "DEVNAME=/dev/x\nPTTYPE=dos\n"));
        assertEquals(Optional.of("traces of several filesystems"), Blkid.describe(8, ""));
        assertEquals(Optional.empty(), Blkid.describe(2, ""));
    }
}
