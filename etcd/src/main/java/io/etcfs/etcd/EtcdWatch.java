package io.etcfs.etcd;

import io.etcfs.core.store.Key;
import io.etcfs.core.store.Watch;
import io.etcfs.core.store.WatchEvent;
import io.etcfs.core.store.WatchListener;
import io.etcfs.etcd.wire.Event;
import io.etcfs.etcd.wire.WatchCreateRequest;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * One watch: where it has got to, and what its listener has yet to hear. {@link Watches} changes its position under its own lock; a thread of the watch's own
 * runs {@link #run} and calls the listener, so that a slow one delays nobody else.
 *
 * <p>Invariant: every change at or after {@code next} is still to come, every one before it has been queued or lies before a queued resync.
 */
final class EtcdWatch implements Watch {
    private final Watches watches;
    private final Key from;
    private final Key end;
    private final WatchListener listener;

    // The position; guarded by the lock of Watches.

    /** The first revision not queued yet; 0: from now on, and etcd has not said yet when that is. */
    private long next;
    private boolean everEstablished;
    private boolean established;
    private long establishedAt;
    private final List<WatchEvent> fragments = new ArrayList<>();

    /** Held while the listener runs. Taken before {@code queueLock}, never after the lock of Watches. */
    private final ReentrantLock delivering = new ReentrantLock();
    private final ReentrantLock queueLock = new ReentrantLock();
    private final Condition queued = queueLock.newCondition();
    private final Queue<Runnable> queue = new ArrayDeque<>();
    private boolean closed;

    EtcdWatch(Watches watches, Key from, Key end, long startRevision, WatchListener listener) {
        this.watches = watches;
        this.from = from;
        this.end = end;
        this.next = startRevision;
        this.listener = listener;
    }

    // Position. All under the lock of Watches.

    /** What to ask for, on a new connection or after etcd ended the watch. */
    WatchCreateRequest create(long id) {
        established = false;
        fragments.clear();
        return WatchCreateRequest.newBuilder()
            .setKey(Wire.bytes(from))
            .setRangeEnd(Wire.bytes(end))
            .setStartRevision(next)
            .setWatchId(id)
            .setFragment(true)
            .build();
    }

    void established(long atRevision) {
        established = true;
        establishedAt = atRevision;
        if (next == 0) {
            next = atRevision + 1;
        }
        if (!everEstablished) {
            everEstablished = true;
            resync();
        }
    }

    void received(List<Event> events, boolean moreFollow) {
        for (Event event : events) {
            fragments.add(Wire.event(event));
        }
        if (moreFollow) {
            return;
        }
        int start = 0;
        for (int i = 1; i <= fragments.size(); i++) {
            long revision = fragments.get(start).keyValue().modRevision();
            if (i == fragments.size() || fragments.get(i).keyValue().modRevision() != revision) {
                changed(revision, List.copyOf(fragments.subList(start, i)));
                start = i;
            }
        }
        fragments.clear();
    }

    private void changed(long revision, List<WatchEvent> events) {
        if (revision >= next) {
            next = revision + 1;
            enqueue(() -> listener.changed(revision, events));
        }
    }

    /**
     * All watches of the connection have been sent everything up to a revision, if the member computed that after it had made this one: only then is the
     * revision above the one at which the watch was made.
     */
    void caughtUp(long revision) {
        if (established && fragments.isEmpty() && revision > establishedAt) {
            next = Math.max(next, revision + 1);
        }
    }

    /** etcd has forgotten what was before a revision, and possibly deletes at it: it goes on after it. */
    void compacted(long upToRevision) {
        next = upToRevision + 1;
        everEstablished = true;
        resync();
    }

    private void resync() {
        long missedUpTo = next - 1;
        enqueue(() -> listener.resynced(missedUpTo));
    }

    // Delivery

    private void enqueue(Runnable delivery) {
        queueLock.lock();
        try {
            queue.add(delivery);
            queued.signal();
        } finally {
            queueLock.unlock();
        }
    }

    void run() {
        while (awaitDelivery()) {
            delivering.lock();
            try {
                Runnable delivery = poll();
                if (delivery != null) {
                    delivery.run();
                }
            } finally {
                delivering.unlock();
            }
        }
    }

    private boolean awaitDelivery() {
        queueLock.lock();
        try {
            while (queue.isEmpty() && !closed) {
                queued.await();
            }
            return !closed;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        } finally {
            queueLock.unlock();
        }
    }

    private Runnable poll() {
        queueLock.lock();
        try {
            return closed ? null : queue.poll();
        } finally {
            queueLock.unlock();
        }
    }

    @Override
    public void close() {
        watches.forget(this);
        queueLock.lock();
        try {
            closed = true;
            queue.clear();
            queued.signal();
        } finally {
            queueLock.unlock();
        }
        // Waits for the call that is running, unless this is it.
        delivering.lock();
        delivering.unlock();
    }
}
