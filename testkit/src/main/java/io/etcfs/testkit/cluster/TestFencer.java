package io.etcfs.testkit.cluster;

import io.etcfs.core.clock.Monitor;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.fence.Fencer;
import io.etcfs.core.fence.Severing;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;

/** A fencer that does what a test wants: confirm, not confirm, fail, hang until it is let go. It severs nothing, and admits everybody. */
public final class TestFencer implements Fencer {
    public enum Mode { CONFIRM, REFUSE, FAIL, HANG }

    /** What is known of a session as it is admitted. */
    public record Admitted(long session, List<Long> older, boolean quiet) {}

    /** On which machines an older session of one that is admitted may run. */
    public final List<List<String>> machines = new CopyOnWriteArrayList<>();
    /** That all nodes run on which are started now; empty: nobody cares. */
    public volatile String machine = "";

    /** The device's part of an admission. */
    public interface Device {
        void admit(long session) throws DeviceException;
    }

    /** What it was asked for. */
    public final List<Vanished> asked = new CopyOnWriteArrayList<>();
    /** Sessions that asked to be admitted, whatever became of it. */
    public final List<Admitted> admitted = new CopyOnWriteArrayList<>();
    /** Those that were. */
    public final List<Long> accepted = new CopyOnWriteArrayList<>();
    /** Whether the device has to be told of sessions. Before the first node starts. */
    public volatile boolean registers;
    /** What the device makes of it; then etcd is asked, as it has to be. */
    public volatile Device device = session -> {};
    /** What it makes of a process that comes after one that did not leave in order. */
    public volatile Device prepared = session -> {};
    /** Of all nodes that are started now. */
    public volatile String boot = "";
    private final CountDownLatch released = new CountDownLatch(1);
    public volatile Mode mode = Mode.REFUSE;
    /** Done after it was asked and before it answers. */
    public volatile Runnable meanwhile = () -> {};

    /** Whoever hangs, now and later, is told that it is confirmed. */
    public void release() {
        released.countDown();
    }

    @Override
    public boolean registers() {
        return registers;
    }

    @Override
    public String machine() {
        return machine;
    }

    @Override
    public String boot() {
        return boot;
    }

    @Override
    public void prepare(List<Long> older) throws DeviceException {
        prepared.admit(older.getLast());
    }

    @Override
    public void admit(long session, List<Long> older, List<String> olderMachines, boolean quiet, Standing standing) throws DeviceException {
        machines.add(List.copyOf(olderMachines));
        admit(session, older, quiet, standing);
    }

    @Override
    public void admit(long session, List<Long> older, boolean quiet, Standing standing) throws DeviceException {
        admitted.add(new Admitted(session, List.copyOf(older), quiet));
        device.admit(session);
        try {
            if (!standing.stands()) {
                throw new DeviceException(5, "the session has ended");
            }
        } catch (StoreUnavailableException | StoreRejectedException e) {
            throw new DeviceException(5, e.getMessage());
        }
        accepted.add(session);
    }

    @Override
    public Severing sever(Vanished vanished) {
        asked.add(vanished);
        meanwhile.run();
        return switch (mode) {
            case CONFIRM -> new Severing(true, "a test says so");
            case REFUSE -> new Severing(false, "a test says no");
            case FAIL -> throw new IllegalStateException("a test wants it");
            case HANG -> {
                try {
                    released.await();
                } catch (InterruptedException e) {
                    throw new Monitor.Stopped();
                }
                yield new Severing(true, "a test says so, late");
            }
        };
    }
}
