package io.etcfs.linux.scsi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.device.DeviceException;
import io.etcfs.core.fence.Fencer;
import io.etcfs.core.fence.Severing;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The fencer on a unit that obeys SPC-4 as far as it is used, seen by several hosts through the kernel's calls. */
class KernelReservationsTest {
    /** Keys by host; a reservation that ends with nobody. Answers of the kernel that come before its own can be put into it. */
    private static final class Unit {
        final Map<String, Long> keys = new LinkedHashMap<>();
        final ArrayDeque<Integer> answers = new ArrayDeque<>();
        int type;
        int resets;
        boolean resetWorks = true;

        final class Host implements KernelReservations.Device, ReservedUnit {
            final String name;
            final Reservations reservations = new KernelReservations("/dev/x", this);

            Host(String name) {
                this.name = name;
            }

            @Override
            public int call(PrCall call) {
                if (!answers.isEmpty()) {
                    return answers.poll();
                }
                ByteBuffer in = ByteBuffer.wrap(call.argument()).order(ByteOrder.nativeOrder());
                long first = in.getLong();
                long mine = keys.getOrDefault(name, 0L);
                switch (call.name()) {
                    case "register" -> {
                        if (first != mine) {
                            return 0x18;
                        }
                        keys.put(name, in.getLong());
                    }
                    case "reserve" -> {
                        if (first != mine || mine == 0) {
                            return 0x18;
                        }
                        type = in.getInt() == 3 ? 5 : -1;
                    }
                    case "preempt and abort" -> {
                        long victim = in.getLong();
                        if (first != mine || mine == 0 || !keys.containsValue(victim)) {
                            return 0x18;
                        }
                        keys.values().removeIf(k -> k == victim);
                    }
                    case "clear" -> {
                        if (first != mine) {
                            return 0x18;
                        }
                        keys.clear();
                        type = 0;
                    }
                    default -> throw new AssertionError(call.name());
                }
                return 0;
            }

            @Override
            public List<Long> keys() {
                return new ArrayList<>(keys.values());
            }

            @Override
            public int type() {
                return type;
            }

            @Override
            public boolean reset() {
                resets++;
                return resetWorks;
            }

            @Override
            public void admit(Admission admission) throws DeviceException {
                admission.admit(reservations);
            }

            @Override
            public Reservations reservations() {
                return reservations;
            }
        }
    }

    private final Unit unit = new Unit();
    private final ReservationFencer one = new ReservationFencer(unit.new Host("one"));
    private final ReservationFencer two = new ReservationFencer(unit.new Host("two"));

    private void bothAreAdmitted() throws DeviceException {
        one.admit(0x11, List.of(), true, () -> true);
        two.admit(0x22, List.of(), true, () -> true);
        assertEquals(Map.of("one", 0x11L, "two", 0x22L), unit.keys);
        assertEquals(5, unit.type);
    }

    private Severing severTwo() {
        return one.sever(new Fencer.Vanished("n2", 0x30, List.of(0x22L), List.of()));
    }

    @Test
    void theKeyOfWhoVanishedIsTakenAway() throws Exception {
        bothAreAdmitted();
        Severing severing = severTwo();
        assertTrue(severing.confirmed(), severing.saw());
        assertEquals(Map.of("one", 0x11L), unit.keys);
        assertEquals(0, unit.resets, "a preempting that aborts is enough");
    }

    /** Without a fencer, on a host that is registered by a node that runs or ran there with one: the unit takes its writes. */
    @Test
    void whoNeverRegisteredIsNotConfirmed() throws Exception {
        bothAreAdmitted();
        Severing severing = one.sever(new Fencer.Vanished("n3 on host two", 0x30, List.of(), List.of()));
        assertFalse(severing.confirmed(), severing.saw());
        assertTrue(severing.saw().contains("declare it dead"), severing.saw());
        assertFalse(one.sever(new Fencer.Vanished("n3 on host two", 0x30, List.of(0x31L), List.of())).confirmed(), "what came after the intent is not meant");
        assertEquals(Map.of("one", 0x11L, "two", 0x22L), unit.keys);
        assertEquals(0, unit.resets);
    }

    /** Another controller took it away and ended: whether what that began is over, nobody knows. */
    @Test
    void whereTheKeyIsGoneAResetHasToSaySo() throws Exception {
        bothAreAdmitted();
        assertTrue(severTwo().confirmed());
        assertTrue(severTwo().confirmed());
        assertEquals(1, unit.resets);
        unit.resetWorks = false;
        assertFalse(severTwo().confirmed(), "as on NVMe, which has none");
    }

