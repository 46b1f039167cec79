/**
 * What becomes of a node that vanished: every node's {@link io.etcfs.core.fence.FenceController} watches the members, records an intent for one that went
 * without a clean departure, has it cut off from the device by a {@link io.etcfs.core.fence.Fencer}, and gives what it owned to the others. The steps are in
 * {@link io.etcfs.core.fence.Fence}. Not here: how a device is told to refuse a node, and what a node does that learns it was fenced ({@code core.session}).
 */
package io.etcfs.core.fence;
