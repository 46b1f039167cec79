/** Nodes that are cut off from the device: persistent reservations on a target of tgt, from single commands ({@link io.etcfs.it.fence.ReservationsTest}) to whole nodes. */
package io.etcfs.it.fence;
