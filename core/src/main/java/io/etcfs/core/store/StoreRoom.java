package io.etcfs.core.store;

/**
 * How much etcd can still take, by its own numbers. An etcd that reaches its quota refuses every transaction that puts something, those that delete among them,
 * until an operator has made room and disarmed its alarm: so nothing new is begun long before.
 */
public enum StoreRoom {
    ENOUGH,
    /** Records that are new are not put any more; what changes and removes some goes on. */
    LITTLE,
    /** The alarm NOSPACE is raised: etcd refuses whatever puts something. */
    NONE;

    /** What etcd has where it does not say (before 3.6) and was not told otherwise. */
    private static final long DEFAULT_QUOTA = 2L << 30;
    /** Kept free of the file's growth: free pages are used again, but only where enough of them lie in a row. */
    private static final long LAST_BYTES = 64L << 20;
    /**
     * What removing may need on the way: etcd forgets up to 1,000 revisions at a time, and writes again, elsewhere, what else is in their pages. Where records are of 64 KiB
     * that is most of a small database.
     */
    private static final long REMOVAL_BYTES = 256L << 20;

    public static StoreRoom of(StoreStatus status) {
        if (status.noSpaceAlarm()) {
            return NONE;
        }
        long quota = quota(status);
        boolean filled = status.dbSizeBytes() >= quota - reserve(quota) && !worthDefragmenting(status);
        boolean grown = status.dbSizeBytes() >= quota - Math.min(LAST_BYTES, quota / 20);
        return filled || grown ? LITTLE : ENOUGH;
    }

    /** What is not for new records: a fifth of the quota, two of a small one. */
    private static long reserve(long quota) {
        return Math.max(quota / 5, Math.min(REMOVAL_BYTES, quota / 5 * 2));
    }

    /** The file has grown, and much of it is free pages: etcd gives them back only when it is defragmented. */
    public static boolean worthDefragmenting(StoreStatus status) {
        long quota = quota(status);
        return status.dbInUseBytes() < quota - reserve(quota) - quota / 10;
    }

    public static long quota(StoreStatus status) {
        return status.quotaBytes() > 0 ? status.quotaBytes() : DEFAULT_QUOTA;
    }
}
