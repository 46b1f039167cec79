/**
 * Whole nodes of core in one process, on the store in memory and a device in memory, with a client that walks paths as a kernel would: start at
 * {@link io.etcfs.testkit.cluster.TestCluster}. Not here: a kernel's caches.
 */
package io.etcfs.testkit.cluster;
