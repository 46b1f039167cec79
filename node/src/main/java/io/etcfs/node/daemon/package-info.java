/**
 * One mounted filesystem on one node: start, signals, requests from outside, end. This is the one place that wires core to etcd, the device and the
 * kernel; it decides nothing about files. Start with {@link io.etcfs.node.daemon.Daemon}.
 */
package io.etcfs.node.daemon;
