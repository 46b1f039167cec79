package io.etcfs.it.network;

import org.junit.jupiter.api.Test;

/** The device is on the host, and nobody can be cut off from it: write epochs alone make the takeover safe. */
class UnfencedPartitionTest extends PartitionTest {
    UnfencedPartitionTest() {
        super("loop");
    }

    @Test
    void fromEtcd() throws Exception {
        isCutOff("etcd");
    }

    @Test
    void fromEtcdWhileIdle() throws Exception {
        isCutOffIdle("etcd");
    }

    @Test
    void fromEtcdShortly() throws Exception {
        isCutOffShortly("etcd");
    }
}
