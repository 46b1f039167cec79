package io.etcfs.core.domain;

import io.etcfs.core.file.IntervalSet;
import java.util.IdentityHashMap;
import java.util.Map;

/**
 * A recall of one inode's pages while it runs: which byte ranges the kernel is known to have dropped and not been given again, and which notifications
 * are on their way, each with what was answered since it was sent. Under the node's monitor.
 */
public final class PageState {
    public final IntervalSet dropped = new IntervalSet();
    public final Map<Object, IntervalSet> outstanding = new IdentityHashMap<>();

    /** Bytes of a page-cache request were answered: the kernel may have them again. */
    public void answered(long from, long to) {
        dropped.remove(from, to);
        for (IntervalSet since : outstanding.values()) {
            since.add(from, to);
        }
    }
}
