package io.etcfs.fuse.protocol;

import io.etcfs.core.fs.Call;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntPredicate;
import java.util.function.LongSupplier;

/**
 * The requests that were handed to a thread that may wait, by their number, so that a FUSE_INTERRUPT finds them. The kernel sends one for the first
 * signal of whatever kind, and no other; whether the caller is dying is therefore looked up from then on, at most every 100 ms. Thread-safe.
 */
public final class WaitingRequests {
    private static final long LOOK_EVERY_NS = 100_000_000L;

    private final ConcurrentHashMap<Long, Waiting> byUnique = new ConcurrentHashMap<>();
    private final IntPredicate isDying;
    private final LongSupplier nowNs;

    /**
     * @param isDying whether the process (thread) of that number has a SIGKILL pending or is gone
     * @param nowNs   monotonic
     */
    public WaitingRequests(IntPredicate isDying, LongSupplier nowNs) {
        this.isDying = isDying;
        this.nowNs = nowNs;
    }

    public Waiting begin(long unique, int pid) {
        Waiting waiting = new Waiting(unique, pid);
        byUnique.put(unique, waiting);
        return waiting;
    }

    public int count() {
        return byUnique.size();
    }

    /** Returns false if there is no such request: it has not been handed over yet, or has ended. */
    public boolean interrupt(long unique) {
        Waiting waiting = byUnique.get(unique);
        if (waiting == null) {
            return false;
        }
        waiting.interrupted = true;
        return true;
    }

    /** One waiting request, from {@link #begin} until {@link #end}. */
    public final class Waiting implements Call.Interruption {
        private final long unique;
        private final int pid;
        private volatile boolean interrupted;
        private volatile boolean dying;
        private volatile boolean looked;
        private volatile long lookedNs;

        private Waiting(long unique, int pid) {
            this.unique = unique;
            this.pid = pid;
        }

        @Override
        public boolean callerIsDying() {
            if (!interrupted || dying) {
                return dying;
            }
            long now = nowNs.getAsLong();
            if (!looked || now - lookedNs >= LOOK_EVERY_NS) {
                lookedNs = now;
                looked = true;
                dying = isDying.test(pid);
            }
            return dying;
        }

        public void end() {
            byUnique.remove(unique, this);
        }
    }
}
