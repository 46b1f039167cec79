/**
 * The kernel's FUSE protocol (include/uapi/linux/fuse.h, 7.34 to 7.45) between bytes in memory and {@link io.etcfs.core.fs.Operations}. Start at
 * {@link io.etcfs.fuse.protocol.Dispatcher}; {@link io.etcfs.fuse.protocol.Negotiation} is the INIT handshake.
 *
 * <p>Memory is a {@link java.lang.foreign.MemorySegment} and an offset in it, always in native byte order: one segment over the whole address
 * space, or a small one. Structures are read and written in place. There are no system calls here, and no threads: who reads
 * /dev/fuse, and on which thread a request that must wait goes on, is the transport's business.
 */
package io.etcfs.fuse.protocol;
