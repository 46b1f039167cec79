package io.etcfs.core.token;

import io.etcfs.core.domain.Domain;
import java.util.List;

/** What the token layer needs of the filesystem above it. */
public interface Host {
    /**
     * Makes the kernel drop names and attributes of the domain while operations on it go on; nothing is granted meanwhile. Gives up after a while, as requests that
     * hold the directory's lock in the kernel can be in the way. True: it believes nothing of the domain any more. Without the monitor.
     */
    boolean forgetNames(Domain domain);

    /**
     * Makes the kernel drop what it caches of the domain: with {@code keepShared} only what could be changed without asking (pages of files that may be
     * mapped writable), else names, attributes and pages. Returns when that is done, or when what the kernel was granted has run out. Without the monitor;
     * {@link Domain#namesClosed} is set.
     */
    void dropCached(Domain domain, boolean keepShared);

    /** A device access or a change in several steps is under way in the domain. Monitor held. */
    boolean busy(Domain domain);

    /**
     * The domain is about to be given up and nothing in it is opened any more: for each file that is open, what puts its {@code open:} key into the open
     * batch (two operations), if it is still open then. All with the monitor held.
     */
    List<Runnable> pinsOfOpenFiles(Domain domain);

    /** Inodes of the domain that have to be known as long as its token is held, as they are open here or about to be. Monitor held. */
    List<Long> inUse(Domain domain);

    /** The inode has something to do with a request, an open file or one about to be opened. Monitor held. */
    boolean inUse(long ino);

    /** The domain's contents were just read. Monitor held. */
    void loaded(Domain domain);

    /** The token is gone with the session, contents included. Monitor held. */
    void lost(Domain domain);
}
