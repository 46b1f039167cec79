package io.etcfs.it.faults;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.etcfs.core.fault.Fault;
import io.etcfs.it.cluster.DevCluster;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/**
 * Three nodes, a program on each that keeps account of what it did, and a fault every 8 to 20 seconds. {@code -Detcfs.it.faults.seconds} for how long,
 * {@code -Detcfs.it.faults.fenced=true} for a device with reservations and links that fail, {@code -Detcfs.it.faults.seed} for what is done and which faults there are; when they meet is the machine's.
 */
class FaultsTest {
    private static final int SECONDS = Integer.getInteger("etcfs.it.faults.seconds", 60);
    private static final long SEED = Long.getLong("etcfs.it.faults.seed", System.nanoTime() & 0xffffff);

    private static final boolean FENCED = Boolean.getBoolean("etcfs.it.faults.fenced");

    private static final List<Set<Fault>> LOST_RULES = List.of(EnumSet.of(Fault.HANDOVER_BEFORE_PUBLISH));

    /** D1, D4, D9, B1, B7, O11. */
    @Test
    @EnabledIfSystemProperty(named = "etcfs.it.faults.seconds", matches = ".+")
    void whatWasDurableIsThereOnAllNodesAndNoSpaceIsLost() throws Exception {
        try (DevCluster cluster = Storm.cluster(FENCED); Storm storm = new Storm(cluster, FENCED, SEED)) {
            long free = storm.freeBlocks(1);
            storm.rage(SECONDS);
            storm.verify();
            DevCluster.Result fsck = cluster.tryEtcfsctl("fsck");
            System.out.println(fsck.output().strip());
            assertEquals(0, fsck.code(), fsck.output() + fsck.error());
            storm.remove();
            storm.awaitFreeBlocks(free);
        }
    }

    /** {@code -Detcfs.planted=.*} or part of a fault's name: it can fail. What is planted shows in a few minutes, or it does not: which faults there are is the seed's. */
    @TestFactory
    @EnabledIfSystemProperty(named = "etcfs.planted", matches = ".+")
    Stream<DynamicTest> aLostRuleIsSeen() {
        String wanted = System.getProperty("etcfs.planted");
        return LOST_RULES.stream().filter(r -> r.toString().contains(wanted) || r.toString().matches(wanted)).map(r -> DynamicTest.dynamicTest(r.toString(), () -> isSeen(r)));
    }

    private static void isSeen(Set<Fault> rules) throws Exception {
        try (DevCluster cluster = Storm.cluster(FENCED, rules.toArray(Fault[]::new)); Storm storm = new Storm(cluster, FENCED, SEED)) {
            AssertionError seen = assertThrows(AssertionError.class, () -> {
                storm.rage(SECONDS);
                storm.verify();
            });
            cluster.markBroken();
            System.out.println("PLANTED " + rules + ": " + seen.getMessage().lines().filter(l -> l.contains("Error")).reduce("", (a, b) -> b));
        }
    }
}
