/**
 * {@link io.etcfs.core.store.MetadataStore} over etcd's v3 client protocol. Start reading at {@link io.etcfs.etcd.EtcdStore}; {@code Watches} is the one part
 * with a state machine. {@code io.etcfs.etcd.wire} is generated from {@code src/main/protobuf/etcd.proto}.
 *
 * <p>Not here: what the keys mean, when an unknown outcome is settled, when a lease is renewed. Nothing retries a transaction.
 */
package io.etcfs.etcd;
