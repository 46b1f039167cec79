package io.etcfs.core.fs;

import io.etcfs.core.domain.Dirent;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Mode;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;

/**
 * Asks for the tokens of directories that a walker will come to. Who looks up one directory after the other of the same parent, without holding their tokens, gets those
 * of the next ones in listing order asked for in the background, so that wants, handovers and reads overlap and share transactions.
 *
 * <p>Each is asked for SHARED once, as the walk itself would: never one that was recalled from here a moment ago, none from a holder that vanished, none of a parent that is being changed here, and no
 * more than {@link #AHEAD} that the walker has not come to, in groups: again when half of them are used. One that is recalled before it was of use ends the readahead of its parent for a while. All with the monitor held.
 */
final class Readahead {
    static final int AHEAD = 32;
    /** After a listing, which a walk begins with and other things, too: until one of these is used. */
    static final int AHEAD_AT_FIRST = 8;
    private static final int MISSES = 3;
    /** Names looked at in one go: a parent can have many that are no directories. */
    private static final int SCAN = 512;
    private static final int MAX_WALKS = 64;
    private static final long FORGET_NS = 3_000_000_000L;
    private static final long QUIET_NS = 10_000_000_000L;

    private final Node node;
    private final Map<Long, Walk> walks = new LinkedHashMap<>(16, 0.75f, true) {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<Long, Walk> eldest) {
            return size() > MAX_WALKS;
        }
    };

    Readahead(Node node) {
        this.node = node;
    }

    /** What is known of the walkers of one parent. */
    private static final class Walk {
        int misses;
        int most = AHEAD;
        /** A lookup that waits comes again and again. */
        long last;
        long lastNs;
        final Set<Long> ahead = new HashSet<>();
        long scannedTo;
        long quietUntilNs = Long.MIN_VALUE;
    }

    /** The entry, a directory, is looked up in the parent, whose token is held. */
    void lookedUp(Domain parent, Dirent e) {
        Domain child = node.tokens().known(e.ino());
        boolean held = child != null && child.held != Mode.NONE;
        Walk w = walks.get(parent.id);
        if (w == null) {
            if (held) {
                return;
            }
            w = new Walk();
            walks.put(parent.id, w);
        }
        if (w.last == e.ino()) {
            return;
        }
        long now = node.monitor().nowNs();
        if (now - w.lastNs > FORGET_NS) {
            w.misses = 0;
            w.most = AHEAD;
            w.ahead.clear();
        }
        w.last = e.ino();
        w.lastNs = now;
        boolean asked = w.ahead.remove(e.ino());
        if (asked && !held && (child == null || !child.acquiring)) {
            w.quietUntilNs = now + QUIET_NS;
            w.ahead.clear();
        } else if (!asked && !held) {
            w.misses++;
            if (w.misses == 1 && now - parent.listedNs <= FORGET_NS) {
                w.misses = MISSES;
                w.most = AHEAD_AT_FIRST;
            }
            if (w.misses == MISSES) {
                w.scannedTo = e.hash();
            }
        } else if (!asked) {
            return;
        } else {
            w.most = AHEAD;
        }
        if (w.ahead.size() > w.most / 2) {
            // A listing with attributes can have made the lookup unnecessary.
            w.ahead.removeIf(this::used);
        }
        if (w.misses >= MISSES && w.ahead.size() <= w.most / 2 && now >= w.quietUntilNs && parent.lastBatch <= node.pipeline().committedNumber()) {
            ask(parent, w);
        }
    }

    private boolean used(long ino) {
        Domain d = node.tokens().known(ino);
        return d == null || d.held != Mode.NONE && d.lastUsedNs > d.heldSinceNs;
    }

    private void ask(Domain parent, Walk w) {
        int left = SCAN;
        NavigableMap<Long, Dirent> rest = parent.entries.tailMap(w.scannedTo, false);
        for (Dirent e : (rest.isEmpty() ? parent.entries : rest).values()) {
            if (w.ahead.size() >= w.most || left-- == 0) {
                return;
            }
            w.scannedTo = e.hash();
            if (e.isDirectory() && e.ino() != w.last && node.tokens().askAhead(e.ino(), parent.fromHolder)) {
                w.ahead.add(e.ino());
            }
        }
    }
}
