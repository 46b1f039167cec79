package io.etcfs.core.fs;

import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Vnode;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Keeps the number of inodes bounded that the kernel remembers: it gives them back only when its own memory is short, which on a large machine is never. Those of
 * directories that were not used for longest are asked for first. What is in use the kernel keeps; it is asked again after a while.
 */
final class Pruner {
    /** So many are asked for under one hold of the monitor. */
    private static final int AT_ONCE = 20_000;
    private static final long ASKED_NS = 30_000_000_000L;
    /** For so long the kernel's answer may be on its way: what was asked for counts as gone. */
    private static final long UNDER_WAY_NS = 1_000_000_000L;

    private final Node node;
    private final int maxInodes;
    private final int atOnce;

    Pruner(Node node, int maxInodes) {
        this.node = node;
        this.maxInodes = maxInodes;
        this.atOnce = Math.clamp(maxInodes / 4, 1, AT_ONCE);
    }

    /** Asks the kernel to give inodes back if it knows too many; returns whether there are more of them than were asked for at once. Monitor held. */
    boolean run() {
        int tooMany = node.vnodes().count() - maxInodes;
        if (tooMany <= 0 || !node.view().canPrune()) {
            return false;
        }
        // Somewhat more, so that not every inode that is looked up makes one go.
        int wanted = tooMany + maxInodes / 8;
        long now = node.monitor().nowNs();
        List<Long> asked = new ArrayList<>();
        for (long home : longestUnusedFirst()) {
            for (Vnode v : node.vnodes().withHome(home)) {
                if (now - v.pruneAskedNs < UNDER_WAY_NS) {
                    wanted--;
                } else if (asked.size() < Math.min(wanted, atOnce) && v.lookups > 0 && v.handles == 0 && v.ino != Vnodes.ROOT && now - v.pruneAskedNs >= ASKED_NS) {
                    v.pruneAskedNs = now;
                    asked.add(v.ino);
                }
            }
            if (asked.size() >= Math.min(wanted, atOnce)) {
                break;
            }
        }
        node.view().prune(asked);
        return asked.size() == atOnce && wanted > atOnce;
    }

    private List<Long> longestUnusedFirst() {
        record Home(long id, long lastUsedNs) {}
        List<Home> homes = new ArrayList<>();
        for (Map.Entry<Long, Set<Vnode>> e : node.vnodes().homes().entrySet()) {
            Domain d = node.tokens().known(e.getKey());
            homes.add(new Home(e.getKey(), d == null ? Long.MIN_VALUE : d.lastUsedNs));
        }
        homes.sort(Comparator.comparingLong(Home::lastUsedNs).thenComparingLong(Home::id));
        return homes.stream().map(Home::id).toList();
    }
}
