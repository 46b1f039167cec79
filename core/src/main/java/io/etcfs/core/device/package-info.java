/** The shared block device as a port. Not here: who may write where ({@code io.etcfs.core.space}) and how it is opened ({@code io.etcfs.linux}). */
package io.etcfs.core.device;
