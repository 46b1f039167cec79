package io.etcfs.testkit.store;

import io.etcfs.core.store.Txn;

/** What goes wrong between one node and the store. Asked once for each request, in the order in which they are made; decides, does nothing. */
public interface StoreFaults {
    /** What happens to a transaction. */
    sealed interface Commit {
        /** It is carried out and answered. */
        record Answered() implements Commit {}

        /** It never arrives. */
        record Lost() implements Commit {}

        /** It is carried out, and the answer is lost. */
        record ReplyLost() implements Commit {}

        /** It is answered as unknown after the timeout and carried out {@code delayNs} after it was sent, whatever has happened by then. */
        record Late(long delayNs) implements Commit {}
    }

    Commit onCommit(Txn txn);

    /** Whether a read, a lease request or a status request gets no answer. */
    boolean failsOther();

    /** What happens to a keep-alive. */
    enum Beat { ANSWERED, LOST, REPLY_LOST }

    Beat onBeat();

    /** Nothing goes wrong. */
    static StoreFaults none() {
        return new StoreFaults() {
            @Override
            public Commit onCommit(Txn txn) {
                return new Commit.Answered();
            }

            @Override
            public boolean failsOther() {
                return false;
            }

            @Override
            public Beat onBeat() {
                return Beat.ANSWERED;
            }
        };
    }
}
