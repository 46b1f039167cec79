package io.etcfs.core.pipeline;

/**
 * How long the open batch waits for those who are about to call fsync. Who writes small files one after the other is back soon after a commit; a transaction
 * that leaves without him makes him wait for two. So after each commit the group is: those who waited for it, and those who wait for the next one already. The
 * next batch closes when as many wait for it, or at the end of the time that a transaction takes.
 *
 * <p>A group that did not come together is not waited for after the next commit; again not, and it is left alone for 3, for 7, for 15 commits. Monitor held.
 */
final class Group {
    static final long MAX_WAIT_NS = 2_000_000L;
    static final int MAX_PAUSE = 15;

    private int size;
    private long untilNs;
    private long transactionNs;
    private int pause;
    private int pauseLeft;

    /**
     * @param served how many waited for the batch that has committed
     * @param joined how many wait for a later one
     * @param tookNs from sending the transaction to its answer
     */
    void committed(int served, int joined, long tookNs, long nowNs) {
        transactionNs += transactionNs == 0 ? tookNs : (tookNs - transactionNs) / 8;
        size = served + joined;
        if (pauseLeft > 0) {
            pauseLeft--;
            size = 0;
        }
        untilNs = size > 1 ? nowNs + Math.min(transactionNs, MAX_WAIT_NS) : nowNs;
    }

    /** Whether nobody else is waited for. */
    boolean complete(int joined, long nowNs) {
        return joined >= size || nowNs >= untilNs;
    }

    /** When the waiting ends at the latest; may be past. */
    long untilNs() {
        return untilNs;
    }

    /** The batch that they joined closes. */
    void closes(int joined, long nowNs) {
        if (size > 1 && joined >= size) {
            pause = 0;
        } else if (size > 1 && joined > 0 && nowNs >= untilNs) {
            pause = Math.min(MAX_PAUSE, 2 * pause + 1);
            pauseLeft = pause;
        }
        size = 0;
    }
}
