package io.etcfs.core.pipeline;

import io.etcfs.core.device.BlockDevice;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;

/**
 * Bytes that were accepted and are not on the device yet, by device block. A block changed again while its batch is still open is changed in place; after
 * that it gets a new buffer, so that a closed batch's bytes never change. Under the node's monitor; the contents of closed buffers may be read without.
 */
public final class DirtyBlocks {
    private static final int SLAB_BLOCKS = 256;

    /** One block's new contents. {@code batch} is the number of the batch that writes it. */
    public static final class Block {
        public final long deviceBlock;
        public final long batch;
        final MemorySegment bytes;
        boolean dropped;

        Block(long deviceBlock, long batch, MemorySegment bytes) {
            this.deviceBlock = deviceBlock;
            this.batch = batch;
            this.bytes = bytes;
        }

        public MemorySegment bytes() {
            return bytes;
        }
    }

    private final Map<Long, Block> newest = new HashMap<>();
    private final ArrayDeque<MemorySegment> free = new ArrayDeque<>();
    private int inUse;

    public Block get(long deviceBlock) {
        return newest.get(deviceBlock);
    }

    public boolean isEmpty() {
        return newest.isEmpty();
    }

    public long bytesInUse() {
        return (long) inUse * BlockDevice.BLOCK_BYTES;
    }

    /**
     * The block's buffer in the given open batch, with its present contents if it was dirty, else with unspecified contents.
     *
     * @param list where a new buffer is noted, to be written with that batch
     */
    public Block forWrite(long deviceBlock, long batch, java.util.List<Block> list) {
        Block present = newest.get(deviceBlock);
        if (present != null && present.batch == batch) {
            return present;
        }
        Block block = new Block(deviceBlock, batch, take());
        if (present != null) {
            block.bytes.copyFrom(present.bytes);
        }
        newest.put(deviceBlock, block);
        list.add(block);
        return block;
    }

    /** The blocks were freed: bytes still in the open batch need not be written. */
    public void forget(long firstDeviceBlock, int length, long openBatch) {
        if (length > newest.size()) {
            newest.values().removeIf(b -> b.deviceBlock >= firstDeviceBlock && b.deviceBlock < firstDeviceBlock + length && drop(b, openBatch));
            return;
        }
        for (long b = firstDeviceBlock; b < firstDeviceBlock + length; b++) {
            Block present = newest.get(b);
            if (present != null && drop(present, openBatch)) {
                newest.remove(b);
            }
        }
    }

    private static boolean drop(Block block, long openBatch) {
        block.dropped |= block.batch == openBatch;
        return block.batch == openBatch;
    }

    /** The block's bytes are on the device (or were dropped). */
    void written(Block block) {
        newest.remove(block.deviceBlock, block);
        free.push(block.bytes);
        inUse--;
    }

    private MemorySegment take() {
        if (free.isEmpty()) {
            MemorySegment slab = Arena.ofAuto().allocate((long) SLAB_BLOCKS * BlockDevice.BLOCK_BYTES, BlockDevice.BLOCK_BYTES);
            for (int i = 0; i < SLAB_BLOCKS; i++) {
                free.push(slab.asSlice((long) i * BlockDevice.BLOCK_BYTES, BlockDevice.BLOCK_BYTES));
            }
        }
        inUse++;
        return free.pop();
    }
}
