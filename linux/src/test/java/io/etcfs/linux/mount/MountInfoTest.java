package io.etcfs.linux.mount;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class MountInfoTest {
    @Test
    void parsesLinesWithAndWithoutOptionalFields() {
        List<MountInfo> mounts = MountInfo.parse("36 35 98:0 /sub /mnt rw,noatime master:1 shared:7 - ext3 /dev/root rw,errors=continue\n"
                + "41 36 0:55 / /a\\040b\\011c\\012d\\134e rw - fuse.etcfs my\\040fs rw,user_id=0\n");
        assertEquals(List.of(new MountInfo(36, 35, 98, 0, "/sub", "/mnt", "rw,noatime", "ext3", "/dev/root", "rw,errors=continue"),
                new MountInfo(41, 36, 0, 55, "/", "/a b\tc\nd\\e", "rw", "fuse.etcfs", "my fs", "rw,user_id=0")), mounts);
    }

    @Test
    void namesAreUtf8AndOddEscapesStay() {
        String bytes = new String("/größe".getBytes(StandardCharsets.UTF_8), StandardCharsets.ISO_8859_1);
        assertEquals("/größe", MountInfo.unescape(bytes));
        assertEquals("\\", MountInfo.unescape("\\"));
        assertEquals("a\\9z", MountInfo.unescape("a\\9z"));
        assertEquals("\\04", MountInfo.unescape("\\04"));
    }

    @Test
    void readsThoseOfThisProcess() throws Exception {
        assertTrue(Mounts.at(Path.of("/proc")).isPresent());
        assertTrue(Mounts.at(Path.of("/not/mounted")).isEmpty());
        assertFalse(Mounts.isDead(Path.of("/proc")));
        assertEquals(0, Mounts.clearDead(Path.of("/proc")));
    }

    @Test
    void flagsAreAppliedInTheirOrder() {
        List<String> others = new ArrayList<>();
        assertEquals(MountFlags.NODEV | MountFlags.NOSUID | MountFlags.NOATIME,
                MountFlags.parse(List.of("ro", "nodev", "commit=op", "nosuid", "noexec", "noatime", "rw", "exec", "_netdev"), others));
        assertEquals(List.of("commit=op", "_netdev"), others);
        assertEquals(0, MountFlags.parse(List.of("defaults", "nodev", "dev"), others));
    }
}
