/** A block device in memory for tests: start at {@link io.etcfs.testkit.device.MemoryDevice}. */
package io.etcfs.testkit.device;
