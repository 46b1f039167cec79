/** What core tells the kernel to forget. Not here: the wire format ({@code io.etcfs.fuse}) and what is dropped when ({@code io.etcfs.core.fs}). */
package io.etcfs.core.kernel;
