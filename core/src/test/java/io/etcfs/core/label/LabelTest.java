package io.etcfs.core.label;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.device.DeviceException;
import io.etcfs.core.record.proto.Super;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.UUID;
import java.util.random.RandomGenerator;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;

class LabelTest {
    private static final Super RECORD = Super.newBuilder()
            .setFormatVersion(Label.FORMAT_VERSION)
            .setFilesystemUuid(Label.bytesOf(UUID.fromString("00112233-4455-6677-8899-aabbccddeeff")))
            .setEtcdClusterId(0xcdf818194e3a8c32L)
            .setBlockSize(4096)
            .setArenaSize(1L << 30)
            .setDeviceSize(5L << 30)
            .setName("mail-1.example_x")
            .setCreatedAtNs(1_764_500_000_123_456_789L)
            .build();

    @Test
    void readsWhatItWrote() throws Exception {
        Label label = Label.of(RECORD);
        assertEquals(label, Label.decode(label.encode()));
        ArrayDevice device = new ArrayDevice(64 << 10);
        label.write(device);
        assertEquals(label, Label.read(device));
        label.requireMatch(RECORD, "/dev/x", RECORD.getDeviceSize());
        label.requireMatch(RECORD, "/dev/x", RECORD.getDeviceSize() + 4096);
    }

    @Test
    void hasTheDocumentedLayout() {
        ByteBuffer block = ByteBuffer.wrap(Label.of(RECORD).encode()).order(ByteOrder.LITTLE_ENDIAN);
        assertEquals(4096, block.capacity());
        assertEquals(2, block.getInt(8));
        assertEquals(4096, block.getInt(12));
        assertEquals(0x00112233_44556677L, block.duplicate().order(ByteOrder.BIG_ENDIAN).getLong(16));
        assertEquals(0xcdf818194e3a8c32L, block.getLong(32));
        assertEquals(1L << 30, block.getLong(40));
        assertEquals(5L << 30, block.getLong(48));
        assertEquals(1_764_500_000_123_456_789L, block.getLong(56));
        assertEquals(16, block.getShort(64));
        assertEquals('m', block.get(66));
    }

    @Test
    void anyFlippedBitIsNoticed() {
        byte[] good = Label.of(RECORD).encode();
        RandomGenerator random = RandomGenerator.of("L64X128MixRandom");
        for (int i = 0; i < 2_000; i++) {
            byte[] bad = good.clone();
            int bit = random.nextInt(bad.length * 8);
            bad[bit / 8] ^= (byte) (1 << bit % 8);
            LabelException refused = assertThrows(LabelException.class, () -> Label.decode(bad), () -> "bit " + bit);
            assertEquals(bit < 64 ? LabelException.Reason.ABSENT : LabelException.Reason.DAMAGED, refused.reason());
        }
    }

    @Test
    void anEmptyDeviceHasNoLabel() {
        assertEquals(LabelException.Reason.ABSENT, assertThrows(LabelException.class, () -> Label.read(new ArrayDevice(64 << 10))).reason());
    }

    @Test
    void aLaterFormatIsRefusedByNumber() {
        byte[] block = Label.of(RECORD.toBuilder().setFormatVersion(7).build()).encode();
        LabelException refused = assertThrows(LabelException.class, () -> Label.decode(block));
        assertEquals(LabelException.Reason.OTHER_VERSION, refused.reason());
        assertTrue(refused.getMessage().contains("format 7"), refused.getMessage());
    }

    @Test
    void anImpossibleNameLengthIsDamageEvenWithAGoodChecksum() {
        ByteBuffer block = ByteBuffer.wrap(Label.of(RECORD).encode()).order(ByteOrder.LITTLE_ENDIAN);
        block.putShort(64, (short) -1);
        CRC32C crc = new CRC32C();
        crc.update(block.array(), 0, 4092);
        block.putInt(4092, (int) crc.getValue());
        assertEquals(LabelException.Reason.DAMAGED, assertThrows(LabelException.class, () -> Label.decode(block.array())).reason());
    }

    @Test
    void aDeviceThatLosesTheWriteIsNoticed() {
        ArrayDevice device = new ArrayDevice(64 << 10);
        device.losesWrites = true;
        assertThrows(DeviceException.class, () -> Label.of(RECORD).write(device));
    }

    @Test
    void eachMismatchNamesTheDeviceAndTheRemedy() {
        Label label = Label.of(RECORD);
        assertMismatch(label, RECORD.toBuilder().setName("other").build(), RECORD.getDeviceSize(), "--device");
        assertMismatch(label, RECORD.toBuilder().setFilesystemUuid(Label.bytesOf(new UUID(1, 2))).build(), RECORD.getDeviceSize(), "uuid");
        assertMismatch(label, RECORD.toBuilder().setEtcdClusterId(3).build(), RECORD.getDeviceSize(), "--etcd");
        assertMismatch(label, RECORD.toBuilder().setArenaSize(1L << 24).build(), RECORD.getDeviceSize(), "arena size");
        assertMismatch(label, RECORD, RECORD.getDeviceSize() - 1, "restore its size");
    }

    private static void assertMismatch(Label label, Super record, long bytes, String expected) {
        LabelException refused = assertThrows(LabelException.class, () -> label.requireMatch(record, "/dev/sdq", bytes));
        assertEquals(LabelException.Reason.MISMATCH, refused.reason());
        assertTrue(refused.getMessage().startsWith("/dev/sdq ") && refused.getMessage().contains(expected) && !refused.getMessage().contains("\n"), refused.getMessage());
    }
}
