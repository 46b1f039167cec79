package io.etcfs.core.fs;

import io.etcfs.core.clock.Tasks;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;

/**
 * What has to be done now and then: idle tokens and inodes are given back above a bound, a device that has grown is used, suspects that have ended are cleared, the device is told how far etcd has come, and etcd is looked after ({@link StoreUpkeep}).
 */
final class Upkeep {
    private static final long EVERY_NS = 1_000_000_000L;
    /** Between two parts of a pruning that takes several: who lists a large tree makes the kernel know some 30,000 inodes a second. */
    private static final long PRUNE_NS = 100_000_000L;
    private static final System.Logger LOG = System.getLogger(Upkeep.class.getName());

    private final Node node;
    private final Pruner pruner;
    private final StoreUpkeep store;
    private final KnownHistory history;

    /** @param maxCachedBytes of what is cached under tokens; the kernel may know an inode for each KiB of it */
    Upkeep(Node node, long maxCachedBytes, KnownHistory history) {
        this.history = history;
        this.node = node;
        this.store = new StoreUpkeep(node);
        this.pruner = new Pruner(node, (int) Math.clamp(maxCachedBytes >> 10, 1, 1 << 24));
    }

    /** Two tasks: what is bounded here must not wait for etcd or the device, which may take a minute. */
    void start(Tasks tasks) {
        tasks.start("give-back", () -> everySecond(() -> {
            while (giveBack() && !node.waiting().stopped()) {
                node.monitor().clock().sleep(PRUNE_NS);
            }
        }));
        tasks.start("upkeep", () -> everySecond(() -> {
            node.tokens().clearSuspects();
            node.space().followDevice();
            history.keep(node.monitor().nowNs());
            store.run();
        }));
    }

    private interface Work {
        void run() throws InterruptedException, StoreUnavailableException, StoreRejectedException, DeviceException;
    }

    private void everySecond(Work work) {
        while (!node.waiting().stopped()) {
            try {
                node.monitor().clock().sleep(EVERY_NS);
                work.run();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return;
            } catch (StoreUnavailableException | StoreRejectedException | DeviceException e) {
                LOG.log(System.Logger.Level.DEBUG, "upkeep: {0}", e.getMessage());
            }
        }
    }

    /** Returns whether there is more to give back. */
    private boolean giveBack() {
        node.monitor().lock();
        try {
            boolean more = node.tokens().trim();
            return pruner.run() || more;
        } finally {
            node.monitor().unlock();
        }
    }
}
