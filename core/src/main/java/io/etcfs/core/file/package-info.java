/**
 * What a file consists of: which device blocks hold which of its blocks, and arithmetic on ranges of it.
 *
 * <p>Start with {@link io.etcfs.core.file.ExtentMap}, the map of one file; {@link io.etcfs.core.file.Extent} is one piece of it.
 * {@link io.etcfs.core.file.IntervalSet} is the plain set of ranges that the rest is built with.
 *
 * <p>Not here: where free blocks come from ({@code io.etcfs.core.space}), sizes and times of a file, how extents are encoded, and any I/O.
 * Nothing here is synchronized: all calls are made under the node's lock.
 */
package io.etcfs.core.file;
