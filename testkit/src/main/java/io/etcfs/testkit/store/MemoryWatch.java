package io.etcfs.testkit.store;

import io.etcfs.core.store.Watch;
import io.etcfs.core.store.WatchEvent;
import io.etcfs.core.store.WatchListener;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

/**
 * One watch of a {@link MemoryStore}. The store calls {@link #connect} and {@link #offer} under its lock, in revision order; a thread of the watch's own
 * runs {@link #run} and calls the listener, so that a slow listener delays nobody else.
 */
final class MemoryWatch implements Watch {
    private final Interval keys;
    private final WatchListener listener;
    private final Consumer<MemoryWatch> onClose;

    /** Held while the listener runs. Taken before {@code queueLock}, never after the store's lock. */
    private final ReentrantLock delivering = new ReentrantLock();
    private final ReentrantLock queueLock = new ReentrantLock();
    private final Condition queued = queueLock.newCondition();
    private final Queue<Runnable> queue = new ArrayDeque<>();
    private boolean closed;

    /** The first revision not delivered yet; 0: from now on, not connected so far. */
    private long nextRevision;
    private boolean established;

    MemoryWatch(Interval keys, long startRevision, WatchListener listener, Consumer<MemoryWatch> onClose) {
        this.keys = keys;
        this.nextRevision = startRevision;
        this.listener = listener;
        this.onClose = onClose;
    }

    void connect(KeySpace space) {
        boolean gap = !established;
        if (nextRevision == 0) {
            nextRevision = space.revision() + 1;
        } else if (nextRevision < space.compacted()) {
            nextRevision = space.compacted() + 1;
            gap = true;
        }
        established = true;
        if (gap) {
            long missedUpTo = nextRevision - 1;
            enqueue(() -> listener.resynced(missedUpTo));
        }
        space.changesSince(nextRevision).forEach(this::offer);
        nextRevision = Math.max(nextRevision, space.revision() + 1);
    }

    void offer(long revision, List<WatchEvent> events) {
        if (revision < nextRevision) {
            return;
        }
        nextRevision = revision + 1;
        List<WatchEvent> mine = events.stream().filter(event -> keys.contains(event.keyValue().key())).toList();
        if (!mine.isEmpty()) {
            enqueue(() -> listener.changed(revision, mine));
        }
    }

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
        onClose.accept(this);
    }
}
