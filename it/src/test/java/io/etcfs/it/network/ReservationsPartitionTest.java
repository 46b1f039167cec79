package io.etcfs.it.network;

import org.junit.jupiter.api.Test;

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

    @Test
    void fromBothShortly() throws Exception {
        isCutOffShortly("all");
    }
}
