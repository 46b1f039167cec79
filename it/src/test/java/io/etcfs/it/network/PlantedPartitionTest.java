package io.etcfs.it.network;

import static org.junit.jupiter.api.Assertions.assertThrows;

import io.etcfs.core.fault.Fault;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/** {@code -Detcfs.planted=.*}: it can fail. */
@EnabledIfSystemProperty(named = "etcfs.planted", matches = ".+")
class PlantedPartitionTest extends PartitionTest {
    PlantedPartitionTest() {
        super("loop", Fault.TOKEN_KEPT_PAST_DEADLINE);
    }

    @Test
    void whoGoesOnWithoutItsSessionIsSeen() {
        System.out.println("PLANTED: " + assertThrows(AssertionError.class, () -> isCutOffIdle("etcd")).getMessage());
    }
}
