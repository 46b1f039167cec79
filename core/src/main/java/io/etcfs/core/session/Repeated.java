package io.etcfs.core.session;

import java.lang.System.Logger.Level;

/** How loud it is said that something still fails: WARNING the first time, and then after twice as long each time, an hour at most. Not thread-safe. */
final class Repeated {
    private static final long FIRST_NS = 10_000_000_000L;
    private static final long MOST_NS = 3_600_000_000_000L;

    private boolean said;
    private long nextNs;
    private long intervalNs = FIRST_NS;

    /** @param nowNs of a clock that does not go back */
    Level level(long nowNs) {
        if (said && nowNs < nextNs) {
            return Level.DEBUG;
        }
        if (said) {
            intervalNs = Math.min(MOST_NS, 2 * intervalNs);
        }
        said = true;
        nextNs = nowNs + intervalNs;
        return Level.WARNING;
    }
}
