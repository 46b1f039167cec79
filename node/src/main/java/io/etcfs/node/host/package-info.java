/**
 * What the host says about mount points and devices, and the files of a running daemon under /run. Start with {@link io.etcfs.node.host.MountPoint}.
 * System calls are not here but in the linux module.
 */
package io.etcfs.node.host;
