package io.etcfs.fuse.protocol;

import io.etcfs.core.fs.Call;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.IntPredicate;
import java.util.function.LongSupplier;

/**
 * The requests that were handed to a thread that may wait, by their number, so that a FUSE_INTERRUPT finds them. The kernel sends one for the first
 * signal of whatever kind, and no other; whether the caller is dying is therefore looked up from then on, at most every 100 ms. Thread-safe.
 */
public final class WaitingRequests {
    private static final long LOOK_EVERY_NS = 100_000_000L;
    private static final long LOOK_UNASKED_EVERY_NS = 1_000_000_000L;
    private static final int EARLY_INTERRUPTS = 4096;

    private final ConcurrentHashMap<Long, Waiting> byUnique = new ConcurrentHashMap<>();
    private final ConcurrentHashMap<Long, Boolean> early = new ConcurrentHashMap<>();
    private final AtomicLongArray earlyInOrder = new AtomicLongArray(EARLY_INTERRUPTS);
    private final AtomicInteger earlyCount = new AtomicInteger();
    private final IntPredicate isDying;
    private final IntPredicate isSignalled;
    private final LongSupplier nowNs;

    /**
     * @param isDying whether the process (thread) of that number has a SIGKILL pending or is gone
     * @param isSignalled whether it has a signal pending that it does not block
     * @param nowNs   monotonic
     */
    public WaitingRequests(IntPredicate isDying, IntPredicate isSignalled, LongSupplier nowNs) {
        this.isDying = isDying;
        this.isSignalled = isSignalled;
        this.nowNs = nowNs;
    }

    public Waiting begin(long unique, int pid) {
        return begin(unique, pid, false);
    }

    /** @param unasked look for a dying caller also without an interrupt, once a second: not for requests that the caller may have left behind */
    public Waiting begin(long unique, int pid, boolean unasked) {
        Waiting waiting = new Waiting(unique, pid, unasked);
        byUnique.put(unique, waiting);
        // After it was put: see interruptEarly.
        if (!early.isEmpty() && early.remove(unique) != null) {
            waiting.interrupted = true;
        }
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
        waiting.interrupt();
        return true;
    }

    /**
     * As {@link #interrupt}, and remembered for a request that is yet to wait. The last {@value #EARLY_INTERRUPTS} are, most of them of requests that have
     * ended. Numbers are never used again.
     */
    public void interruptEarly(long unique) {
        early.put(unique, true);
        // After it was put: either begin finds it there, or it is found here.
        if (interrupt(unique)) {
            early.remove(unique);
            return;
        }
        long oldest = earlyInOrder.getAndSet(Math.floorMod(earlyCount.getAndIncrement(), EARLY_INTERRUPTS), unique);
        if (oldest != 0) {
            early.remove(oldest);
        }
    }

    /** One waiting request, from {@link #begin} until {@link #end}. */
    public final class Waiting implements Call.Interruption {
        private final long unique;
        private final int pid;
        private final boolean unasked;
        private final long beganNs;
        private volatile boolean interrupted;
        private volatile Runnable onSignal;
        private volatile long signalLookedNs;
        private volatile boolean dying;
        private volatile boolean looked;
        private volatile long lookedNs;

        private Waiting(long unique, int pid, boolean unasked) {
            this.unique = unique;
            this.pid = pid;
            this.unasked = unasked;
            this.beganNs = unasked ? nowNs.getAsLong() : 0;
            this.signalLookedNs = beganNs;
        }

        private void interrupt() {
            interrupted = true;
            Runnable wake = onSignal;
            if (wake != null) {
                wake.run();
            }
        }

        @Override
        public boolean signalled() {
            if (!interrupted && unasked) {
                long now = nowNs.getAsLong();
                if (now - signalLookedNs >= LOOK_UNASKED_EVERY_NS) {
                    signalLookedNs = now;
                    interrupted = isSignalled.test(pid);
                }
            }
            return interrupted;
        }

        @Override
        public void onSignal(Runnable wake) {
            onSignal = wake;
        }

        @Override
        public boolean callerIsDying() {
            if ((!interrupted && !unasked) || dying) {
                return dying;
            }
            long now = nowNs.getAsLong();
            boolean due = interrupted ? !looked || now - lookedNs >= LOOK_EVERY_NS : now - (looked ? lookedNs : beganNs) >= LOOK_UNASKED_EVERY_NS;
            if (due) {
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
