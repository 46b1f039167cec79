package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A device that fails: EIO for whoever needed it, and the end of a node that has acknowledged what it can't keep. */
@Timeout(60)
class DeviceErrorsTest {
    private static final int EIO = 5;
    private static final Set<String> READ_THE_DEVICE = Set.of("read", "write of a part of a block");
    private static final Set<String> WRITE_IT_AT_ONCE = Set.of("write of whole blocks, O_DIRECT", "write of whole blocks, O_DSYNC", "write of new blocks, O_DIRECT");

    private TestCluster cluster;
    private FailingDevice device;
    private ClusterNode node;
    private EachOperation each;

    private static final class FailingDevice extends ForwardingDevice {
        volatile boolean failReads;
        volatile boolean failWrites;
        volatile boolean failFlushes;

        FailingDevice(BlockDevice device) {
            super(device);
        }

        private static void fail(boolean fails) throws DeviceException {
            if (fails) {
                throw new DeviceException(EIO, "it fails");
            }
        }

        @Override
        public void read(long offsetBytes, MemorySegment target) throws DeviceException {
            fail(failReads);
            super.read(offsetBytes, target);
        }

        @Override
        public void write(long offsetBytes, MemorySegment source) throws DeviceException {
            fail(failWrites);
            super.write(offsetBytes, source);
        }

        @Override
        public void flush() throws DeviceException {
            fail(failFlushes);
            super.flush();
        }
    }

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(64L << 20);
        EachOperation.prepare(cluster.start("n0"));
        cluster.node(0).sync(5_000_000_000L);
        device = new FailingDevice(cluster.device);
        node = cluster.start("n1", cluster.store, device, 64L << 20);
        each = new EachOperation(node);
        each.look();
    }

    @AfterEach
    void stop() {
        cluster.close();
    }

    private Errno answer(String name) {
        try {
            each.all().get(name).run(EachOperation.call());
            return null;
        } catch (FsException e) {
            return e.errno();
        }
    }

    @Test
    void readsFail() {
        device.failReads = true;
        Map<String, Errno> wrong = new TreeMap<>();
        for (String name : each.all().keySet()) {
            Errno wanted = READ_THE_DEVICE.contains(name) ? Errno.EIO : null;
            Errno got = answer(name);
            if (got != wanted) {
                wrong.put(name, got);
            }
        }
        assertEquals(Map.of(), wrong);
        device.failReads = false;
        READ_THE_DEVICE.forEach(name -> assertEquals(null, answer(name), name));
        assertEquals(List.of(), cluster.stopped);
    }

    /** Nothing of them joined a batch: the file is what it was. */
    @Test
    void writesThatGoToItAtOnceFail() throws Exception {
        device.failWrites = true;
        WRITE_IT_AT_ONCE.forEach(name -> assertEquals(Errno.EIO, answer(name), name));
        device.failWrites = false;
        TestClient other = new TestClient(cluster.node(0));
        for (String name : WRITE_IT_AT_ONCE) {
            for (byte b : other.read(EachOperation.DIRECTORY + "/" + name)) {
                assertEquals(0, b);
            }
        }
        WRITE_IT_AT_ONCE.forEach(name -> assertEquals(null, answer(name), name));
        assertEquals(List.of(), cluster.stopped);
    }

    @Test
    void aFlushFailsAndIsToldByFsync() {
        assertEquals(null, answer("write of whole blocks, O_DIRECT"));
        device.failFlushes = true;
        assertEquals(Errno.EIO, answer("write of whole blocks, O_DSYNC"));
        device.failFlushes = false;
        assertEquals(null, answer("fsync"));
        assertEquals(List.of(), cluster.stopped);
    }

    /** Five times, within a second and a bit. What was acknowledged and is not there is as after a crash: others see what was before. */
    @Test
    void acknowledgedBytesThatItRefusesEndTheNode() throws Exception {
        device.failWrites = true;
        assertEquals(null, answer("write of a whole block"));
        long end = System.nanoTime() + 10_000_000_000L;
        while (cluster.stopped.isEmpty()) {
            assertTrue(System.nanoTime() < end);
            Thread.sleep(20);
        }
        assertTrue(cluster.stopped.getFirst().contains("the device refuses writes"), cluster.stopped.toString());
        assertEquals(Errno.EIO, assertThrows(FsException.class, () -> each.all().get("getattr").run(EachOperation.call())).errno());
        assertEquals(4 * BlockDevice.BLOCK_BYTES, new TestClient(cluster.node(0)).read(EachOperation.DIRECTORY + "/write of a whole block").length);
    }
}
