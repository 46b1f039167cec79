package io.etcfs.linux.scsi;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.fence.Fencer;
import io.etcfs.core.fence.Severing;
import io.etcfs.linux.device.DirectDevice;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The fencer on a real kernel's SCSI disks, for ./dev test vm: two paths to one unit, each an initiator of its own as two hosts would be. All that is on the unit is lost. Prints a line for each step, and
 * {@code PASSED} at the end.
 */
public final class KernelPath {
    private static final int BLOCK = BlockDevice.BLOCK_BYTES;

    /** @param args the two disks, and {@code resets} for disks that can be reset. Without, what another controller had taken away before is not confirmed */
    public static void main(String[] args) throws Exception {
        boolean resets = args.length == 3 && args[2].equals("resets");
        Path diskOfOne = Path.of(args[0]);
        Path diskOfTwo = Path.of(args[1]);
        try (KernelUnit unitOfOne = KernelUnit.open(diskOfOne); KernelUnit unitOfTwo = KernelUnit.open(diskOfTwo); DirectDevice one = DirectDevice.open(diskOfOne); DirectDevice two = DirectDevice.open(diskOfTwo)) {
            ReservationFencer.clear(unitOfOne);
            ReservationFencer fencerOfOne = new ReservationFencer(unitOfOne);
            ReservationFencer fencerOfTwo = new ReservationFencer(unitOfTwo);
            fencerOfOne.admit(0x11, List.of(), true, () -> true);
            write(one, 1, 'a');
            step("nobody writes unregistered", refused(two, 1));
            fencerOfTwo.admit(0x22, List.of(), true, () -> true);
            write(two, 1, 'b');
            step("both are one unit", read(one, 1) == 'b');
            step("both keys, one reservation", unitOfOne.reservations().keys().equals(List.of(0x11L, 0x22L)) && unitOfTwo.reservations().type() == Reservations.WRITE_EXCLUSIVE_REGISTRANTS_ONLY);
            ReservationFencer other = new ReservationFencer(unitOfTwo(diskOfTwo));
            step("another node on that host is refused", throwsBusy(other));
            Severing severing = sever(fencerOfOne, 0x22, 0x30);
            step("severed: " + severing.saw(), severing.confirmed());
            step("who was severed is refused", refused(two, 1));
            write(one, 1, 'c');
            step("who was severed may read", read(two, 1) == 'c');
            severing = sever(fencerOfOne, 0x22, 0x30);
            step((resets ? "again, by a reset: " : "again, which nothing can confirm: ") + severing.saw(), severing.confirmed() == resets);
            if (!resets) {
                step("nor can it be admitted again as if nobody had fenced it", throwsUnsettled(fencerOfTwo));
            }
            fencerOfTwo.admit(0x33, List.of(0x22L), !resets, () -> true);
            write(two, 1, 'd');
            severing = sever(fencerOfOne, 0x22, 0x30);
            step("its next session is not meant: " + severing.saw(), severing.confirmed() == resets);
            write(two, 1, 'e');
            step("and writes", read(one, 1) == 'e');
            othersGoOn(fencerOfOne, fencerOfTwo, one, resets);
            fencerOfTwo.admit(0x90, List.of(), true, () -> true);
            ReservationFencer.clear(unitOfTwo);
            write(one, 1, 'f');
            write(two, 1, 'g');
            step("cleared: everybody writes", read(one, 1) == 'g' && unitOfOne.reservations().keys().isEmpty() && unitOfOne.reservations().type() == Reservations.NO_TYPE);
        }
        System.out.println("PASSED");
    }

    private static KernelUnit unitOfTwo(Path disk) throws DeviceException {
        return KernelUnit.open(disk);
    }

    private static void othersGoOn(ReservationFencer fencerOfOne, ReservationFencer fencerOfTwo, BlockDevice one, boolean resets) throws Exception {
        AtomicBoolean over = new AtomicBoolean();
        AtomicReference<Exception> failure = new AtomicReference<>();
        int[] writes = new int[1];
        Thread writer = Thread.ofPlatform().start(() -> {
            try {
                while (!over.get()) {
                    write(one, 7, ++writes[0] & 0x7f);
                    if (read(one, 7) != (writes[0] & 0x7f)) {
                        throw new IllegalStateException("read something else than was written");
                    }
                }
            } catch (DeviceException | RuntimeException e) {
                failure.set(e);
            }
        });
        long session = 0x33;
        boolean all = true;
        for (int i = 0; i < 10; i++) {
            all &= sever(fencerOfOne, session, session + 1).confirmed();
            all &= sever(fencerOfOne, session, session + 1).confirmed() == resets;
            fencerOfTwo.admit(session + 1, List.of(session), !resets, () -> true);
            session++;
        }
        over.set(true);
        writer.join();
        step("severed 20 times, half of it for the second time, and another's " + writes[0] + " writes go on: " + failure.get(), all && failure.get() == null && writes[0] > 0);
        // Its key is a known one again for what follows.
        fencerOfTwo.admit(0x80, List.of(session), true, () -> true);
    }

    private static boolean throwsBusy(ReservationFencer fencer) {
        try {
            fencer.admit(0x44, List.of(0x43L), true, () -> true);
            return false;
        } catch (DeviceException e) {
            return e.getMessage().contains("this host is registered with another key");
        }
    }

    private static boolean throwsUnsettled(ReservationFencer fencer) {
        try {
            fencer.admit(0x32, List.of(0x22L), false, () -> true);
            return false;
        } catch (DeviceException e) {
            return e.getMessage().contains("does not reset");
        }
    }

    private static Severing sever(ReservationFencer fencer, long session, long before) {
        return fencer.sever(new Fencer.Vanished("n2", before, List.of(session), List.of()));
    }

    private static boolean refused(BlockDevice device, long block) {
        try {
            write(device, block, 'x');
            return false;
        } catch (DeviceException e) {
            return e.errno() == DeviceException.REFUSED;
        }
    }

    private static void write(BlockDevice device, long block, int value) throws DeviceException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment bytes = arena.allocate(BLOCK, BLOCK);
            bytes.fill((byte) value);
            device.write(block * BLOCK, bytes);
        }
    }

    private static int read(BlockDevice device, long block) throws DeviceException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment bytes = arena.allocate(BLOCK, BLOCK);
            device.read(block * BLOCK, bytes);
            return bytes.get(ValueLayout.JAVA_BYTE, 0);
        }
    }

    private static void step(String what, boolean holds) {
        System.out.println((holds ? "ok     " : "FAILED ") + what);
        if (!holds) {
            System.exit(1);
        }
    }

    private KernelPath() {}
}
