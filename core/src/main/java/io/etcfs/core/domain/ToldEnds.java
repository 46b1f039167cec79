package io.etcfs.core.domain;

/**
 * Ends of a file, each within a page, that the kernel was told.
 *
 * <p>Where an answer tells it another size, Linux takes that over, and then sets what the page of the new end has behind it to zero (truncate_pagecache): without a lock against those who read, and
 * after it has waited for that page if it is being read. If another node has written there in between, and that READ brings its bytes, they become zeros in the page, which would stay. So what is read of such
 * a page under a token that was taken since is dropped once more when it was answered. Under the node's monitor.
 */
public final class ToldEnds {
    /** So long after an answer its process may not have gone on. */
    static final long SETTLED_NS = 200_000_000L;

    private long low;
    /** 0: there is none. */
    private long high;
    private long firstNs;
    private long lastNs;

    /** @param heldSinceNs since when the file's token is held */
    public void told(long end, long nowNs, long heldSinceNs) {
        if (high == 0 || heldSinceNs < firstNs && nowNs - lastNs > SETTLED_NS) {
            low = end;
            high = end;
            firstNs = nowNs;
        }
        low = Math.min(low, end);
        high = Math.max(high, end);
        lastNs = nowNs;
    }

    /** Whether bytes of {@code [from, to)} that are given to the kernel now, for pages of {@code page} bytes, may become zeros there. */
    public boolean mayCut(long from, long to, long page, long nowNs, long heldSinceNs) {
        if (high == 0 || heldSinceNs < firstNs || to <= low || from >= high + page - high % page) {
            return false;
        }
        if (nowNs - lastNs > SETTLED_NS) {
            high = 0;
        }
        return true;
    }
}
