package io.etcfs.core.store;

/**
 * The answer to one keep-alive.
 *
 * @param ttlSeconds     0: the lease is gone
 * @param sentAtNs       the clock before it was sent
 * @param memberRevision how far the member was that answered, which may be behind the others; 0: it does not say
 */
public record LeaseBeat(long ttlSeconds, long sentAtNs, long memberRevision) {}
