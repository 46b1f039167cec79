package io.etcfs.core.label;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;

/**
 * Traces of other uses at the known places of a device, so that mkfs does not destroy one by mistake. Reads the first
 * {@value #HEAD_BYTES} bytes and the last {@value #TAIL_BYTES}. The list is short on purpose: it is what a machine without blkid(8) gets.
 */
public final class Signature {
    static final int HEAD_BYTES = 128 << 10;
    static final int TAIL_BYTES = 64 << 10;

    /** {@code magic} at {@code offset} from the start of the device. */
    private record Mark(String what, int offset, byte[] magic) {
        Mark(String what, int offset, String magic) {
            this(what, offset, magic.getBytes(StandardCharsets.ISO_8859_1));
        }
    }

    private static final List<Mark> MARKS = List.of(
            new Mark("an xfs filesystem", 0, "XFSB"),
            new Mark("an ext2/3/4 filesystem", 0x438, "\u0053\u00ef"),
            new Mark("a btrfs filesystem", 0x10040, "_BHRfS_M"),
            new Mark("a gfs2 filesystem", 0x10000, "\u0001\u0016\u0019\u0070"),
            new Mark("an ocfs2 filesystem", 0x400, "OCFSV2"),
            new Mark("an ocfs2 filesystem", 0x800, "OCFSV2"),
            new Mark("an ocfs2 filesystem", 0x1000, "OCFSV2"),
            new Mark("an ocfs2 filesystem", 0x2000, "OCFSV2"),
            new Mark("an f2fs filesystem", 0x400, "\u0010\u0020\u00f5\u00f2"),
            new Mark("an NTFS filesystem", 3, "NTFS    "),
            new Mark("an exFAT filesystem", 3, "EXFAT   "),
            new Mark("a FAT filesystem", 0x52, "FAT32   "),
            new Mark("a FAT filesystem", 0x36, "FAT16   "),
            new Mark("a FAT filesystem", 0x36, "FAT12   "),
            new Mark("an ISO 9660 filesystem", 0x8001, "CD001"),
            new Mark("a squashfs filesystem", 0, "hsqs"),
            new Mark("a LUKS volume", 0, "LUKS\u00ba\u00be"),
            new Mark("an LVM physical volume", 24, "LVM2 001"),
            new Mark("an LVM physical volume", 512 + 24, "LVM2 001"),
            new Mark("an LVM physical volume", 1024 + 24, "LVM2 001"),
            new Mark("an LVM physical volume", 1536 + 24, "LVM2 001"),
            new Mark("a Linux RAID member", 0, "\u00fc\u004e\u002b\u00a9"),
            new Mark("a Linux RAID member", 0x1000, "\u00fc\u004e\u002b\u00a9"),
            new Mark("swap space", 4096 - 10, "SWAPSPACE2"),
            new Mark("swap space", 8192 - 10, "SWAPSPACE2"),
            new Mark("swap space", 16384 - 10, "SWAPSPACE2"),
            new Mark("swap space", 65536 - 10, "SWAPSPACE2"),
            new Mark("a suspended system", 4096 - 10, "S1SUSPEND"),
            new Mark("a GPT partition table", 512, "EFI PART"),
            new Mark("a GPT partition table", 4096, "EFI PART"),
            new Mark("an MBR partition table or boot sector", 510, "\u0055\u00aa"));

    private Signature() {}

    /** What a device seems to hold, as a phrase with its article; empty if nothing is recognised. */
    public static Optional<String> find(BlockDevice device) throws DeviceException {
        long size = device.sizeBytes() & -BlockDevice.BLOCK_BYTES;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment head = arena.allocate(Math.min(HEAD_BYTES, size), BlockDevice.BLOCK_BYTES);
            device.read(0, head);
            Optional<String> found = inHead(head);
            if (found.isPresent() || size <= HEAD_BYTES + TAIL_BYTES) {
                return found;
            }
            MemorySegment tail = arena.allocate(TAIL_BYTES, BlockDevice.BLOCK_BYTES);
            device.read(size - TAIL_BYTES, tail);
            return inTail(tail);
        }
    }

    /** Zeroes every place that {@link #find} looks at, and flushes: later nobody takes the device for what it was. */
    static void wipe(BlockDevice device) throws DeviceException {
        long size = device.sizeBytes() & -BlockDevice.BLOCK_BYTES;
        try (Arena arena = Arena.ofConfined()) {
            device.write(0, arena.allocate(Math.min(HEAD_BYTES, size), BlockDevice.BLOCK_BYTES));
            if (size > HEAD_BYTES + TAIL_BYTES) {
                device.write(size - TAIL_BYTES, arena.allocate(TAIL_BYTES, BlockDevice.BLOCK_BYTES));
            }
            device.flush();
        }
    }

    private static Optional<String> inHead(MemorySegment head) {
        if (Label.hasMagic(head.asSlice(0, Label.BYTES).toArray(ValueLayout.JAVA_BYTE))) {
            return Optional.of("an EtcFS filesystem");
        }
        return MARKS.stream().filter(mark -> holds(head, mark)).map(Mark::what).findFirst();
    }

    /** The backup GPT is in the last sector, an old Linux RAID superblock 64 KiB aligned before the end. */
    private static Optional<String> inTail(MemorySegment tail) {
        for (int sector : new int[] {512, 4096}) {
            if (holds(tail, new Mark("", TAIL_BYTES - sector, "EFI PART"))) {
                return Optional.of("the backup of a GPT partition table");
            }
        }
        for (int offset = 0; offset < TAIL_BYTES; offset += BlockDevice.BLOCK_BYTES) {
            if (holds(tail, new Mark("", offset, "\u00fc\u004e\u002b\u00a9"))) {
                return Optional.of("a Linux RAID member");
            }
        }
        return Optional.empty();
    }

    private static boolean holds(MemorySegment bytes, Mark mark) {
        return mark.offset + mark.magic.length <= bytes.byteSize()
                && bytes.asSlice(mark.offset, mark.magic.length).mismatch(MemorySegment.ofArray(mark.magic)) < 0;
    }
}
