package io.etcfs.core.lock;

/**
 * Whose a lock is, by the number that the kernel of one node gives: a process (its table of open files), or an open file description. Locks of the two
 * spaces don't see each other, as on a local filesystem.
 *
 * @param flock of flock(2): then {@code id} is an open file description's. Of fcntl(2) it can be either's, and the kernel does not say which
 */
public record LockOwner(boolean flock, long id) {}
