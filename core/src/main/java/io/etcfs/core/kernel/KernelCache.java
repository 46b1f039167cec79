package io.etcfs.core.kernel;

/**
 * What the kernel caches of this mount, and how it is told to drop it. Each call queues a notification that a thread of its own
 * sends, and returns at once; {@code done} runs when the kernel has carried it out, also when it did not know the object. A notification
 * can hang for as long as a request of the same directory or page waits for us: who holds a token for it must never wait without end.
 */
public interface KernelCache {
    /** Whether {@code expireOnly} entries can be dropped: before Linux 6.2 they stay for as long as they were granted. */
    boolean canExpireEntries();

    /** Drops one name of a directory, positive or negative. For directories the entry is only expired, never unmounted. */
    void invalidateEntry(long parentIno, byte[] name, boolean expireOnly, Runnable done);

    /** Drops the attributes of an inode. */
    void invalidateAttributes(long ino, Runnable done);

    /** Writes back and drops the pages of {@code [offsetBytes, offsetBytes + lengthBytes)} ({@code lengthBytes} 0: to the end), and the attributes. */
    void invalidatePages(long ino, long offsetBytes, long lengthBytes, Runnable done);

    /** The same; {@code sending} runs on the sending thread just before it enters the kernel. */
    default void invalidatePages(long ino, long offsetBytes, long lengthBytes, Runnable sending, Runnable done) {
        sending.run();
        invalidatePages(ino, offsetBytes, lengthBytes, done);
    }

    /** Whether {@link #prune} does something: since Linux 6.18. */
    default boolean canPrune() {
        return false;
    }

    /** Asks for inodes to be given back (FORGET) that nothing in the kernel uses; those in use stay. {@code done} runs when it has looked at all of them. */
    default void prune(long[] inos, Runnable done) {
        done.run();
    }

    /** Cuts the kernel off from this mount: every request in it, and every later one, fails with ECONNABORTED. */
    void abort();
}
