package io.etcfs.it.network;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/** The device is an iSCSI unit with reservations: who loses etcd for long is fenced. */
class ReservationsPartitionTest extends PartitionTest {
    ReservationsPartitionTest() {
        super("iscsi");
    }

    @Test
    void fromEtcd() throws Exception {
        isCutOff("etcd");
    }

    @Test
    void fromBoth() throws Exception {
        isCutOff("all");
    }

    @Test
    void fromTheDeviceShortly() throws Exception {
        isCutOffShortly("storage");
    }

    /** For longer than a session has, but with etcd it has one. */
    @Test
    void fromTheDeviceForEightSeconds() throws Exception {
        isCutOffAndGoesOn("storage", 1, 8_000);
    }

    /** {@code -Detcfs.it.network.long=true}: takes over two minutes. */
    @Test
    @EnabledIfSystemProperty(named = "etcfs.it.network.long", matches = "true")
    void fromTheDeviceForGood() throws Exception {
        isWithoutDeviceForGood();
    }

    @Test
    void fromBothShortly() throws Exception {
        isCutOffShortly("all");
    }
}
