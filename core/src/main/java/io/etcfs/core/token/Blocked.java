package io.etcfs.core.token;

import io.etcfs.core.clock.Monitor;

/**
 * An operation can't go on now and has had no effect; what it waits for was asked for. It is tried again after the next change of the monitor, or, if it waits
 * for one kind of change only, after the next of that kind.
 */
public final class Blocked extends RuntimeException {
    private static final long serialVersionUID = 1L;
    public static final Blocked INSTANCE = new Blocked(null);

    private final transient Monitor.Waiters among;

    private Blocked(Monitor.Waiters among) {
        super(null, null, false, false);
        this.among = among;
    }

    /** To be kept and thrown any number of times. */
    public static Blocked among(Monitor.Waiters waiters) {
        return new Blocked(waiters);
    }

    /** Monitor held. */
    public void await(Monitor monitor, long untilNs) throws InterruptedException {
        if (among == null) {
            monitor.await(untilNs);
        } else {
            among.await(untilNs);
        }
    }
}
