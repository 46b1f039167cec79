/**
 * How a filesystem comes to be, and how one recognises that a device belongs to it. Start with {@link io.etcfs.core.label.Mkfs}.
 *
 * <p>The label is the only thing besides file bytes that lies on the device. It guards against mistakes (a wrong device, a wrong etcd, a device
 * cut short) and against nothing else: what is true stands in etcd. Whether the operating system uses a device for something else is not
 * decided here, since that takes /proc and /sys.
 */
package io.etcfs.core.label;
