package io.etcfs.core.fs;

import io.etcfs.core.clock.Monitor;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Vnode;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.token.Attempt;
import io.etcfs.core.token.Blocked;
import java.util.HashSet;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/**
 * How an operation waits: it is tried under the monitor, and tried again from its beginning after a change, until it goes through, its caller is dying or its
 * time is over. It has no effect before it goes through.
 */
final class Waiting {
    private static final long LOOK_NS = 100_000_000L;
    private static final long ASK_AGAIN_NS = 20_000_000L;
    /** How long what can't go through before somebody has made room in etcd waits for that. */
    private static final long FULL_NS = 1_000_000_000L;
    /** A directory is being read while no more than this is between two pages: nothing has gone wrong, it is only large. */
    private static final long PAGE_NS = 2_000_000_000L;

    private final Monitor monitor;
    private final long deadlineNs;
    private final Consumer<Throwable> broken;
    /** Open files through which file locks were taken that are lost: their calls fail until they are closed. Monitor held. */
    private final Set<Long> unsound = new HashSet<>();
    private BooleanSupplier storeTakesNothing = () -> false;
    private LongSupplier lastPageNs = () -> Long.MIN_VALUE / 2;
    private volatile boolean stopped;

    /** @param broken told of an operation that failed in a way that no operation may: it can have left half of a change. Monitor held */
    Waiting(Monitor monitor, long deadlineNs, Consumer<Throwable> broken) {
        this.monitor = monitor;
        this.deadlineNs = deadlineNs;
        this.broken = broken;
    }

    /** @param full whether etcd is known to refuse all changes. Asked with the monitor held */
    void storeTakesNothing(BooleanSupplier full) {
        storeTakesNothing = full;
    }

    /** @param lastPageNs when a page of a directory that is being read came last (ns of the clock) */
    void reading(LongSupplier lastPageNs) {
        this.lastPageNs = lastPageNs;
    }

    interface Body<R> {
        /** Monitor held. Throws {@link Blocked} to be tried again. */
        R attempt(Attempt attempt) throws FsException;
    }

    /** What a request of the kernel holds while it waits, so that recalls know what not to wait for. Monitor held. */
    interface Held {
        void begin();

        void end();

        /** The wait can't come to an end: answer EINTR. */
        default boolean hopeless() {
            return false;
        }

        /** It may take any time. */
        default boolean unlimited() {
            return false;
        }
    }

    static final Held NOTHING = new Held() {
        @Override
        public void begin() {}

        @Override
        public void end() {}
    };

    /** The request may hold the directories' locks in the kernel. */
    static Held directories(Domain... domains) {
        return new Held() {
            @Override
            public void begin() {
                for (Domain d : domains) {
                    d.namespaceWaiters++;
                }
            }

            @Override
            public void end() {
                for (Domain d : domains) {
                    d.namespaceWaiters--;
                }
            }
        };
    }

    /** The request may hold pages of the range locked. */
    static Held pages(Vnode vnode, long from, long to, boolean write) {
        Vnode.WaitingRange range = new Vnode.WaitingRange(from, to, write);
        return new Held() {
            @Override
            public void begin() {
                vnode.waits(range);
            }

            @Override
            public void end() {
                vnode.waitsNoMore(range);
            }
        };
    }

    /** Every call through the open file fails with EIO from now on. Monitor held. */
    void unsound(long handle) {
        unsound.add(handle);
    }

    /** It is closed. Monitor held. */
    void sound(long handle) {
        unsound.remove(handle);
    }

    void stop() {
        stopped = true;
        monitor.with(() -> {
            monitor.everythingChanged();
            return null;
        });
    }

    boolean stopped() {
        return stopped;
    }

    <R> R run(Call call, Body<R> body) throws FsException {
        return run(call, NOTHING, body);
    }

    <R> R run(Call call, Held held, Body<R> body) throws FsException {
        Attempt attempt = new Attempt(call.mayWait());
        monitor.lock();
        try {
            long until = 0;
            boolean began = false;
            try {
                while (true) {
                    if (stopped) {
                        throw new FsException(Errno.EIO);
                    }
                    if (!unsound.isEmpty() && unsound.contains(call.through())) {
                        throw new FsException(Errno.EIO);
                    }
                    Blocked blocked;
                    try {
                        return body.attempt(attempt);
                    } catch (Blocked b) {
                        blocked = b;
                        if (!call.mayWait()) {
                            throw MustWait.INSTANCE;
                        }
                    } catch (MustWait | Renames.NeedsParent | KeptToken.Lost e) {
                        throw e;
                    } catch (RuntimeException | Error e) {
                        broken.accept(e);
                        throw e;
                    }
                    long now = monitor.nowNs();
                    if (until == 0) {
                        until = held.unlimited() ? Long.MAX_VALUE : now + deadlineNs;
                        held.begin();
                        began = true;
                        if (held != NOTHING) {
                            monitor.changed();
                        }
                    } else if (call.isChange() && storeTakesNothing.getAsBoolean() && now >= until - deadlineNs + FULL_NS) {
                        throw new FsException(Errno.ENOSPC);
                    } else if (now >= until && now >= lastPageNs.getAsLong() + PAGE_NS) {
                        throw new FsException(Errno.ETIMEDOUT);
                    }
                    try {
                        blocked.await(monitor, now < until ? Math.min(until, now + LOOK_NS) : now + LOOK_NS);
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                        throw new FsException(Errno.EINTR);
                    }
                    if (held.hopeless() || dying(call)) {
                        throw new FsException(Errno.EINTR);
                    }
                }
            } finally {
                if (began) {
                    held.end();
                }
            }
        } finally {
            if (attempt.holdsPins()) {
                attempt.unpin();
                monitor.changed();
            }
            monitor.unlock();
        }
    }

    interface Question<R> {
        R ask() throws StoreUnavailableException, StoreRejectedException;
    }

    /** Asks etcd for an operation, again and again as {@link #run} tries, until there is an answer. Without the monitor. */
    <R> R ask(Call call, Question<R> question) throws FsException {
        long until = monitor.nowNs() + deadlineNs;
        while (true) {
            if (stopped) {
                throw new FsException(Errno.EIO);
            }
            try {
                return question.ask();
            } catch (StoreUnavailableException e) {
                if (monitor.nowNs() >= until) {
                    throw new FsException(Errno.ETIMEDOUT);
                }
            } catch (StoreRejectedException e) {
                throw new FsException(Errno.EIO);
            }
            monitor.pause(ASK_AGAIN_NS);
            if (call.interruption() != Call.Interruption.NEVER && call.interruption().callerIsDying()) {
                throw new FsException(Errno.EINTR);
            }
        }
    }

    /** Asked without the monitor: it looks into /proc. */
    private boolean dying(Call call) {
        if (call.interruption() == Call.Interruption.NEVER || Fault.KILLED_CALLER_WAITS.on()) {
            return false;
        }
        monitor.unlock();
        try {
            return call.interruption().callerIsDying();
        } finally {
            monitor.lock();
        }
    }
}
