/**
 * A cluster on one machine for tests: real etcd, real loop device, real kernel mounts, a daemon for each node. {@link io.etcfs.it.cluster.DevCluster} starts
 * it through {@code ./dev}; {@link io.etcfs.it.cluster.Crew} works on the mounts in child processes, since whoever works there may hang and a thread of
 * this process could then not be ended; {@link io.etcfs.it.cluster.HangReport} says who hangs where.
 */
package io.etcfs.it.cluster;
