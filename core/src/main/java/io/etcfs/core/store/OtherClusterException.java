package io.etcfs.core.store;

/** What answers is another etcd cluster than the one that answered before: nothing that was read or written there means anything here. Every later call ends so, too. */
public final class OtherClusterException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public OtherClusterException(String message) {
        super(message);
    }
}
