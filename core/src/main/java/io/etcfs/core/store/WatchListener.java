package io.etcfs.core.store;

import java.util.List;

/** Receives what a watch sees, one call at a time and in revision order. It must not block for long. */
public interface WatchListener {
    /** Everything of the watched range that changed at one revision, in the order etcd applied it. */
    void changed(long revision, List<WatchEvent> events);

    /**
     * The watch was created again and may have missed events up to {@code revision} (compaction): what was concluded from
     * the absence of events must be read again. Also called once when the watch is first established.
     */
    void resynced(long revision);
}
