package io.etcfs.core.domain;

import io.etcfs.core.file.IntervalSet;
import java.util.HashSet;
import java.util.Set;

/**
 * How much is known of a domain that is cached in part: of which hashes it is known what name there is, or that there is none, and which inodes are known to
 * be gone. What is not known is asked for when it is needed. The directory's own inode is always cached. Under the node's monitor.
 */
public final class Part {
    private static final long LAST = Long.MAX_VALUE - 1;
    private static final long INTERVAL_BYTES = 96;
    private static final long GONE_BYTES = 72;

    private final IntervalSet names = new IntervalSet();
    /** Numbers are never used again, so what is gone stays so. */
    private final Set<Long> gone = new HashSet<>();
    /** Every inode at home here is cached. */
    public boolean allInodes;
    /** How many names and inodes there were when that was last seen, to judge by what all of it would take. */
    public final long names0;
    public final long inodes0;
    /** Reads of something that was not cached. */
    public int misses;
    /** The rest is being read. */
    public boolean filling;
    public long noFillBeforeNs = Long.MIN_VALUE;
    /** Where giving up names goes on. */
    public long hand;

    public Part(long names, long inodes) {
        this.names0 = names;
        this.inodes0 = inodes;
    }

    /** Hashes of 63 bits, the last two of which share one place: an interval ends before the largest number. */
    private static long slot(long hash) {
        return Math.min(hash, LAST);
    }

    /** It is known what name has the hash, or that none has. */
    boolean knows(long hash) {
        return names.contains(slot(hash), slot(hash) + 1);
    }

    void know(long hash) {
        names.add(slot(hash), slot(hash) + 1);
    }

    /** From the hash on all before the returned one is known, {@link Long#MAX_VALUE}: to the end. */
    public long knownFrom(long hash) {
        return names.endAt(slot(hash));
    }

    /** The first hash from there on that something is known of; {@link Long#MAX_VALUE}: none. */
    public long nextKnown(long hash) {
        return names.nextFrom(slot(hash));
    }

    /** All before {@code end} is known, where {@link Long#MAX_VALUE} is the end of all. */
    public void know(long from, long end) {
        names.add(slot(from), end);
    }

    void forget(long from, long end) {
        names.remove(slot(from), end);
    }

    public boolean allNames() {
        return names.contains(0, Long.MAX_VALUE);
    }

    boolean isGone(long ino) {
        return gone.contains(ino);
    }

    public void gone(long ino) {
        gone.add(ino);
    }

    void forgetGone() {
        gone.clear();
    }

    /** How many pieces it is known in: each name that was asked for and is not there is one. */
    int pieces() {
        return names.size() + gone.size();
    }

    long bytes() {
        return INTERVAL_BYTES * names.size() + GONE_BYTES * gone.size();
    }
}
