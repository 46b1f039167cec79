package io.etcfs.core.fs;

/**
 * A node's numbers at one moment; counters count from the start of the process.
 *
 * @param sessionLeftNs how long the session may still be trusted without another keep-alive, 0: not trusted
 * @param tokensTrimmed how many of the tokens recalled nobody wanted: given back as too much was cached
 * @param cachedBytes   about what is cached under tokens, at most
 * @param batchDataNs   how long the data of batches took, flushes included; {@code batchTransactionNs} their transactions, waiting for another attempt not included
 * @param vnodes        inodes that the kernel or an open file knows here
 */
public record NodeStatus(String node, long sessionRevision, long sessionLeftNs, long generation, int tokensHeld, long tokensAcquired, long tokensRecalled, long tokensTrimmed, long cachedBytes, long maxCachedBytes, long batchesCommitted,
        long operationsCommitted, long blocksWritten, long batchDataNs, long batchTransactionNs, int batchesWaiting, int arenas, int vnodes, int openFiles) {}
