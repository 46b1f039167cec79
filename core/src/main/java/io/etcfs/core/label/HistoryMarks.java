package io.etcfs.core.label;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.record.proto.Super;
import io.etcfs.core.space.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32C;

/**
 * How far etcd's history had come, in the blocks between the label and the first arena's own: what etcd itself can't tell once an older snapshot of it has been restored. Each node
 * writes two of them by turns, chosen by its name. A block, little endian:
 *
 * <pre>
 *    0  magic, 8 bytes             24  revision of etcd, 8                40  length of the node's name, 2
 *    8  filesystem uuid, 16        32  revision of its batch marker, 8    42  the name, ASCII, at most 63 bytes
 *                                                                       4092  CRC32C of the bytes before it, 4
 * </pre>
 *
 * <p>A mark is only ever a lower bound, so any of them may be missing, torn, late, or overwritten by another node whose name chose the same block: what is left says less, and nothing
 * wrong. Those of another filesystem and what is damaged are not looked at.
 */
public final class HistoryMarks {
    private static final byte[] MAGIC = {'E', 't', 'c', 'F', 'S', 'r', 'e', 'v'};
    private static final int UUID_BYTES = 16;
    private static final int NAME_OFFSET = 40;
    private static final int MAX_NAME = 63;
    private static final int CRC_OFFSET = BlockDevice.BLOCK_BYTES - Integer.BYTES;
    private static final int BLOCKS = Arena.RESERVED_BLOCKS - 1;
    private static final int APART = BLOCKS / 2;

    /**
     * @param revision       that etcd had
     * @param markerRevision at which the node's {@code batch:} had been put last
     */
    public record Mark(String node, long revision, long markerRevision) {}

    private final BlockDevice device;
    private final byte[] uuid;
    private final String node;
    private int turn;

    /** @param device as the node may write it */
    public HistoryMarks(BlockDevice device, Super superblock, String node) {
        this.device = device;
        this.uuid = uuid(superblock);
        this.node = node;
    }

    private static byte[] uuid(Super superblock) {
        return Arrays.copyOf(superblock.getFilesystemUuid().toByteArray(), UUID_BYTES);
    }

    /** All that can be read. */
    public static List<Mark> read(BlockDevice device, Super superblock) throws DeviceException {
        byte[] uuid = uuid(superblock);
        List<Mark> marks = new ArrayList<>();
        try (java.lang.foreign.Arena memory = java.lang.foreign.Arena.ofConfined()) {
            MemorySegment blocks = memory.allocate((long) BLOCKS * BlockDevice.BLOCK_BYTES, BlockDevice.BLOCK_BYTES);
            device.read(BlockDevice.BLOCK_BYTES, blocks);
            for (int i = 0; i < BLOCKS; i++) {
                Mark mark = decode(blocks.asSlice((long) i * BlockDevice.BLOCK_BYTES, BlockDevice.BLOCK_BYTES).toArray(ValueLayout.JAVA_BYTE), uuid);
                if (mark != null) {
                    marks.add(mark);
                }
            }
        }
        return marks;
    }

    /** Not durable before the next flush, which others make all the time: one that is lost leaves the one before it. By one thread at a time. */
    public void write(long revision, long markerRevision) throws DeviceException {
        int slot = Math.floorMod(node.hashCode() + turn * APART, BLOCKS);
        turn = 1 - turn;
        try (java.lang.foreign.Arena memory = java.lang.foreign.Arena.ofShared()) {
            MemorySegment block = memory.allocate(BlockDevice.BLOCK_BYTES, BlockDevice.BLOCK_BYTES);
            block.copyFrom(MemorySegment.ofArray(encode(new Mark(node, revision, markerRevision), uuid)));
            device.write((1L + slot) * BlockDevice.BLOCK_BYTES, block);
        }
    }

    static byte[] encode(Mark mark, byte[] uuid) {
        ByteBuffer block = ByteBuffer.allocate(BlockDevice.BLOCK_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        byte[] name = mark.node().getBytes(StandardCharsets.US_ASCII);
        if (name.length > MAX_NAME) {
            throw new IllegalArgumentException("name of " + name.length + " bytes");
        }
        block.put(MAGIC).put(uuid).putLong(mark.revision()).putLong(mark.markerRevision()).putShort((short) name.length).put(name);
        block.putInt(CRC_OFFSET, checksum(block.array()));
        return block.array();
    }

    /** Null if it is none of this filesystem's. */
    static Mark decode(byte[] block, byte[] uuid) {
        ByteBuffer in = ByteBuffer.wrap(block).order(ByteOrder.LITTLE_ENDIAN);
        if (!Arrays.equals(block, 0, MAGIC.length, MAGIC, 0, MAGIC.length) || in.getInt(CRC_OFFSET) != checksum(block)
                || !Arrays.equals(block, MAGIC.length, MAGIC.length + UUID_BYTES, uuid, 0, UUID_BYTES)) {
            return null;
        }
        in.position(MAGIC.length + UUID_BYTES);
        long revision = in.getLong();
        long markerRevision = in.getLong();
        int length = Short.toUnsignedInt(in.getShort());
        return length > MAX_NAME ? null : new Mark(new String(block, NAME_OFFSET + Short.BYTES, length, StandardCharsets.US_ASCII), revision, markerRevision);
    }

    private static int checksum(byte[] block) {
        CRC32C crc = new CRC32C();
        crc.update(block, 0, CRC_OFFSET);
        return (int) crc.getValue();
    }
}
