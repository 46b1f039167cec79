package io.etcfs.linux.scsi;

import io.etcfs.linux.call.ErrorNumbers;

/** What the kernel's calls on reservations return: minus an errno, 0, enum pr_status of linux/pr.h, and before Linux 6.4 what the driver got from the device. */
enum PrStatus {
    DONE,
    CONFLICT,
    /** It may have been a unit attention, which the kernel does not tell apart: worth another try. */
    FAILED,
    UNSUPPORTED,
    FORBIDDEN,
    /** Of the path to the device. What became of the call is not known. */
    LOST;

    private static final int SCSI_RESERVATION_CONFLICT = 0x18;
    private static final int NVME_STATUS = 0x7ff;
    private static final int NVME_RESERVATION_CONFLICT = 0x83;
    private static final int PATH = 0x10000;

    static PrStatus of(int result) {
        if (result < 0) {
            return switch (-result) {
                case ErrorNumbers.EOPNOTSUPP, ErrorNumbers.ENOTTY -> UNSUPPORTED;
                case ErrorNumbers.EPERM -> FORBIDDEN;
                case ErrorNumbers.EBADE -> CONFLICT;
                default -> FAILED;
            };
        }
        // The drivers' own numbers come with flags above: a driver byte of SCSI, "do not retry" of NVMe.
        return result == 0 ? DONE : (result & 0xff) == SCSI_RESERVATION_CONFLICT || (result & NVME_STATUS) == NVME_RESERVATION_CONFLICT ? CONFLICT
                : result == PATH || result == 0xe0000 || result == 0xf0000 ? LOST : FAILED;
    }
}
