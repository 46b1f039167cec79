package io.etcfs.core.space;

/**
 * Consecutive blocks of the device. Unit: blocks of 4 KiB.
 *
 * @param firstBlock device block
 * @param length number of blocks, at least one
 */
public record Run(long firstBlock, int length) {
    public Run {
        if (firstBlock < 0 || length <= 0 || firstBlock > Long.MAX_VALUE - length) {
            throw new IllegalArgumentException("no run: " + length + " blocks from " + firstBlock);
        }
    }

    /** The first block behind the run. */
    public long end() {
        return firstBlock + length;
    }
}
