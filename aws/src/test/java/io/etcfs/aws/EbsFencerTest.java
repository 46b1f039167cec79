package io.etcfs.aws;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.device.DeviceException;
import io.etcfs.core.fence.Fencer;
import io.etcfs.core.fence.Severing;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** When an instance counts as cut off, with answers of EC2 that are late, old, or refusals. */
class EbsFencerTest {
    private static final String OWN = "i-own";
    private static final String VICTIM = "i-victim";
    private static final String MACHINE = VICTIM + "/vol-1";

    /** Answers one after the other, and the last one for ever. */
    private static final class Script implements Volume {
        final ArrayDeque<Object> answers = new ArrayDeque<>();
        final List<String> detached = new ArrayList<>();
        Ec2Exception refusal;

        Script(Object... answers) {
            this.answers.addAll(Arrays.asList(answers));
        }

        @Override
        public String id() {
            return "vol-1";
        }

        @Override
        @SuppressWarnings("unchecked")
        public Map<String, String> attachments() throws Ec2Exception {
            Object next = answers.size() > 1 ? answers.poll() : answers.peek();
            if (next instanceof Ec2Exception e) {
                throw e;
            }
            return (Map<String, String>) next;
        }

        @Override
        public void detach(String instance) throws Ec2Exception {
            detached.add(instance);
            if (refusal != null) {
                throw refusal;
            }
        }
    }

    private static Map<String, String> seen(String own, String victim) {
        Map<String, String> map = new LinkedHashMap<>();
        if (own != null) {
            map.put(OWN, own);
        }
        if (victim != null) {
            map.put(VICTIM, victim);
        }
        return map;
    }

    private static final Map<String, String> BOTH = seen("attached", "attached");
    private static final Map<String, String> DETACHING = seen("attached", "detaching");
    private static final Map<String, String> GONE = seen("attached", null);

    private static EbsFencer fencer(Volume volume) {
        return new EbsFencer(volume, OWN, new EbsFencer.Patience(Duration.ofMillis(1), Duration.ofMillis(200)));
    }

    private static Severing sever(Volume volume, String... machines) {
        return fencer(volume).sever(new Fencer.Vanished("n2", 100, List.of(7L), List.of(machines)));
    }

    @Test
    void isConfirmedByTwoAnswersInARow() {
        Script volume = new Script(BOTH, DETACHING, GONE, DETACHING, GONE, seen("attached", "detached"));
        Severing severing = sever(volume, MACHINE);
        assertTrue(severing.confirmed(), severing.saw());
        assertEquals(List.of(VICTIM), volume.detached);
        assertEquals(1, volume.answers.size(), "one answer is not enough");
    }

    @Test
    void aDetachThatNeverEndsIsNotConfirmed() {
        Severing severing = sever(new Script(DETACHING), MACHINE);
        assertFalse(severing.confirmed());
        assertEquals("volume vol-1 is still 'detaching' at i-victim", severing.saw());
        assertFalse(sever(new Script(seen("attached", "busy")), MACHINE).confirmed());
    }

    /** An answer without this node's own attachment is of another volume, of another region, or too old. */
    @Test
    void anAnswerThatDoesNotKnowThisNodeIsNotBelieved() {
        assertFalse(sever(new Script(seen(null, null)), MACHINE).confirmed());
        assertFalse(sever(new Script(seen("detaching", null)), MACHINE).confirmed());
        assertFalse(sever(new Script(Map.of()), MACHINE).confirmed());
    }

    @Test
    void whoIsAttachedNowhereIsAskedForAllTheSame() {
        Script volume = new Script(GONE);
        volume.refusal = new Ec2Exception(Ec2Exception.Kind.NOT_ATTACHED, "IncorrectState");
        assertTrue(sever(volume, MACHINE).confirmed());
        assertEquals(List.of(VICTIM), volume.detached);
    }

    @Test
    void throttlingIsWaitedFor() {
        Ec2Exception throttled = new Ec2Exception(Ec2Exception.Kind.THROTTLED, "EC2 throttles");
        assertTrue(sever(new Script(throttled, throttled, DETACHING, throttled, GONE, GONE), MACHINE).confirmed());
        Severing never = sever(new Script(throttled), MACHINE);
        assertFalse(never.confirmed());
        assertEquals("EC2 throttles", never.saw());
    }

    @Test
    void aRefusalIsSaidAtOnce() {
        Script volume = new Script(GONE);
        volume.refusal = new Ec2Exception(Ec2Exception.Kind.OTHER, "EC2 refuses");
        Severing severing = sever(volume, MACHINE);
        assertFalse(severing.confirmed());
        assertEquals("EC2 refuses", severing.saw());
    }

    @Test
    void nobodyIsSeveredWhoCantBeTold() {
        Script volume = new Script(GONE);
        assertFalse(sever(volume).confirmed(), "not recorded");
        assertFalse(sever(volume, OWN + "/vol-1").confirmed(), "this instance");
        assertFalse(sever(volume, VICTIM + "/vol-2").confirmed(), "another volume");
        assertEquals(List.of(), volume.detached);
    }

    @Test
    void allMachinesOfItAreCutOff() {
        Script volume = new Script(GONE);
        assertTrue(sever(volume, MACHINE, "i-third/vol-1").confirmed());
        assertEquals(List.of(VICTIM, "i-third"), volume.detached);
        assertFalse(sever(new Script(DETACHING), "i-third/vol-1", MACHINE).confirmed(), "the one is, the other is not");
    }

    @Test
    void aSessionIsAdmittedWhereTheVolumeIsAttached() throws Exception {
        fencer(new Script(GONE)).admit(8, List.of(), List.of(), true, () -> true);
        for (Map<String, String> not : List.of(Map.<String, String>of(), seen("detaching", null), seen("attaching", null))) {
            assertThrows(DeviceException.class, () -> fencer(new Script(not)).admit(8, List.of(), List.of(), true, () -> true));
        }
        assertThrows(DeviceException.class, () -> fencer(new Script(GONE)).admit(8, List.of(), List.of(), true, () -> false));
    }

    /** The node is started again on another instance, while it may still run on the first. */
    @Test
    void whereItRanBeforeIsCutOffFirst() throws Exception {
        Script volume = new Script(GONE);
        fencer(volume).admit(8, List.of(7L), List.of(MACHINE), true, () -> true);
        assertEquals(List.of(), volume.detached, "it departed");
        fencer(volume).admit(8, List.of(7L), List.of(OWN + "/vol-1"), false, () -> true);
        assertEquals(List.of(), volume.detached, "on this very instance");
        EbsFencer fencer = fencer(volume);
        fencer.admit(8, List.of(7L), List.of(MACHINE), false, () -> true);
        fencer.admit(9, List.of(7L, 8L), List.of(MACHINE, OWN + "/vol-1"), false, () -> true);
        assertEquals(List.of(VICTIM), volume.detached, "once");
        DeviceException e = assertThrows(DeviceException.class, () -> fencer(new Script(DETACHING)).admit(8, List.of(7L), List.of(MACHINE), false, () -> true));
        assertTrue(e.getMessage().contains("its last process ran on i-victim/vol-1"), e.getMessage());
    }
}
