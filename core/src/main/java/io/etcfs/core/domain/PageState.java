package io.etcfs.core.domain;

import io.etcfs.core.file.IntervalSet;

/**
 * A recall of one inode's pages while it runs: which byte ranges the kernel is known to have dropped and not been given again, and which notifications
 * are on their way. Under the node's monitor.
 */
public final class PageState {
    public final IntervalSet dropped = new IntervalSet();
    public int outstanding;

    /** Bytes of a page-cache request were answered: the kernel may have them again. */
    public void answered(long from, long to) {
        dropped.remove(from, to);
    }
}
