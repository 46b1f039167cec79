package io.etcfs.core.check;

/** The domains that have inodes, in key order: how many, and the newest epoch among their extents. */
final class Homes {
    private final LongList homes = new LongList();
    private final LongIndex index = new LongIndex(homes);
    private final IntList inodes = new IntList();
    private final LongList epochs = new LongList();
    private final LongList epochInos = new LongList();

    void add(long home, long ino, long epoch) {
        int last = homes.size() - 1;
        if (last < 0 || homes.get(last) != home) {
            homes.add(home);
            index.addLast();
            inodes.add(0);
            epochs.add(0);
            epochInos.add(0);
            last++;
        }
        inodes.increment(last);
        if (Long.compareUnsigned(epoch, epochs.get(last)) > 0) {
            epochs.set(last, epoch);
            epochInos.set(last, ino);
        }
    }

    int size() {
        return homes.size();
    }

    int place(long home) {
        return index.of(home);
    }

    long home(int place) {
        return homes.get(place);
    }

    int inodes(int place) {
        return inodes.get(place);
    }

    long epoch(int place) {
        return epochs.get(place);
    }

    /** An inode with an extent of that epoch. */
    long epochIno(int place) {
        return epochInos.get(place);
    }
}
