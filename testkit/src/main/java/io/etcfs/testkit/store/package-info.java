/**
 * An etcd for tests: {@link io.etcfs.testkit.store.MemoryStore} keeps etcd's rules in memory, {@link io.etcfs.testkit.store.FaultyStore}
 * stands between it and a node and loses, delays and repeats nothing by itself but whatever it is told to,
 * {@link io.etcfs.testkit.store.EtcdServers} runs the real one. {@link io.etcfs.testkit.store.MetadataStoreContract} is what all of them are held to;
 * start reading there.
 *
 * <p>Not here: the gRPC client (module etcd), and any rule of EtcFS: this package knows keys, revisions and leases only.
 */
package io.etcfs.testkit.store;
