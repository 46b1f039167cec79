/**
 * What a node knows under a token: {@link io.etcfs.core.domain.Domain} (a directory's token and its cached contents), {@link io.etcfs.core.domain.Inode},
 * {@link io.etcfs.core.domain.Dirent}; and {@link io.etcfs.core.domain.Vnode}, what it knows of an inode because the kernel does, token or not. State
 * only. Not here: how tokens are got and given ({@code io.etcfs.core.token}) and what operations do ({@code io.etcfs.core.fs}).
 */
package io.etcfs.core.domain;
