package io.etcfs.linux.scsi;

import io.etcfs.core.device.DeviceException;
import io.etcfs.linux.call.ErrorNumbers;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/** By SCSI commands (SPC-4, 5.13). Each initiator is one node's. */
final class ScsiReservations implements Reservations {
    private static final int READ_KEYS = 0;
    private static final int READ_RESERVATION = 1;
    private static final int RESERVE = 1;
    private static final int CLEAR = 3;
    private static final int PREEMPT = 4;
    private static final int REGISTER_AND_IGNORE_EXISTING_KEY = 6;
    private static final int PARAMETER_BYTES = 24;
    private static final int KEYS_BYTES = 8 + 8 * 4096;
    private static final ValueLayout.OfLong BE_LONG = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);
    private static final ValueLayout.OfInt BE_INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);

    private final ScsiUnit unit;

    ScsiReservations(ScsiUnit unit) {
        this.unit = unit;
    }

    @Override
    public void register(long key, List<Long> older) throws DeviceException {
        require("register", out(REGISTER_AND_IGNORE_EXISTING_KEY, 0, 0, key));
    }

    @Override
    public boolean reserve(long key) throws DeviceException {
        ScsiResult result = out(RESERVE, WRITE_EXCLUSIVE_REGISTRANTS_ONLY, key, 0);
        if (result.status() == ScsiResult.RESERVATION_CONFLICT) {
            return false;
        }
        require("reserve", result);
        return true;
    }

    /** It leaves what the unit had accepted before to its end. */
    @Override
    public boolean settle(boolean taken) throws DeviceException {
        return unit.reset();
    }

    @Override
    public boolean preempt(long own, long victim) throws DeviceException {
        ScsiResult result = out(PREEMPT, WRITE_EXCLUSIVE_REGISTRANTS_ONLY, own, victim);
        if (result.status() == ScsiResult.RESERVATION_CONFLICT) {
            return false;
        }
        require("preempt", result);
        return true;
    }

    @Override
    public void clear(long own) throws DeviceException {
        require("clear", out(CLEAR, 0, own, 0));
    }

    @Override
    public List<Long> keys() throws DeviceException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment answer = arena.allocate(KEYS_BYTES, 8);
            require("read keys", unit.execute(ScsiCommand.reserveIn(READ_KEYS, answer)));
            long bytes = Integer.toUnsignedLong(answer.get(BE_INT, 4));
            if (bytes > KEYS_BYTES - 8) {
                throw new DeviceException(ErrorNumbers.EIO, "more keys are registered than can be read: " + bytes / 8);
            }
            List<Long> keys = new ArrayList<>();
            for (long at = 0; at < bytes; at += 8) {
                keys.add(answer.get(BE_LONG, 8 + at));
            }
            return keys;
        }
    }

    /** Of READ RESERVATION, whose numbers those of the interface are. */
    @Override
    public int type() throws DeviceException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment answer = arena.allocate(24, 8);
            require("read reservation", unit.execute(ScsiCommand.reserveIn(READ_RESERVATION, answer)));
            return answer.get(BE_INT, 4) == 0 ? NO_TYPE : answer.get(ValueLayout.JAVA_BYTE, 21) & 0x0f;
        }
    }

    private ScsiResult out(int action, int type, long key, long serviceKey) throws DeviceException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment parameters = arena.allocate(PARAMETER_BYTES, 8);
            parameters.set(BE_LONG, 0, key);
            parameters.set(BE_LONG, 8, serviceKey);
            return unit.execute(ScsiCommand.reserveOut(action, type, parameters));
        }
    }

    private static void require(String what, ScsiResult result) throws DeviceException {
        if (!result.good()) {
            throw new DeviceException(result.status() == ScsiResult.RESERVATION_CONFLICT ? ErrorNumbers.EBADE : ErrorNumbers.EIO, "persistent reservations, " + what + ": " + result);
        }
    }
}
