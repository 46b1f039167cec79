/**
 * etcd stops or is killed while both nodes work: {@link io.etcfs.it.outage.OutageTest}. The programs remember what was acknowledged, and both nodes
 * must show exactly that afterwards, from the same daemons.
 */
package io.etcfs.it.outage;
