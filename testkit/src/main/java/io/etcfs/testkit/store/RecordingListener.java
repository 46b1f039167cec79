package io.etcfs.testkit.store;

import io.etcfs.core.store.WatchEvent;
import io.etcfs.core.store.WatchListener;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Keeps what a watch says, for a test to take one by one. */
public final class RecordingListener implements WatchListener {
    /** One call of the listener; {@code events} is null for a resync. */
    public record Heard(long revision, List<WatchEvent> events) {
        public boolean resync() {
            return events == null;
        }

        /** The kinds and keys, as in {@code PUT a, DELETE b}. */
        public String summary() {
            return resync() ? "resynced" : String.join(", ", events.stream().map(e -> e.kind() + " " + e.keyValue().key()).toList());
        }
    }

    private final BlockingQueue<Heard> heard = new LinkedBlockingQueue<>();

    @Override
    public void changed(long revision, List<WatchEvent> events) {
        heard.add(new Heard(revision, List.copyOf(events)));
    }

    @Override
    public void resynced(long revision) {
        heard.add(new Heard(revision, null));
    }

    /** The next call, or null if there is none in time. */
    public Heard next(long timeoutMs) throws InterruptedException {
        return heard.poll(timeoutMs, TimeUnit.MILLISECONDS);
    }

    public int waiting() {
        return heard.size();
    }
}
