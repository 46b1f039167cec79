/** The production {@link io.etcfs.core.device.BlockDevice}. */
package io.etcfs.linux.device;
