/**
 * Linux system calls through the C library and java.lang.foreign. The only package with native access; the others of this module are built on it.
 * Start at {@link io.etcfs.linux.call.Descriptors}.
 *
 * <p>Conventions, those of the kernel: addresses are longs; a call returns a value that is not negative, or minus an errno. The errno is captured by
 * the call itself. None of the calls is a critical one: a thread that blocks in one holds up nobody, garbage collection included. Errors that leave
 * this module are {@link io.etcfs.linux.call.LinuxException}.
 */
package io.etcfs.linux.call;
