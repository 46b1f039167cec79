/**
 * Where something comes to its end: a device without a free block, an etcd at its quota; and what a node takes with it that is killed. Start reading at
 * {@code DeviceFullTest}. Errors of single operations under faults are tested in memory, by {@code ErrorsTest} of testkit.
 */
package io.etcfs.it.limits;
