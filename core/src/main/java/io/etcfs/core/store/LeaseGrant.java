package io.etcfs.core.store;

/** A new lease. {@code sentAtNs} is the clock before the request was sent; the lease lives at least {@code ttlSeconds} from then. */
public record LeaseGrant(long leaseId, long ttlSeconds, long sentAtNs) {}
