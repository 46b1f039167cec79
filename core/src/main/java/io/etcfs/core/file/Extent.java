package io.etcfs.core.file;

/**
 * A run of a file's blocks and where it is on the device. Units: blocks of 4 KiB.
 *
 * @param logicalBlock first block in the file
 * @param deviceBlock first block on the device
 * @param length number of blocks, at least one
 * @param epoch write epoch under which the blocks were allocated: a revision of etcd
 * @param flags {@link #FLAG_UNWRITTEN} and bits that this version does not know, which are kept
 */
public record Extent(long logicalBlock, long deviceBlock, int length, long epoch, int flags) {
    /** The blocks are the file's but read as zero: nothing was written to them since they were allocated. */
    public static final int FLAG_UNWRITTEN = 1;

    public Extent {
        if (logicalBlock < 0 || deviceBlock < 0 || length <= 0
                || logicalBlock > Long.MAX_VALUE - length || deviceBlock > Long.MAX_VALUE - length) {
            throw new IllegalArgumentException(
                    "no extent: " + length + " blocks at " + deviceBlock + " for blocks of the file from " + logicalBlock);
        }
    }

    /** The first block of the file behind this extent. */
    public long logicalEnd() {
        return logicalBlock + length;
    }

    public boolean unwritten() {
        return (flags & FLAG_UNWRITTEN) != 0;
    }

    /** The part of this extent for the blocks {@code [fromLogical, toLogical)} of the file, which must be in it and not empty. */
    public Extent slice(long fromLogical, long toLogical) {
        if (fromLogical < logicalBlock || toLogical > logicalEnd() || fromLogical >= toLogical) {
            throw new IllegalArgumentException("[" + fromLogical + ", " + toLogical + ") is not within " + this);
        }
        if (fromLogical == logicalBlock && toLogical == logicalEnd()) {
            return this;
        }
        return new Extent(fromLogical, deviceBlock + (fromLogical - logicalBlock), (int) (toLogical - fromLogical), epoch, flags);
    }

    Extent clip(long fromLogical, long toLogical) {
        return slice(Math.max(fromLogical, logicalBlock), Math.min(toLogical, logicalEnd()));
    }

    Extent withFlags(int newFlags) {
        return new Extent(logicalBlock, deviceBlock, length, epoch, newFlags);
    }

    /** Whether {@code next} goes on where this one ends, in the file and on the device, and is alike in all else. */
    boolean continuedBy(Extent next) {
        return logicalEnd() == next.logicalBlock && deviceBlock + length == next.deviceBlock && epoch == next.epoch && flags == next.flags;
    }
}
