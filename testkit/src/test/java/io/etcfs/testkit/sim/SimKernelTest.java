package io.etcfs.testkit.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fence.Fencer;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.record.proto.Membership;
import io.etcfs.core.record.proto.Super;
import io.etcfs.core.session.StartException;
import io.etcfs.testkit.cluster.TestCluster;
import io.etcfs.testkit.store.MemoryStore;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the kernel of one machine, whose daemon nobody disturbs, remembers. */
@Timeout(60)
class SimKernelTest {
    private static final long MS = 1_000_000L;
    private static final long DEVICE_BYTES = 64L << 20;
    private static final long DEADLINE_NS = 20_000 * MS;
    private static final long PATIENCE_NS = 60_000 * MS;

    private Scheduler scheduler;
    private SimProcess programs;
    private SimKernel kernel;

    private interface Body {
        void run() throws FsException;
    }

    @BeforeEach
    void mount() {
        scheduler = new Scheduler(1);
        Weather weather = Weather.of(Set.of());
        SimProcess etcd = new SimProcess(scheduler, "etcd", 0);
        MemoryStore store = new MemoryStore(etcd, etcd);
        Super superblock = TestCluster.superblock(TestCluster.NAME, DEVICE_BYTES);
        long created = TestCluster.format(store, superblock);
        SimDisk disk = new SimDisk(scheduler, weather, new Random(1), DEVICE_BYTES);
        SimProcess daemon = new SimProcess(scheduler, "n1.1", 0);
        programs = new SimProcess(scheduler, "programs", 0);
        ClusterNode node = new ClusterNode(new ClusterNode.Ports(new SimStore(store, daemon, new SimNetwork(scheduler, weather, new Random(2))),
                disk.attach("n1.1", () -> true, () -> false), daemon, daemon, new Random(3), Fencer.none()),
                new ClusterNode.Settings(TestCluster.NAME, "n1", "n1.1", Membership.newBuilder().setHost("n1").build(), DEADLINE_NS, 128, 64L << 20), superblock, created);
        kernel = new SimKernel(daemon, programs, weather, new Random(4), node, new SimKernel.Sessions() {
            @Override
            public long calls() {
                return 0;
            }

            @Override
            public long latest() {
                return 0;
            }

            @Override
            public long endedAt(long session) {
                return 0;
            }
        });
        node.attachKernel(kernel);
        boolean[] mounted = {false};
        daemon.start("mount", () -> {
            try {
                node.start();
                mounted[0] = true;
            } catch (StartException e) {
                scheduler.failed(e);
            }
        });
        assertTrue(scheduler.run(() -> mounted[0], scheduler.nowNs() + PATIENCE_NS), () -> "" + scheduler.failures());
    }

    private void program(Body body) {
        boolean[] done = {false};
        programs.start("program", () -> {
            try {
                body.run();
            } catch (FsException e) {
                scheduler.failed(e);
            }
            done[0] = true;
        });
        assertTrue(scheduler.run(() -> done[0], scheduler.nowNs() + PATIENCE_NS), () -> "" + scheduler.failures());
    }

    /** With memory short all the time. */
    private void shortOfMemory(Set<Long> inUse, Body body) {
        boolean[] done = {false};
        programs.start("short of memory", () -> {
            while (!done[0]) {
                kernel.shrink(inUse);
                scheduler.sleep(1_000);
            }
        });
        program(body);
        done[0] = true;
    }

    /** The two entries of a rename are in use: however short memory is, what it replaces is asked for again. */
    @Test
    void whatARenameReplacesIsNotBelievedAsItWas() {
        List<Long> files = new ArrayList<>();
        program(() -> {
            files.add(kernel.create(1, "a").ino());
            files.add(kernel.create(1, "b").ino());
        });
        long replaced = files.get(1);
        shortOfMemory(Set.of(1L, replaced), () -> kernel.rename(1, "a", 1, "b"));
        program(() -> {
            assertEquals(0, kernel.stat(replaced).nlink());
            assertEquals(files.getFirst(), kernel.lookup(1, "b"));
            assertEquals(0, kernel.lookup(1, "a"));
        });
    }
}
