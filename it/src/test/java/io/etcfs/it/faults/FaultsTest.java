package io.etcfs.it.faults;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fault.Fault;
import io.etcfs.it.cluster.DevCluster;
import java.util.Arrays;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/**
 * Three nodes, a program on each that keeps account of what it did, and a fault every 8 to 20 seconds. {@code -Detcfs.it.faults.seconds} for how long,
 * {@code -Detcfs.it.faults.seed} for what is done and which faults there are; when they meet is the machine's.
 */
class FaultsTest {
    private static final int SECONDS = Integer.getInteger("etcfs.it.faults.seconds", 60);
    private static final long SEED = Long.getLong("etcfs.it.faults.seed", System.nanoTime() & 0xffffff);

    /** D1, D4, D9, B1, B7, O11. */
    @Test
    @EnabledIfSystemProperty(named = "etcfs.it.faults.seconds", matches = ".+")
    void whatWasDurableIsThereOnAllNodesAndNoSpaceIsLost() throws Exception {
        try (DevCluster cluster = DevCluster.up(3); Storm storm = new Storm(cluster, SEED)) {
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

    /** {@code -Detcfs.planted=.*}: it can fail. These take some minutes at most; none of them is sure to show in one. */
    @Test
    @EnabledIfSystemProperty(named = "etcfs.planted", matches = ".+")
    void aLostRuleIsSeen() throws Exception {
        String wanted = System.getProperty("etcfs.planted");
        Fault[] planted = Arrays.stream(Fault.values()).filter(f -> f.name().matches(wanted)).filter(f -> wanted.length() > 2 || f == Fault.HANDOVER_BEFORE_PUBLISH).toArray(Fault[]::new);
        assertTrue(planted.length > 0, "no fault is named " + wanted);
        try (DevCluster cluster = DevCluster.up(3, planted); Storm storm = new Storm(cluster, SEED)) {
            AssertionError seen = Assertions.assertThrows(AssertionError.class, () -> {
                storm.rage(SECONDS);
                storm.verify();
            });
            cluster.markBroken();
            System.out.println("PLANTED " + Arrays.toString(planted) + ": " + seen.getMessage().lines().filter(l -> l.contains("Error")).reduce("", (a, b) -> b));
        }
    }
}
