/**
 * What programs may expect of a filesystem: {@code cases.py} is a suite of functions over two ways to one directory that does not know whose filesystem it
 * tests. {@link io.etcfs.it.posix.PosixTest} runs it on a local filesystem first, then on one of our mounts, then on the mounts of two nodes.
 */
package io.etcfs.it.posix;
