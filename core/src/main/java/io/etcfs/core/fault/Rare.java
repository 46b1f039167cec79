package io.etcfs.core.fault;

import java.util.Set;

/**
 * Ways through the code that ordinary use takes seldom. A test that switches one on takes it often; nothing may come out differently. All are off in
 * production.
 */
public enum Rare {
    /** Batches are full after 2,000 bytes. */
    SMALL_BATCHES,
    /** Extents move to records of their own when there are more than two. */
    EXTENT_RECORDS,
    /** Freed blocks are the first to be handed out again. */
    BLOCKS_REUSED_FIRST,
    /** What frees or takes more than a few blocks is done in steps. */
    SMALL_STEPS,
    /** More than two tokens are too many, and idle ones are given back at once; the kernel gives back what it knows. */
    SMALL_CACHE,
    /** Directories of more than one name are cached in part, what is read of them is two records at a time, and what is idle of it goes again. */
    DIRECTORIES_IN_PART;

    private boolean on;

    public boolean on() {
        return on;
    }

    /** Those are on from now on and no others, in all nodes of this process. */
    public static void prefer(Set<Rare> ways) {
        for (Rare r : values()) {
            r.on = ways.contains(r);
        }
    }
}
