package io.etcfs.testkit.cluster;

import io.etcfs.core.clock.Monitor;
import io.etcfs.core.fence.Fencer;
import io.etcfs.core.fence.Severing;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;

/** A fencer that does what a test wants: confirm, not confirm, fail, hang until it is let go. It severs nothing. */
public final class TestFencer implements Fencer {
    public enum Mode { CONFIRM, REFUSE, FAIL, HANG }

    /** What it was asked for. */
    public record Asked(String node, long before, String instance) {}

    public final List<Asked> asked = new CopyOnWriteArrayList<>();
    private final CountDownLatch released = new CountDownLatch(1);
    public volatile Mode mode = Mode.REFUSE;
    /** Done after it was asked and before it answers. */
    public volatile Runnable meanwhile = () -> {};

    /** Whoever hangs, now and later, is told that it is confirmed. */
    public void release() {
        released.countDown();
    }

    @Override
    public Severing sever(String node, long before, String instance) {
        asked.add(new Asked(node, before, instance));
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
