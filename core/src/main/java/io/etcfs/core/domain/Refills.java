package io.etcfs.core.domain;

import io.etcfs.core.file.IntervalSet;
import java.util.ArrayList;
import java.util.List;

/**
 * Pages of one inode that the kernel asked for while a write(2) of before may not have reached us.
 *
 * <p>Linux puts what is written into the pages it has, lets those go, and only then asks. Where a notification drops such a page in between, and it is read again before
 * that WRITE is made, the kernel keeps what was read, without the bytes of the WRITE, and would show it from then on. It makes one such write(2) to an inode at a time: so
 * what is read from the first notification until the next WRITE is answered is suspect, and what of that lies in the WRITE's range is to be dropped. Under the node's monitor, but for {@link #isSuspect}.
 */
public final class Refills {
    private int dropping;
    private volatile boolean suspect;
    private final IntervalSet read = new IntervalSet();

    /** The kernel is being told to drop pages. */
    public void dropBegins() {
        dropping++;
        suspect = true;
    }

    public void dropEnds() {
        dropping--;
        suspect = true;
    }

    /** Whether there is anything for {@link #written} to do; also without the monitor, which most writes need not take for it. */
    public boolean isSuspect() {
        return suspect;
    }

    /** The kernel is given what is in {@code [from, to)}, for its pages. */
    public void read(long from, long to) {
        if (suspect) {
            read.add(from, to);
        }
    }

    /** What of {@code [from, to)} the kernel may have without the bytes of a WRITE that is made now, as pairs of first byte and end. */
    public List<long[]> within(long from, long to) {
        if (!suspect || !read.intersects(from, to)) {
            return List.of();
        }
        List<long[]> found = new ArrayList<>();
        for (long[] range : read.intervals()) {
            if (range[0] < to && range[1] > from) {
                found.add(new long[] {Math.max(range[0], from), Math.min(range[1], to)});
            }
        }
        return found;
    }

    /** A WRITE was made, and what it was suspected of was dropped: the next one begins after that. */
    public void written() {
        if (suspect && dropping == 0) {
            suspect = false;
            read.clear();
        }
    }
}
