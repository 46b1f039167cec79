/**
 * Changes on their way to the device and to etcd, in order: start at {@link io.etcfs.core.pipeline.Pipeline}. Not here: what a change is
 * ({@code io.etcfs.core.fs}) and what giving a token means ({@code io.etcfs.core.token}).
 */
package io.etcfs.core.pipeline;
