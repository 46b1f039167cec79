/**
 * Commands to one SCSI logical unit, and persistent reservations (SPC-4, 5.13) with them: start at {@link io.etcfs.linux.scsi.ReservationFencer}. Not here: how
 * a command reaches the unit ({@link io.etcfs.linux.iscsi}).
 */
package io.etcfs.linux.scsi;
