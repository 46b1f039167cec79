package io.etcfs.it.cluster;

/** An operation did not end in time. */
public final class HangError extends AssertionError {
    private static final long serialVersionUID = 1L;

    HangError(String message) {
        super(message);
    }
}
