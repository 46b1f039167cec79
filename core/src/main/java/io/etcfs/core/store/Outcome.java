package io.etcfs.core.store;

/** What is known about a transaction that was sent. */
public sealed interface Outcome {
    /** The guard held and the success branch was applied. */
    record Committed(TxnResult result) implements Outcome {}

    /** The guard did not hold; the failure branch was applied. */
    record Conflict(TxnResult result) implements Outcome {}

    /**
     * It may have been applied, may still be, or never will. Only the protocol can tell; never retried blindly.
     *
     * @param noSpace it was answered, and etcd is full: it was applied, or never will be
     */
    record Unknown(String cause, boolean noSpace) implements Outcome {
        public Unknown(String cause) {
            this(cause, false);
        }
    }
}
