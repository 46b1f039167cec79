/**
 * Free and used blocks of the device, as far as they are this node's to hand out.
 *
 * <p>Start with {@link io.etcfs.core.space.Arena}: a part of the device with one owner, and the difference between <em>reserved</em> and
 * <em>journal</em>. {@link io.etcfs.core.space.Arenas} is all that one node owns, and where blocks are asked for.
 *
 * <p>Not here: claiming arenas and giving them back, records in etcd, and when a freed block may be released: this package only refuses
 * what can't be right. Nothing here is synchronized: all calls are made under the node's lock.
 */
package io.etcfs.core.space;
