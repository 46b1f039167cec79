package io.etcfs.core.check;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.record.NameHash;
import io.etcfs.core.record.proto.Super;
import io.etcfs.core.space.Arena;

/** What the superblock says of the device and of names. Units: blocks of 4 KiB. */
record Geometry(long deviceBlocks, long arenaBlocks, NameHash nameHash) {
    private static final int FORMAT = 2;

    /** @throws IllegalArgumentException no filesystem of this program has such a superblock; the message says why */
    static Geometry of(Super superblock, String filesystem) {
        if (superblock.getFormatVersion() != FORMAT) {
            throw new IllegalArgumentException("its format version is " + superblock.getFormatVersion() + ", this program knows " + FORMAT);
        }
        if (!superblock.getName().equals(filesystem)) {
            throw new IllegalArgumentException("it names filesystem '" + superblock.getName() + "'");
        }
        long arenaBlocks = superblock.getArenaSize() / BlockDevice.BLOCK_BYTES;
        long deviceBlocks = superblock.getDeviceSize() / BlockDevice.BLOCK_BYTES;
        if (superblock.getBlockSize() != BlockDevice.BLOCK_BYTES || arenaBlocks <= 0 || arenaBlocks > Integer.MAX_VALUE || superblock.getArenaSize() % (Arena.SEGMENT_BLOCKS * (long) BlockDevice.BLOCK_BYTES) != 0 || deviceBlocks <= 0) {
            throw new IllegalArgumentException("blocks of " + superblock.getBlockSize() + " bytes, arenas of " + superblock.getArenaSize() + ", a device of " + superblock.getDeviceSize());
        }
        if (superblock.getNameHashKey().size() != NameHash.KEY_BYTES) {
            throw new IllegalArgumentException("its name hash key has " + superblock.getNameHashKey().size() + " bytes");
        }
        return new Geometry(deviceBlocks, arenaBlocks, new NameHash(superblock.getNameHashKey().toByteArray()));
    }

    long arenaCount() {
        return (deviceBlocks + arenaBlocks - 1) / arenaBlocks;
    }

    int segmentsOfArena() {
        return (int) (arenaBlocks / Arena.SEGMENT_BLOCKS);
    }

    /** Neither the label's nor one of a mark. */
    boolean usable(long block) {
        return block >= Arena.RESERVED_BLOCKS && block < deviceBlocks;
    }

    long usableBlocks(long arena) {
        return Math.min(deviceBlocks, (arena + 1) * arenaBlocks) - arena * arenaBlocks - (arena == 0 ? Arena.RESERVED_BLOCKS : 0);
    }
}
