/**
 * The filesystem: start at {@link io.etcfs.core.fs.ClusterNode}, which puts the parts of a node together, and {@link io.etcfs.core.fs.Operations}, what the
 * kernel asks. {@link io.etcfs.core.fs.Names} does names and attributes (with {@link io.etcfs.core.fs.Renames} and {@link io.etcfs.core.fs.Xattrs}),
 * {@link io.etcfs.core.fs.Bytes} file contents (by {@link io.etcfs.core.fs.Reads}, {@link io.etcfs.core.fs.Writes}, {@link io.etcfs.core.fs.Mappings},
 * {@link io.etcfs.core.fs.Sizes}, {@link io.etcfs.core.fs.Holes} and {@link io.etcfs.core.fs.Durability}), {@link io.etcfs.core.fs.OpenFiles} what outlives its
 * name, {@link io.etcfs.core.fs.KernelView} what the kernel may believe. Not here: the wire ({@code io.etcfs.fuse}).
 */
package io.etcfs.core.fs;
