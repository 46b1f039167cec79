package io.etcfs.linux.scsi;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;

/**
 * One command (SPC-4, SBC-3).
 *
 * @param data      native memory that the command's data comes from or goes to; length 0 if there is none
 * @param direction of the data
 */
public record ScsiCommand(byte[] cdb, Direction direction, MemorySegment data) {
    public enum Direction { NONE, IN, OUT }

    private static final int TEST_UNIT_READY = 0x00;
    private static final int PERSISTENT_RESERVE_IN = 0x5e;
    private static final int PERSISTENT_RESERVE_OUT = 0x5f;
    private static final int READ_16 = 0x88;
    private static final int WRITE_16 = 0x8a;
    private static final int SYNCHRONIZE_CACHE_16 = 0x91;
    private static final int SERVICE_ACTION_IN_16 = 0x9e;
    private static final int READ_CAPACITY_16 = 0x10;

    public static ScsiCommand testUnitReady() {
        return new ScsiCommand(new byte[6], Direction.NONE, MemorySegment.NULL);
    }

    /** @param target of 32 bytes */
    public static ScsiCommand readCapacity(MemorySegment target) {
        return new ScsiCommand(ByteBuffer.allocate(16).put(0, (byte) SERVICE_ACTION_IN_16).put(1, (byte) READ_CAPACITY_16).putInt(10, (int) target.byteSize()).array(), Direction.IN, target);
    }

    /** @param blocks that the target holds, of the unit's size */
    public static ScsiCommand read(long block, int blocks, MemorySegment target) {
        return new ScsiCommand(transfer(READ_16, block, blocks), Direction.IN, target);
    }

    public static ScsiCommand write(long block, int blocks, MemorySegment source) {
        return new ScsiCommand(transfer(WRITE_16, block, blocks), Direction.OUT, source);
    }

    private static byte[] transfer(int operation, long block, int blocks) {
        return ByteBuffer.allocate(16).put(0, (byte) operation).putLong(2, block).putInt(10, blocks).array();
    }

    /** The whole unit. */
    public static ScsiCommand synchronizeCache() {
        return new ScsiCommand(transfer(SYNCHRONIZE_CACHE_16, 0, 0), Direction.NONE, MemorySegment.NULL);
    }

    static ScsiCommand reserveIn(int action, MemorySegment target) {
        return new ScsiCommand(ByteBuffer.allocate(10).put(0, (byte) PERSISTENT_RESERVE_IN).put(1, (byte) action).putShort(7, (short) target.byteSize()).array(), Direction.IN, target);
    }

    /** @param type of the reservation, for the whole unit */
    static ScsiCommand reserveOut(int action, int type, MemorySegment parameters) {
        return new ScsiCommand(ByteBuffer.allocate(10).put(0, (byte) PERSISTENT_RESERVE_OUT).put(1, (byte) action).put(2, (byte) type).putInt(5, (int) parameters.byteSize()).array(), Direction.OUT,
                parameters);
    }
}
