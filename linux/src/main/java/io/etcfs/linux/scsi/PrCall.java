package io.etcfs.linux.scsi;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** One of the kernel's calls on reservations of a block device (linux/pr.h), the same for SCSI and NVMe. */
record PrCall(String name, long request, byte[] argument) {
    /** PR_WRITE_EXCLUSIVE_REG_ONLY. The kernel counts on its own. */
    static final int WRITE_EXCLUSIVE_REG_ONLY = 3;

    private static final int REGISTRATION_BYTES = 24;
    private static final int RESERVATION_BYTES = 16;
    private static final int PREEMPT_BYTES = 24;
    private static final int CLEAR_BYTES = 16;
    private static final int REGISTER = 200;
    private static final int RESERVE = 201;
    private static final int PREEMPT_ABORT = 204;
    private static final int CLEAR = 205;

    /** Fails with a conflict unless this host has {@code old}; 0: none. */
    static PrCall register(long old, long key) {
        return of("register", REGISTER, bytes(REGISTRATION_BYTES).putLong(old).putLong(key));
    }

    static PrCall reserve(long key) {
        return of("reserve", RESERVE, bytes(RESERVATION_BYTES).putLong(key).putInt(WRITE_EXCLUSIVE_REG_ONLY));
    }

    /** The structure calls one's own key the old one, and that which is taken away the new one. */
    static PrCall preemptAndAbort(long own, long victim) {
        return of("preempt and abort", PREEMPT_ABORT, bytes(PREEMPT_BYTES).putLong(own).putLong(victim).putInt(WRITE_EXCLUSIVE_REG_ONLY));
    }

    static PrCall clear(long own) {
        return of("clear", CLEAR, bytes(CLEAR_BYTES).putLong(own));
    }

    private static ByteBuffer bytes(int size) {
        return ByteBuffer.allocate(size).order(ByteOrder.nativeOrder());
    }

    /** _IOW('p', number, argument). */
    private static PrCall of(String name, int number, ByteBuffer argument) {
        return new PrCall(name, 1L << 30 | (long) argument.capacity() << 16 | 'p' << 8 | number, argument.array());
    }
}
