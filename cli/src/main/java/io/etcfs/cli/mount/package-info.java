/** {@code etcfs mount} and {@code etcfs umount}. The first turns its process into the daemon; bin/etcfs detaches it. Start with {@link io.etcfs.cli.mount.MountCommand}. */
package io.etcfs.cli.mount;
