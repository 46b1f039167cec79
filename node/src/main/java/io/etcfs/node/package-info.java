/** The daemon of one mounted filesystem on one node. Start with {@link io.etcfs.node.daemon.Daemon}. */
package io.etcfs.node;
