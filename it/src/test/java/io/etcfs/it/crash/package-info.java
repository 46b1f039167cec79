/**
 * Daemons killed in the middle of work. {@link io.etcfs.it.crash.Script} is a list of system calls; {@link io.etcfs.it.crash.Tree} knows what they lead to
 * and finds the prefix that a tree seen after the crash is the result of; {@link io.etcfs.it.crash.KillTest} kills, mounts again and looks.
 *
 * <p>Not here: bytes overwritten in place, which are not ordered, and faults of etcd ({@code io.etcfs.it.outage}).
 */
package io.etcfs.it.crash;
