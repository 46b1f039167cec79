/**
 * {@code etcfs mkfs}: looks whether the device is free to be overwritten, then has {@link io.etcfs.core.label.Mkfs} make the filesystem. Start with
 * {@link io.etcfs.cli.mkfs.MkfsCommand}.
 */
package io.etcfs.cli.mkfs;
