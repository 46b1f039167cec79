/**
 * Whether a filesystem's records in etcd agree with each other: one piece of code for {@code etcfsctl fsck} and for tests that look at a running cluster after
 * each of its steps.
 *
 * <p>Start with {@link io.etcfs.core.check.Checker}. What is checked is the list of {@link io.etcfs.core.check.Kind}; each has its invariant beside it. They
 * hold at <em>every</em> revision of etcd, not only at rest: a revision is a whole batch or another whole transaction, and each of them leaves the records in
 * agreement. Work in the middle of an operation (a remainder, an orphan, an {@code unfree:} record) has records of its own that say so.
 *
 * <p>The parts take their kinds of keys in key order and keep only numbers of them: {@link io.etcfs.core.check.NameCheck} and
 * {@link io.etcfs.core.check.InodeCheck} the tree, {@link io.etcfs.core.check.ExtentCheck} and {@link io.etcfs.core.check.SpaceCheck} the blocks,
 * {@link io.etcfs.core.check.TokenCheck} and {@link io.etcfs.core.check.NodeCheck} the tokens and who has them.
 *
 * <p>Not here: any I/O, any repair, and bytes on the device.
 */
package io.etcfs.core.check;