    @Test
    void itComesBackUnderItsNextSession() throws Exception {
        bothAreAdmitted();
        assertTrue(severTwo().confirmed());
        two.admit(0x33, List.of(0x22L), false, () -> true);
        assertTrue(severTwo().confirmed());
        assertEquals(0x33L, unit.keys.get("two"));
        two.admit(0x44, List.of(0x33L), true, () -> true);
        assertEquals(0x44L, unit.keys.get("two"));
    }

    /** As on NVMe: whether what the last process had begun is over, only who severed it can say. */
    @Test
    void whereThereIsNoResetItComesBackAfterItWasSevered() throws Exception {
        unit.resetWorks = false;
        bothAreAdmitted();
        ReservationFencer next = new ReservationFencer(unit.new Host("two"));
        DeviceException refused = assertThrows(DeviceException.class, () -> next.prepare(List.of(0x22L)));
        assertTrue(refused.getMessage().contains("declare it dead"), refused.getMessage());
        assertEquals(0x22L, unit.keys.get("two"), "who severs it finds its key");
        assertTrue(severTwo().confirmed());
        next.admit(0x44, List.of(0x22L), true, () -> true);
        assertEquals(0x44L, unit.keys.get("two"));
    }

    /** After a crash of the host: the next process finds the key of the last. */
    @Test
    void theNextProcessReplacesItsOwnKey() throws Exception {
        bothAreAdmitted();
        new ReservationFencer(unit.new Host("two")).admit(0x55, List.of(0x21L, 0x22L), false, () -> true);
        assertEquals(Map.of("one", 0x11L, "two", 0x55L), unit.keys);
    }

    /** Its writes would go on under our key, and who severs it would find its own gone. */
    @Test
    void anotherNodeOnThisHostIsNotReplaced() throws Exception {
        bothAreAdmitted();
        ReservationFencer other = new ReservationFencer(unit.new Host("two"));
        DeviceException refused = assertThrows(DeviceException.class, () -> other.admit(0x66, List.of(0x65L), true, () -> true));
        assertTrue(refused.getMessage().contains("this host is registered with another key"), refused.getMessage());
        assertEquals(Map.of("one", 0x11L, "two", 0x22L), unit.keys);
    }

    @Test
    void aUnitAttentionIsNoAnswer() throws Exception {
        unit.answers.addAll(List.of(0x02, 0xe0000, -5));
        bothAreAdmitted();
        unit.answers.addAll(List.of(0x0800_0002, 0x02));
        assertTrue(severTwo().confirmed());
    }

    @Test
    void whatGoesOnFailingIsNotConfirmed() throws Exception {
        bothAreAdmitted();
        unit.answers.addAll(List.of(-5, -5, -5, -5));
        Severing severing = severTwo();
        assertFalse(severing.confirmed());
        assertEquals("/dev/x: preempt and abort: EIO", severing.saw());
        assertEquals(0x22L, unit.keys.get("two"));
    }

    @Test
    void whoHasNoReservationsIsTold() {
        unit.answers.add(-95);
        DeviceException refused = assertThrows(DeviceException.class, () -> one.admit(0x11, List.of(), true, () -> true));
        assertEquals("/dev/x has no persistent reservations (register: EOPNOTSUPP)", refused.getMessage());
        unit.answers.add(-1);
        refused = assertThrows(DeviceException.class, () -> one.admit(0x11, List.of(), true, () -> true));
        assertTrue(refused.getMessage().contains("no partition"), refused.getMessage());
    }

    @Test
    void aReservationOfOthersIsLeftAlone() {
        unit.type = 3;
        DeviceException refused = assertThrows(DeviceException.class, () -> one.admit(0x11, List.of(), true, () -> true));
        assertTrue(refused.getMessage().contains("reserved otherwise, with type 3"), refused.getMessage());
    }

    @Test
    void allIsClearedForADeviceThatIsMadeNew() throws Exception {
        bothAreAdmitted();
        ReservationFencer.clear(unit.new Host("two"));
        assertEquals(Map.of(), unit.keys);
        assertEquals(0, unit.type);
        bothAreAdmitted();
        ReservationFencer.clear(unit.new Host("three"));
        assertEquals(Map.of(), unit.keys);
    }
}
