package io.etcfs.core.check;

/**
 * Blocks of the device that something refers to: 28 bytes a run. A run is an extent's, with the file's block and the inode, or an {@code unfree:} record's, with
 * its number in the order of keys.
 */
final class Runs {
    private static final long UNFREE = -1;

    private final LongList first = new LongList();
    private final LongList logical = new LongList();
    private final LongList holder = new LongList();
    private final IntList length = new IntList();

    void addExtent(long firstBlock, int blocks, long logicalBlock, long ino) {
        add(firstBlock, blocks, logicalBlock, ino);
    }

    void addUnfree(long firstBlock, int blocks, int record) {
        add(firstBlock, blocks, UNFREE, record);
    }

    private void add(long firstBlock, int blocks, long logicalBlock, long who) {
        first.add(firstBlock);
        length.add(blocks);
        logical.add(logicalBlock);
        holder.add(who);
    }

    int size() {
        return first.size();
    }

    long first(int i) {
        return first.get(i);
    }

    long end(int i) {
        return first.get(i) + length.get(i);
    }

    boolean isUnfree(int i) {
        return logical.get(i) == UNFREE;
    }

    long logical(int i) {
        return logical.get(i);
    }

    /** The inode, or the number of the {@code unfree:} record. */
    long holder(int i) {
        return holder.get(i);
    }

    /** By first block, then by holder and the file's block: in place (heap sort), whatever the number of runs. */
    void sort() {
        for (int i = size() / 2 - 1; i >= 0; i--) {
            sink(i, size());
        }
        for (int end = size() - 1; end > 0; end--) {
            swap(0, end);
            sink(0, end);
        }
    }

    private void sink(int i, int end) {
        for (int child = 2 * i + 1; child < end; child = 2 * i + 1) {
            if (child + 1 < end && compare(child, child + 1) < 0) {
                child++;
            }
            if (compare(i, child) >= 0) {
                return;
            }
            swap(i, child);
            i = child;
        }
    }

    private int compare(int a, int b) {
        int order = Long.compare(first.get(a), first.get(b));
        order = order != 0 ? order : Long.compare(holder.get(a), holder.get(b));
        return order != 0 ? order : Long.compare(logical.get(a), logical.get(b));
    }

    private void swap(int a, int b) {
        swap(first, a, b);
        swap(logical, a, b);
        swap(holder, a, b);
        int kept = length.get(a);
        length.set(a, length.get(b));
        length.set(b, kept);
    }

    private static void swap(LongList list, int a, int b) {
        long kept = list.get(a);
        list.set(a, list.get(b));
        list.set(b, kept);
    }
}
