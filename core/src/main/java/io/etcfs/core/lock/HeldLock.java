package io.etcfs.core.lock;

/**
 * A lock on the bytes from {@code start} to {@code end}, both included; {@link Long#MAX_VALUE}: however long the file gets.
 *
 * @param exclusive a write lock, else a read lock
 * @param pid       of the process that took it, as its node's kernel numbers it; 0: has no number there
 */
public record HeldLock(LockOwner owner, long start, long end, boolean exclusive, int pid) {
    public boolean overlaps(long from, long to) {
        return start <= to && from <= end;
    }

    /** The two can't be held at once. */
    public boolean conflictsWith(HeldLock other) {
        return (exclusive || other.exclusive) && owner.flock() == other.owner.flock() && overlaps(other.start, other.end) && !owner.equals(other.owner);
    }

    HeldLock between(long from, long to) {
        return new HeldLock(owner, from, to, exclusive, pid);
    }
}
