package io.etcfs.core.lock;

import io.etcfs.core.fs.Errno;

/** What one call asks for, until it is answered or withdrawn. Under the node's monitor. */
public final class LockRequest {
    public enum Kind {
        /** F_GETLK: what is in the way? */
        TEST,
        /** Now or not at all. */
        TRY,
        /** F_SETLKW: as soon as it can be had. */
        WAIT
    }

    final FileLocks file;
    final long handle;
    final HeldLock wanted;
    final Kind kind;
    /** In the order of this node. */
    final long number;
    /** A revision of etcd that had been seen when it came: who waits longer, across nodes. */
    final long since;
    final long askedNs;
    /** When it could first have been had and was left to a process of another node that waits longer; 0: never. */
    long yieldedNs;
    /** It has been found that it can't be had at once. */
    boolean waits;
    private boolean answered;
    private Errno refusal;
    private Conflict conflict;

    LockRequest(FileLocks file, long handle, HeldLock wanted, Kind kind, long number, long since, long askedNs) {
        this.file = file;
        this.handle = handle;
        this.wanted = wanted;
        this.kind = kind;
        this.number = number;
        this.since = since;
        this.askedNs = askedNs;
    }

    /**
     * A lock in the way.
     *
     * @param pid  0: of a process of another node, or without a number in ours
     * @param here of a process of this node
     */
    public record Conflict(long start, long end, boolean exclusive, int pid, boolean here) {}

    public boolean answered() {
        return answered;
    }

    /** Null: granted, or tested. */
    public Errno refusal() {
        return refusal;
    }

    /** Of a TEST, null if nothing is in the way; of a TRY that is refused. */
    public Conflict conflict() {
        return conflict;
    }

    void grant() {
        answered = true;
    }

    void refuse(Errno errno) {
        answered = true;
        refusal = errno;
    }

    void tested(HeldLock inTheWay, boolean here) {
        answered = true;
        conflict = inTheWay == null ? null : new Conflict(inTheWay.start(), inTheWay.end(), inTheWay.exclusive(), here ? inTheWay.pid() : 0, here);
    }

    void refuse(HeldLock inTheWay, boolean here) {
        tested(inTheWay, here);
        refusal = Errno.EAGAIN;
    }
}
