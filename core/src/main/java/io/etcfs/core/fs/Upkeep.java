package io.etcfs.core.fs;

import io.etcfs.core.device.DeviceException;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreRoom;
import io.etcfs.core.store.StoreStatus;
import io.etcfs.core.store.StoreUnavailableException;

/**
 * What has to be done now and then: idle tokens and inodes are given back above a bound, a device that has grown is used, suspects that have ended are cleared, etcd's history is compacted by one node of the cluster, and a database that fills
 * up is noticed before it refuses everything (an etcd in NOSPACE alarm can't be left by deleting).
 */
final class Upkeep {
    private static final long EVERY_NS = 1_000_000_000L;
    /** Between two parts of a pruning that takes several: who lists a large tree makes the kernel know some 30,000 inodes a second. */
    private static final long PRUNE_NS = 100_000_000L;
    private static final long STATUS_NS = 5_000_000_000L;
    private static final long COMPACT_NS = 30_000_000_000L;
    /** Where etcd has little room: what can go of its history goes soon. */
    private static final long COMPACT_SOON_NS = 2_000_000_000L;
    /** How often it is said again that etcd has no room. */
    private static final long SAY_AGAIN_NS = 60_000_000_000L;
    private static final long REQUEST_NS = 3_000_000_000L;
    private static final System.Logger LOG = System.getLogger(Upkeep.class.getName());

    private final Node node;
    private final Pruner pruner;
    private long compactTo;
    private StoreRoom room = StoreRoom.ENOUGH;
    private boolean halfFull;
    private long saidNs = Long.MIN_VALUE / 2;

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
                node.space().followDevice();
                boolean refused = node.monitor().with(node.pipeline()::takeRefusedForSpace);
                if (now >= nextStatus || refused || halfFull) {
                    nextStatus = now + STATUS_NS;
                    StoreRoom before = room;
                    watchSize(node.store().status(REQUEST_NS));
                    nextCompaction = before == StoreRoom.ENOUGH && room != before ? now : nextCompaction;
                }
                if (now >= nextCompaction) {
                    nextCompaction = now + (room == StoreRoom.ENOUGH ? COMPACT_NS : COMPACT_SOON_NS);
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
        halfFull = status.dbSizeBytes() >= StoreRoom.quota(status) / 2;
        StoreRoom now = StoreRoom.of(status);
        if (now != room || now != StoreRoom.ENOUGH && node.monitor().nowNs() >= saidNs + SAY_AGAIN_NS) {
            saidNs = node.monitor().nowNs();
            say(now, status);
        }
        room = now;
        node.monitor().lock();
        try {
            node.space().storeRoom(now);
            node.monitor().changed();
        } finally {
            node.monitor().unlock();
        }
    }

    private static void say(StoreRoom room, StoreStatus status) {
        String sizes = status.dbSizeBytes() + " of " + StoreRoom.quota(status) + " bytes, " + status.dbInUseBytes() + " of them in use";
        String remedy = StoreRoom.worthDefragmenting(status) ? "defragment its members one after the other (etcdctl defrag)" : "remove files, or raise its --quota-backend-bytes";
        switch (room) {
            case ENOUGH -> LOG.log(System.Logger.Level.INFO, "etcd has room again: {0}", sizes);
            case LITTLE -> LOG.log(System.Logger.Level.WARNING, "etcd is nearly full ({0}): new files, blocks and attributes are refused with ENOSPC, all else goes on. To be done: {1}", sizes, remedy);
            case NONE -> LOG.log(System.Logger.Level.ERROR, "etcd is full ({0}) and refuses every change, also those that remove something (alarm NOSPACE): nothing is published any more, "
                    + "and what changes something fails with ENOSPC. To be done: {1}, then etcdctl alarm disarm", sizes, remedy);
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
