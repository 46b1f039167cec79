/** Processes as the kernel shows them, and what this one sets for itself: names, umask, the lock file. */
package io.etcfs.linux.process;
