package io.etcfs.core.store;

/**
 * etcd, as core needs it. Reads are linearizable unless a revision is named. Implementations: {@code io.etcfs.etcd} over gRPC and
 * {@code io.etcfs.testkit} in memory; both are held to the same contract tests.
 *
 * <p>What finds another etcd cluster than the one that answered first throws {@link OtherClusterException}.
 *
 * <p>All methods block the calling (virtual) thread, at most for the time they are given, and may be called from any thread.
 */
public interface MetadataStore extends AutoCloseable {
    /**
     * Sends a transaction once. Never sends it again by itself, also not over another member.
     *
     * @throws StoreRejectedException it was refused as a whole and has had no effect
     */
    Outcome commit(Txn txn, long timeoutNs) throws StoreRejectedException;

    /**
     * Reads one key ({@code end} null) or up to {@code limit} keys (0: all) of {@code [key, end)}, in key order, as of the newest revision
     * ({@code atRevision} 0) or an earlier one. Asks other members when one does not answer.
     *
     * @throws StoreRejectedException with COMPACTED if that revision is gone, with FUTURE if it has not been yet
     */
    RangeResult range(Key key, Key end, long limit, boolean keysOnly, long atRevision, long timeoutNs) throws StoreUnavailableException, StoreRejectedException;

    LeaseGrant grantLease(long ttlSeconds, long timeoutNs) throws StoreUnavailableException;

    /** Renews a lease once, over a connection that carries nothing else. Each attempt asks one member, the next attempt the next one. */
    LeaseBeat keepAlive(long leaseId, long timeoutNs) throws StoreUnavailableException;

    /** Ends a lease and deletes its keys. No error if it is gone already. */
    void revokeLease(long leaseId, long timeoutNs) throws StoreUnavailableException;

    /** Watches {@code [from, end)} from {@code startRevision} on (0: from now). Returns at once; the listener hears when it is established. */
    Watch watch(Key from, Key end, long startRevision, WatchListener listener);

    /** Forgets all history before {@code revision}: reads at earlier revisions are refused, watches behind it resync. */
    void compact(long revision, long timeoutNs) throws StoreUnavailableException, StoreRejectedException;

    StoreStatus status(long timeoutNs) throws StoreUnavailableException;

    /**
     * Gives one member's free pages back to its filesystem. That member carries nothing out meanwhile. Sent once; where there is no answer in time it may still go on.
     *
     * @param endpoint one of {@link StoreStatus#members()}
     * @throws StoreRejectedException this user may not
     */
    void defragment(String endpoint, long timeoutNs) throws StoreUnavailableException, StoreRejectedException;

    /**
     * Asks the leader to let another member lead. Sent once; where there is no answer in time it may still happen.
     *
     * @throws StoreRejectedException this user may not
     */
    void moveLeader(String leaderEndpoint, long toMemberId, long timeoutNs) throws StoreUnavailableException, StoreRejectedException;

    @Override
    void close();
}
