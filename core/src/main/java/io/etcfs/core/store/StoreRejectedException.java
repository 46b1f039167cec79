package io.etcfs.core.store;

/** The store refused a request as a whole: it had no effect and never will. */
public final class StoreRejectedException extends Exception {
    public enum Reason {
        LEASE_NOT_FOUND, NO_SPACE, TOO_LARGE, COMPACTED,
        /** A revision that there has not been yet. */
        FUTURE,
        UNAUTHENTICATED, INVALID
    }

    private final Reason reason;

    public StoreRejectedException(Reason reason, String message) {
        super(message);
        this.reason = reason;
    }

    public Reason reason() {
        return reason;
    }
}
