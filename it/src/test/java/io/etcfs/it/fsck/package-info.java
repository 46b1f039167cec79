/**
 * {@code etcfsctl fsck} on a filesystem that two nodes work on: {@link io.etcfs.it.fsck.FsckTest}. That it finds each kind of damage is shown without a kernel,
 * by {@code io.etcfs.testkit.cluster.PlantedDamageTest}.
 */
package io.etcfs.it.fsck;
