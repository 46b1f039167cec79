package io.etcfs.core.store;

/** The answer to one keep-alive. {@code ttlSeconds} 0: the lease is gone. {@code sentAtNs}: the clock before it was sent. */
public record LeaseBeat(long ttlSeconds, long sentAtNs) {}
