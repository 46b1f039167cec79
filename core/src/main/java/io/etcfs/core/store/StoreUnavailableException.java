package io.etcfs.core.store;

/** A request without effects (a read, a lease beat) got no answer in time; it can be asked again. */
public final class StoreUnavailableException extends Exception {
    public StoreUnavailableException(String message) {
        super(message);
    }

    public StoreUnavailableException(String message, Throwable cause) {
        super(message, cause);
    }
}
