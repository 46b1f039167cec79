/**
 * A logical unit of an iSCSI target as the shared device, without the kernel's initiator: {@link io.etcfs.linux.iscsi.IscsiDevice}, over the system's libiscsi. Start there. Not
 * here: what a reservation is for ({@code io.etcfs.linux.scsi}).
 */
package io.etcfs.linux.iscsi;
