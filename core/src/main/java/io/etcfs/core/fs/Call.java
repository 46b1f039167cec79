package io.etcfs.core.fs;

/**
 * Who asks, and how long an answer may take.
 *
 * <p>A wait ends with EINTR, while the operation has had no effect, once {@link Interruption#callerIsDying} says so after a FUSE_INTERRUPT.
 *
 * @param unique       the kernel's number of the request, for logs
 * @param uid          the caller's filesystem user id, {@code gid} group id, {@code pid} process (thread) id as the kernel sends them
 * @param mayWait      false: throw {@link MustWait} where the answer would have to wait (for a token, the pipeline, a device access)
 * @param interruption asked while waiting
 */
public record Call(long unique, int uid, int gid, int pid, boolean mayWait, Interruption interruption) {
    /** Whether a waiting caller is to be let go. */
    public interface Interruption {
        Interruption NEVER = () -> false;

        /** The kernel sent FUSE_INTERRUPT for the request and the calling process is dying (SIGKILL is pending or it is gone). */
        boolean callerIsDying();
    }

    public Call waiting() {
        return mayWait ? this : new Call(unique, uid, gid, pid, true, interruption);
    }
}
