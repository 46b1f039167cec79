package io.etcfs.node.daemon;

import io.etcfs.linux.mount.Transport;
import java.nio.file.Path;
import java.util.logging.Level;

/**
 * What a mount is to be.
 *
 * @param filesystem its name
 * @param mountPoint as the user named it
 * @param device     an absolute path, or an iscsi:// address
 * @param fencer     how nodes that vanish are to be cut off from it
 * @param mountFlags MS_* of mount(2)
 * @param transport  how requests come from the kernel
 * @param pidFile    to be written once the mount serves and removed at the end, or null
 * @param logFile    null: standard error
 * @param cacheBytes about how much of the heap may be taken by names, inodes and extents that are not in use; 0: what the heap allows
 * @param hangLimitS how long the daemon may give no sign of life before its mount is cut off; 0: for ever
 * @param background who started the daemon waits for a report on standard output and then goes
 */
public record Options(String filesystem, Path mountPoint, EtcdConnection etcd, String device, FencerChoice fencer, String node, long mountFlags, Transport transport, Path pidFile, Path logFile, Level logLevel,
        long cacheBytes, int hangLimitS, boolean background) {}
