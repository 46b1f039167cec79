package io.etcfs.core.label;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.etcfs.core.record.proto.Super;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Optional;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Offsets and magic numbers here are written from the formats' own documentation, not taken from the class under test. */
class SignatureTest {
    @ParameterizedTest
    @CsvSource({
        "0, 58465342, an xfs filesystem",
        "1080, 53ef, an ext2/3/4 filesystem",
        "65600, 5f42485266535f4d, a btrfs filesystem",
        "65536, 01161970, a gfs2 filesystem",
        "8192, 4f4346535632, an ocfs2 filesystem",
        "1024, 1020f5f2, an f2fs filesystem",
        "3, 4e54465320202020, an NTFS filesystem",
        "82, 4641543332202020, a FAT filesystem",
        "32769, 4344303031, an ISO 9660 filesystem",
        "0, 4c554b53babe, a LUKS volume",
        "536, 4c564d3220303031, an LVM physical volume",
        "4096, fc4e2ba9, a Linux RAID member",
        "4086, 53574150535041434532, swap space",
        "65526, 53574150535041434532, swap space",
        "512, 4546492050415254, a GPT partition table",
        "510, 55aa, an MBR partition table or boot sector",
        "1048064, 4546492050415254, the backup of a GPT partition table",
        "983040, fc4e2ba9, a Linux RAID member",
    })
    void recognises(int offset, String hex, String what) throws Exception {
        ArrayDevice device = new ArrayDevice(1 << 20);
        byte[] magic = HexFormat.of().parseHex(hex);
        System.arraycopy(magic, 0, device.bytes, offset, magic.length);
        assertEquals(Optional.of(what), Signature.find(device));
        Signature.wipe(device);
        assertEquals(Optional.empty(), Signature.find(device));
    }

    @Test
    void recognisesItsOwnLabelAlsoWhenDamaged() throws Exception {
        ArrayDevice device = new ArrayDevice(1 << 20);
        Label.of(Super.newBuilder().setName("x").setFilesystemUuid(Label.bytesOf(new UUID(1, 2))).build()).write(device);
        device.bytes[100] ^= 1;
        assertEquals(Optional.of("an EtcFS filesystem"), Signature.find(device));
    }

    @Test
    void findsNothingInZeroesOrText() throws Exception {
        ArrayDevice device = new ArrayDevice(1 << 20);
        assertEquals(Optional.empty(), Signature.find(device));
        byte[] line = "all work and no play\n".getBytes(StandardCharsets.US_ASCII);
        for (int i = 0; i < device.bytes.length; i++) {
            device.bytes[i] = line[i % line.length];
        }
        assertEquals(Optional.empty(), Signature.find(device));
    }

    @Test
    void canReadADeviceSmallerThanItsHead() throws Exception {
        ArrayDevice device = new ArrayDevice(8192);
        assertEquals(Optional.empty(), Signature.find(device));
    }
}
