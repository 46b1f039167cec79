package io.etcfs.linux.mount;

import io.etcfs.fuse.protocol.Exchange;
import io.etcfs.fuse.protocol.Negotiation;
import java.util.ArrayDeque;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Stream;

/**
 * Blocks by size: powers of two of 4 KiB to 1 MiB, each with the slack of a READ. There is no bound on what is taken, only on what is kept for
 * the next taker. Thread-safe.
 */
final class BlockPool {
    private static final int SMALLEST_SHIFT = 12;
    private static final int LARGEST_SHIFT = Integer.numberOfTrailingZeros(Negotiation.MAX_WRITE_BYTES);
    private static final long MAX_IDLE_BYTES = 32L << 20;

    private final ReentrantLock lock = new ReentrantLock();
    private final List<ArrayDeque<Block>> idle = newLists();
    private long idleBytes;
    private long takenBytes;
    private boolean closed;

    private static List<ArrayDeque<Block>> newLists() {
        return Stream.generate(() -> new ArrayDeque<Block>()).limit(LARGEST_SHIFT - SMALLEST_SHIFT + 1).toList();
    }

    /** A block with at least that capacity, of at most {@link Negotiation#MAX_WRITE_BYTES} and the slack of a READ. */
    Block take(int capacity) {
        int shift = shiftFor(capacity);
        Block block;
        lock.lock();
        try {
            block = idle.get(shift - SMALLEST_SHIFT).pollFirst();
            takenBytes += sizeOf(shift);
            if (block != null) {
                idleBytes -= sizeOf(shift);
            }
        } finally {
            lock.unlock();
        }
        return block != null ? block : new Block(capacityOf(shift));
    }

    Block takeLargest() {
        return take(capacityOf(LARGEST_SHIFT));
    }

    void giveBack(Block block) {
        int shift = shiftFor(block.capacity);
        boolean keep;
        lock.lock();
        try {
            takenBytes -= sizeOf(shift);
            keep = !closed && idleBytes + sizeOf(shift) <= MAX_IDLE_BYTES;
            if (keep) {
                idleBytes += sizeOf(shift);
                idle.get(shift - SMALLEST_SHIFT).addFirst(block);
            }
        } finally {
            lock.unlock();
        }
        if (!keep) {
            block.unmap();
        }
    }

    /** Address space of the blocks that are out, in bytes. */
    long takenBytes() {
        lock.lock();
        try {
            return takenBytes;
        } finally {
            lock.unlock();
        }
    }

    /** Frees what is idle now, and from now on what is given back. */
    void close() {
        ArrayDeque<Block> all = new ArrayDeque<>();
        lock.lock();
        try {
            closed = true;
            for (ArrayDeque<Block> list : idle) {
                all.addAll(list);
                list.clear();
            }
            idleBytes = 0;
        } finally {
            lock.unlock();
        }
        all.forEach(Block::unmap);
    }

    private static int shiftFor(int capacity) {
        int shift = SMALLEST_SHIFT;
        while (capacityOf(shift) < capacity) {
            shift++;
        }
        if (shift > LARGEST_SHIFT) {
            throw new IllegalArgumentException("a request or reply of " + capacity + " bytes");
        }
        return shift;
    }

    private static int capacityOf(int shift) {
        return (1 << shift) + Exchange.READ_SLACK_BYTES;
    }

    private static long sizeOf(int shift) {
        return Block.bytesOf(capacityOf(shift));
    }
}
