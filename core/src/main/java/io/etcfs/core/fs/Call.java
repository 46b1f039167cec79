package io.etcfs.core.fs;

import io.etcfs.core.domain.Domain;
import java.util.ArrayList;
import java.util.List;

/**
 * Who asks, how long an answer may take, and what the answer granted.
 *
 * <p>A wait ends with EINTR, while the operation has had no effect, once {@link Interruption#callerIsDying} says so after a FUSE_INTERRUPT.
 */
public final class Call {
    /** Whether a waiting caller is to be let go. */
    public interface Interruption {
        Interruption NEVER = () -> false;

        /** The kernel sent FUSE_INTERRUPT for the request and the calling process is dying (SIGKILL is pending or it is gone). */
        boolean callerIsDying();

        /** The kernel sent FUSE_INTERRUPT for the request, for a signal of whatever kind. */
        default boolean signalled() {
            return callerIsDying();
        }

        /** Has {@code wake} run, on whatever thread, when {@link #signalled} may have become true. */
        default void onSignal(Runnable wake) {}
    }

    private final long unique;
    private final int uid;
    private final int gid;
    private final int pid;
    private final boolean mayWait;
    private final Interruption interruption;
    private long through = -1;
    private boolean changes;
    private List<Domain> granted;
    private boolean grants;
    private long grantedNs;
    private boolean grantsWithdrawn;

    /**
     * @param unique       the kernel's number of the request, for logs
     * @param uid          the caller's filesystem user id, {@code gid} group id, {@code pid} process (thread) id as the kernel sends them
     * @param mayWait      false: throw {@link MustWait} where the answer would have to wait (for a token, the pipeline, etcd)
     * @param interruption asked while waiting
     */
    public Call(long unique, int uid, int gid, int pid, boolean mayWait, Interruption interruption) {
        this.unique = unique;
        this.uid = uid;
        this.gid = gid;
        this.pid = pid;
        this.mayWait = mayWait;
        this.interruption = interruption;
    }

    public long unique() {
        return unique;
    }

    public int uid() {
        return uid;
    }

    public int gid() {
        return gid;
    }

    public int pid() {
        return pid;
    }

    public boolean mayWait() {
        return mayWait;
    }

    public Interruption interruption() {
        return interruption;
    }

    public Call waiting() {
        return mayWait ? this : new Call(unique, uid, gid, pid, true, interruption);
    }

    /** It changes something, so that it can't go through while etcd takes no changes. */
    void changes() {
        changes = true;
    }

    boolean isChange() {
        return changes;
    }

    /** It is made through that open file, or, -1, through none. */
    void through(long handle) {
        through = handle;
    }

    long through() {
        return through;
    }

    /** The answer lets the kernel believe something of the domain: until it is written, the domain's recall waits. Monitor held. */
    void granted(Domain d, long nowNs) {
        grants(nowNs);
        if (granted == null) {
            granted = new ArrayList<>(2);
        }
        if (!granted.contains(d)) {
            granted.add(d);
            d.repliesInFlight++;
        }
    }

    /** The answer lets the kernel believe something, for a time that was reckoned at {@code nowNs}. */
    public void grants(long nowNs) {
        if (!grants) {
            grants = true;
            grantedNs = nowNs;
        }
    }

    /** Whether {@link Operations#grantsStand} and {@link Operations#replied} have something to do. */
    public boolean hasGrants() {
        return grants;
    }

    /** The answer is written without what it granted. By the thread that writes it. */
    void withdrawGrants() {
        grantsWithdrawn = true;
    }

    boolean grantsWithdrawn() {
        return grantsWithdrawn;
    }

    /** When the first of it was granted. */
    long grantedNs() {
        return grantedNs;
    }

    List<Domain> takeGrants() {
        List<Domain> taken = granted;
        granted = null;
        grants = false;
        return taken;
    }
}
