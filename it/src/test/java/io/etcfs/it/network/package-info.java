/** Nodes with networks of their own, which fail: to etcd, to the device, to both. */
package io.etcfs.it.network;
