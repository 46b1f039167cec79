package io.etcfs.core.label;

import com.google.protobuf.ByteString;
import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.record.proto.Super;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.UUID;
import java.util.zip.CRC32C;

/**
 * The first block of a device. Little endian:
 *
 * <pre>
 *    0  magic, 8 bytes             32  etcd cluster id, 8        56  creation, ns since the epoch, 8
 *    8  format version, 4          40  arena size in bytes, 8    64  length of the name, 2
 *   12  block size in bytes, 4     48  device size in bytes, 8   66  the name, ASCII, at most 63 bytes
 *   16  filesystem uuid, 16                                    4092  CRC32C of the bytes before it, 4
 * </pre>
 *
 * All other bytes are zero. The device size is the one at mkfs, rounded down to whole blocks: a device may grow, never shrink.
 */
public record Label(int formatVersion, UUID filesystemUuid, String name, long etcdClusterId, int blockSizeBytes, long arenaSizeBytes,
        long deviceSizeBytes, long createdAtNs) {
    public static final int BYTES = BlockDevice.BLOCK_BYTES;
    public static final int FORMAT_VERSION = 2;

    private static final byte[] MAGIC = {'E', 't', 'c', 'F', 'S', 0x1a, '\r', '\n'};
    private static final int NAME_OFFSET = 64;
    private static final int MAX_NAME = 63;
    private static final int CRC_OFFSET = BYTES - Integer.BYTES;

    /** The label that belongs to a {@code super} record. */
    public static Label of(Super record) {
        return new Label(record.getFormatVersion(), uuidOf(record), record.getName(), record.getEtcdClusterId(), record.getBlockSize(),
                record.getArenaSize(), record.getDeviceSize(), record.getCreatedAtNs());
    }

    static UUID uuidOf(Super record) {
        ByteBuffer bytes = record.getFilesystemUuid().asReadOnlyByteBuffer();
        return new UUID(bytes.getLong(), bytes.getLong());
    }

    static ByteString bytesOf(UUID uuid) {
        ByteBuffer bytes = ByteBuffer.allocate(16).putLong(uuid.getMostSignificantBits()).putLong(uuid.getLeastSignificantBits());
        return ByteString.copyFrom(bytes.flip());
    }

    /** One block, as {@link #decode} reads it. */
    public byte[] encode() {
        ByteBuffer block = ByteBuffer.allocate(BYTES).order(ByteOrder.LITTLE_ENDIAN);
        block.put(MAGIC).putInt(formatVersion).putInt(blockSizeBytes);
        block.put(bytesOf(filesystemUuid).toByteArray());
        block.putLong(etcdClusterId).putLong(arenaSizeBytes).putLong(deviceSizeBytes).putLong(createdAtNs);
        byte[] nameBytes = name.getBytes(StandardCharsets.US_ASCII);
        if (nameBytes.length > MAX_NAME) {
            throw new IllegalArgumentException("name of " + nameBytes.length + " bytes");
        }
        block.putShort((short) nameBytes.length).put(nameBytes);
        block.putInt(CRC_OFFSET, checksum(block.array()));
        return block.array();
    }

    /** Whether a block claims to be a label, whatever else is wrong with it. */
    public static boolean hasMagic(byte[] block) {
        return ByteBuffer.wrap(block, 0, MAGIC.length).equals(ByteBuffer.wrap(MAGIC));
    }

    /**
     * Reads a label from a device's first block.
     *
     * @throws LabelException it has none, one of a later format, or a damaged one
     */
    public static Label decode(byte[] block) throws LabelException {
        if (block.length < BYTES || !hasMagic(block)) {
            throw new LabelException(LabelException.Reason.ABSENT, "no EtcFS label");
        }
        ByteBuffer in = ByteBuffer.wrap(block).order(ByteOrder.LITTLE_ENDIAN);
        if (in.getInt(CRC_OFFSET) != checksum(block)) {
            throw new LabelException(LabelException.Reason.DAMAGED, "the EtcFS label is damaged (checksum)");
        }
        int version = in.getInt(MAGIC.length);
        if (version != FORMAT_VERSION) {
            throw new LabelException(LabelException.Reason.OTHER_VERSION, "the EtcFS label has format " + version + ", this program knows " + FORMAT_VERSION);
        }
        in.position(MAGIC.length + Integer.BYTES);
        int blockSize = in.getInt();
        UUID uuid = uuid(in);
        long clusterId = in.getLong();
        long arenaSize = in.getLong();
        long deviceSize = in.getLong();
        long created = in.getLong();
        int nameLength = Short.toUnsignedInt(in.getShort());
        if (nameLength > MAX_NAME) {
            throw new LabelException(LabelException.Reason.DAMAGED, "the EtcFS label is damaged (name)");
        }
        String name = new String(block, NAME_OFFSET + Short.BYTES, nameLength, StandardCharsets.US_ASCII);
        return new Label(version, uuid, name, clusterId, blockSize, arenaSize, deviceSize, created);
    }

    private static UUID uuid(ByteBuffer littleEndian) {
        byte[] bytes = new byte[16];
        littleEndian.get(bytes);
        ByteBuffer big = ByteBuffer.wrap(bytes);
        return new UUID(big.getLong(), big.getLong());
    }

    private static int checksum(byte[] block) {
        CRC32C crc = new CRC32C();
        crc.update(block, 0, CRC_OFFSET);
        return (int) crc.getValue();
    }

    public static Label read(BlockDevice device) throws DeviceException, LabelException {
        return decode(firstBlock(device));
    }

    static byte[] firstBlock(BlockDevice device) throws DeviceException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment block = arena.allocate(BYTES, BYTES);
            device.read(0, block);
            return block.toArray(ValueLayout.JAVA_BYTE);
        }
    }

    /** Returns once the label is durable and reads back as written. */
    void write(BlockDevice device) throws DeviceException {
        byte[] bytes = encode();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment block = arena.allocate(BYTES, BYTES);
            block.copyFrom(MemorySegment.ofArray(bytes));
            device.write(0, block);
            device.flush();
            block.fill((byte) 0);
            device.read(0, block);
            if (block.mismatch(MemorySegment.ofArray(bytes)) >= 0) {
                throw new DeviceException(5, "the label reads back differently from what was written");
            }
        }
    }

    /**
     * Compares a device with the filesystem that is to be mounted from it.
     *
     * @param device      how the user named it, for the message
     * @param actualBytes its size now
     * @throws LabelException MISMATCH, with a line for the user
     */
    public void requireMatch(Super record, String device, long actualBytes) throws LabelException {
        if (!name.equals(record.getName())) {
            throw mismatch(device + " belongs to filesystem '" + name + "', not to '" + record.getName() + "': name the right --device");
        }
        if (!filesystemUuid.equals(uuidOf(record))) {
            throw mismatch(device + " belongs to another filesystem named '" + name + "' (uuid " + filesystemUuid + ", made " + Instant.ofEpochSecond(0, createdAtNs)
                    + "; etcd has " + uuidOf(record) + "): name the right --device and --etcd");
        }
        if (etcdClusterId != record.getEtcdClusterId()) {
            throw mismatch(device + " belongs to etcd cluster " + Long.toHexString(etcdClusterId) + ", '" + name + "' to " + Long.toHexString(record.getEtcdClusterId())
                    + ": name the right --etcd");
        }
        if (blockSizeBytes != record.getBlockSize() || arenaSizeBytes != record.getArenaSize()) {
            throw mismatch(device + " and etcd disagree about the block or arena size of '" + name + "': do not use it before the cause is known");
        }
        if (actualBytes < record.getDeviceSize()) {
            throw mismatch(device + " has " + actualBytes + " bytes, '" + name + "' was made on " + record.getDeviceSize() + ": restore its size or name the right --device");
        }
    }

    private static LabelException mismatch(String message) {
        return new LabelException(LabelException.Reason.MISMATCH, message);
    }
}
