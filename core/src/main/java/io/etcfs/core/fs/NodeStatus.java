package io.etcfs.core.fs;

/**
 * A node's numbers at one moment; counters count from the start of the process.
 *
 * @param sessionLeftNs how long the session may still be trusted without another keep-alive, 0: not trusted
 * @param vnodes        inodes that the kernel or an open file knows here
 */
public record NodeStatus(String node, long sessionRevision, long sessionLeftNs, long generation, int tokensHeld, long tokensAcquired, long tokensRecalled, long batchesCommitted,
        long operationsCommitted, long blocksWritten, int batchesWaiting, int arenas, int vnodes, int openFiles) {}
