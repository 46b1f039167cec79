/**
 * A FUSE mount from mount(2) to umount(2). Start at {@link io.etcfs.linux.mount.FuseMount}; {@link io.etcfs.linux.mount.FuseSession} is a mount that
 * lives, {@link io.etcfs.linux.mount.Mounts} looks at mounts from outside.
 *
 * <p>Requests come by one of two transports ({@code FuseTransport}).
 *
 * <p>{@code DeviceTransport}: each reader thread has a /dev/fuse descriptor of its own, cloned from the one that was mounted, and a buffer that it reads one request at a time into. It
 * answers the request itself, on the same descriptor, since the kernel looks for a request only among those that were read through it. A request that must wait
 * is handed with its memory to a virtual thread.
 *
 * <p>{@code UringTransport}: each CPU has a thread with a ring ({@code UringQueue}) and buffers that are registered for it ({@code UringEntry}).
 *
 * <p>Notifications go through threads of their own ({@code FuseNotifier}), for each can block in the kernel
 * until some request has been answered.
 *
 * <p>Nothing here ever uses a path inside of the mount.
 */
package io.etcfs.linux.mount;
