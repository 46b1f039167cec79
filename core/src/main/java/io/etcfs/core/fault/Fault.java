package io.etcfs.core.fault;

import java.util.Arrays;
import java.util.EnumSet;
import java.util.Set;

/**
 * A rule of the recall that is broken on purpose, or a delay that makes room for a race. Those that are named in the system property {@code etcfs.faults},
 * separated by commas, are on for the life of the process.
 */
public enum Fault {
    /** The token goes in a transaction of its own, before what was done under it is published. */
    HANDOVER_BEFORE_PUBLISH,
    /** A READ is answered only after a notification about its own pages came back. */
    NOTIFY_FROM_HANDLER,
    /** Names are invalidated also where our own requests wait in the directory, and the recall waits for that without limit. */
    NOTIFY_WITHOUT_LIMIT,
    /** The kernel keeps names, attributes and pages when the token goes. */
    CACHE_KEPT_AFTER_RECALL,
    /** Replies that let the kernel believe something and are not written yet hold up no recall, and count from when they were made. */
    REPLY_NOT_AWAITED,
    /** Pages answered since an invalidation began count as dropped by it. */
    ANSWERED_NOT_DROPPED_AGAIN,
    /** Waiting requests have no pages locked: invalidations of pages wait for them. */
    WAITING_RANGES_IGNORED,
    /** Readers and writers go on for as long as they like while their pages are being dropped. */
    PAGES_NEVER_CLOSED,
    /** Bytes of a shared mapping wait for the token like any other write. */
    WRITE_BACK_WAITS,
    /** A process that is killed while it waits is not let go. */
    KILLED_CALLER_WAITS,
    /** Bytes of O_APPEND go where the kernel says. */
    APPEND_PLACED_BY_KERNEL,
    /** Directories get the plain form of the notification about a name. */
    DIRECTORIES_NOT_ONLY_EXPIRED,
    /** Not a broken rule: replies to LOOKUP and READ are written {@value #DELAY_MS} ms after they were made. */
    DELAY_REPLY;

    public static final long DELAY_MS = 150;

    private final boolean on = Arrays.asList(System.getProperty("etcfs.faults", "").split(",")).contains(name());

    public boolean on() {
        return on;
    }

    /** Says so in the log if any is on: such a node loses data. */
    public static void warn() {
        Set<Fault> planted = EnumSet.noneOf(Fault.class);
        for (Fault f : values()) {
            if (f.on) {
                planted.add(f);
            }
        }
        if (!planted.isEmpty()) {
            System.getLogger(Fault.class.getName()).log(System.Logger.Level.WARNING, "PLANTED FAULTS, for tests only: {0}", planted);
        }
    }

    /** Between an operation and its reply. */
    public static void delayReply() {
        if (DELAY_REPLY.on) {
            try {
                Thread.sleep(DELAY_MS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
