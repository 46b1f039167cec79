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
    private static final long RESERVE_BYTES = 64L << 20;

    public static StoreRoom of(StoreStatus status) {
        if (status.noSpaceAlarm()) {
            return NONE;
        }
        long quota = quota(status);
        boolean filled = status.dbSizeBytes() >= quota / 10 * 8 && !worthDefragmenting(status);
        boolean grown = status.dbSizeBytes() >= quota - Math.min(RESERVE_BYTES, quota / 20);
        return filled || grown ? LITTLE : ENOUGH;
    }

    /** The file has grown, and much of it is free pages: etcd gives them back only when it is defragmented. */
    public static boolean worthDefragmenting(StoreStatus status) {
        return status.dbInUseBytes() < quota(status) / 10 * 7;
    }

    public static long quota(StoreStatus status) {
        return status.quotaBytes() > 0 ? status.quotaBytes() : DEFAULT_QUOTA;
    }
}
