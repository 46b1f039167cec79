/**
 * File locks of processes: flock(2), and byte ranges of fcntl(2), of processes and of open file descriptions. Start at {@link io.etcfs.core.lock.Locks};
 * {@link io.etcfs.core.lock.LockTable} has the rules of ranges, {@link io.etcfs.core.lock.FileLocks} who decides and when. Not here: tokens
 * ({@code io.etcfs.core.token}), which processes never see.
 */
package io.etcfs.core.lock;
