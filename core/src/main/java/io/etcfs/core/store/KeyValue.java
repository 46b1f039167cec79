package io.etcfs.core.store;

/** A key with its value and etcd's revisions of it. {@code leaseId} is 0 for a key without a lease. */
public record KeyValue(Key key, byte[] value, long createRevision, long modRevision, long version, long leaseId) {}
