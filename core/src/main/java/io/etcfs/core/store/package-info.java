/**
 * etcd as core sees it. Start at {@link io.etcfs.core.store.MetadataStore}. Not here: what is kept in it ({@code io.etcfs.core.record}) and how it is
 * reached ({@code io.etcfs.etcd}).
 */
package io.etcfs.core.store;
