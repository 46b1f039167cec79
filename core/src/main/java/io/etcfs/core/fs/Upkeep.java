package io.etcfs.core.fs;

import io.etcfs.core.device.DeviceException;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreStatus;
import io.etcfs.core.store.StoreUnavailableException;

/**
 * What has to be done now and then: idle tokens and inodes are given back above a bound, suspects that have ended are cleared, etcd's history is compacted by one node of the cluster, and a database that fills
 * up is noticed before it refuses everything (an etcd in NOSPACE alarm can't be left by deleting).
 */
final class Upkeep {
    private static final long EVERY_NS = 1_000_000_000L;
    /** Between two parts of a pruning that takes several: who lists a large tree makes the kernel know some 30,000 inodes a second. */
    private static final long PRUNE_NS = 100_000_000L;
    private static final long STATUS_NS = 5_000_000_000L;
    private static final long COMPACT_NS = 30_000_000_000L;
    private static final long REQUEST_NS = 3_000_000_000L;
    /** What etcd has where it does not say (before 3.6) and was not told otherwise. */
    private static final long DEFAULT_QUOTA = 2L << 30;
    private static final System.Logger LOG = System.getLogger(Upkeep.class.getName());

    private final Node node;
    private final Pruner pruner;
    private long compactTo;

    /** @param maxCachedBytes of what is cached under tokens; the kernel may know an inode for each KiB of it */
    Upkeep(Node node, long maxCachedBytes) {
        this.node = node;
        this.pruner = new Pruner(node, (int) Math.clamp(maxCachedBytes >> 10, 1, 1 << 24));
    }

    void run() {
        long nextStatus = 0;
        long nextCompaction = node.monitor().nowNs() + COMPACT_NS;
        while (!node.waiting().stopped()) {
            try {
                node.monitor().clock().sleep(EVERY_NS);
                while (giveBack() && !node.waiting().stopped()) {
                    node.monitor().clock().sleep(PRUNE_NS);
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return;
            }
            long now = node.monitor().nowNs();
            try {
                node.tokens().clearSuspects();
                if (now >= nextStatus) {
                    nextStatus = now + STATUS_NS;
                    watchSize(node.store().status(REQUEST_NS));
                }
                if (now >= nextCompaction) {
                    nextCompaction = now + COMPACT_NS;
                    compact();
                }
            } catch (StoreUnavailableException | StoreRejectedException | DeviceException e) {
                LOG.log(System.Logger.Level.DEBUG, "upkeep: {0}", e.getMessage());
            }
        }
    }

    /** Returns whether there is more to give back. */
    private boolean giveBack() {
        node.monitor().lock();
        try {
            node.tokens().trim();
            return pruner.run();
        } finally {
            node.monitor().unlock();
        }
    }

    private void watchSize(StoreStatus status) {
        long quota = status.quotaBytes() > 0 ? status.quotaBytes() : DEFAULT_QUOTA;
        boolean full = status.dbSizeBytes() >= quota / 10 * 8 && status.dbInUseBytes() >= quota / 10 * 7;
        node.monitor().lock();
        try {
            if (full != node.space().storeFull()) {
                LOG.log(full ? System.Logger.Level.WARNING : System.Logger.Level.INFO, full ? "etcd is nearly full ({0} bytes of {1}): new files are refused, removing goes on"
                        : "etcd has room again ({0} bytes of {1})", Long.toString(status.dbInUseBytes()), Long.toString(quota));
            }
            node.space().storeFull(full);
        } finally {
            node.monitor().unlock();
        }
    }

    /** The member with the smallest name compacts, to what was the newest revision half a minute ago. */
    private void compact() throws StoreUnavailableException, StoreRejectedException {
        KeyValue first = node.store().range(node.keys().memberships(), node.keys().memberships().prefixEnd(), 1, true, 0, REQUEST_NS).only();
        long newest = node.store().range(node.keys().superblock(), null, 0, true, 0, REQUEST_NS).revision();
        if (first != null && node.keys().parseNode(first.key()).node().equals(node.name()) && compactTo > 0) {
            try {
                node.store().compact(compactTo, REQUEST_NS);
            } catch (StoreRejectedException e) {
                // Somebody else compacted further.
                if (e.reason() != StoreRejectedException.Reason.COMPACTED) {
                    throw e;
                }
            }
        }
        compactTo = newest;
    }
}
