package io.etcfs.linux.mount;

import io.etcfs.core.kernel.KernelCache;
import io.etcfs.fuse.protocol.Notification;
import io.etcfs.linux.call.ErrorNumbers;
import io.etcfs.linux.call.Native;
import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Sends notifications from platform threads. Each can block in the kernel until a request of the same directory or page is answered, for as long as that
 * takes; when all threads are busy another one is started, up to {@value #USUAL_THREADS}. Beyond that notifications queue, and threads are added, up to
 * {@value #MAX_THREADS}, only while none gets on: those that are stuck may be so until one that is queued was sent. Notifications are sent in no particular
 * order, unless one is asked for in the {@code done} of another.
 *
 * <p>{@code done} runs on the sending thread, exactly once: also for what the kernel did not know (ENOENT), after the mount has ended, and
 * after an error, which is logged. It must not block.
 */
final class FuseNotifier implements KernelCache {
    static final int USUAL_THREADS = 64;
    static final int MAX_THREADS = 1024;
    private static final long STUCK_MS = 10;
    private static final long IDLE_S = 30;
    private static final int ATTEMPTS = 100;
    private static final System.Logger LOG = System.getLogger("io.etcfs.fuse");

    private final FuseConnection connection;
    private final boolean canExpire;
    private final boolean canPrune;
    private final Runnable abort;
    private final Thread.UncaughtExceptionHandler onError;

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition queued = lock.newCondition();
    private final ArrayDeque<Message> queue = new ArrayDeque<>();
    private int threads;
    private int idleThreads;
    private long started;
    private long taken;
    private boolean relieving;

    /**
     * @param canExpire whether the kernel knows FUSE_EXPIRE_ONLY (7.38)
     * @param canPrune  whether it knows FUSE_NOTIFY_PRUNE (7.45)
     */
    FuseNotifier(FuseConnection connection, boolean canExpire, boolean canPrune, Runnable abort, Thread.UncaughtExceptionHandler onError) {
        this.connection = connection;
        this.canExpire = canExpire;
        this.canPrune = canPrune;
        this.abort = abort;
        this.onError = onError;
    }

    private sealed interface Message {
        Runnable done();

        int encode(long at);
    }

    private record Entry(long parent, byte[] name, boolean expireOnly, Runnable done) implements Message {
        @Override
        public int encode(long at) {
            return Notification.invalidateEntry(Native.MEMORY, at, parent, name, expireOnly);
        }
    }

    private record Attributes(long ino, Runnable done) implements Message {
        @Override
        public int encode(long at) {
            return Notification.invalidateAttributes(Native.MEMORY, at, ino);
        }
    }

    private record Pages(long ino, long offset, long length, Runnable sending, Runnable done) implements Message {
        @Override
        public int encode(long at) {
            sending.run();
            return Notification.invalidatePages(Native.MEMORY, at, ino, offset, length);
        }
    }

    private record Prune(long[] inos, Runnable done) implements Message {
        @Override
        public int encode(long at) {
            return Notification.prune(Native.MEMORY, at, inos);
        }
    }

    /**
     * A kernel that can't expire (before 6.2) is sent nothing, since the plain form unmounts what is mounted on a directory: {@code done} runs at once, and
     * the entry stays valid for as long as it was granted.
     */
    @Override
    public void invalidateEntry(long parentIno, byte[] name, boolean expireOnly, Runnable done) {
        if (expireOnly && !canExpire) {
            done.run();
            return;
        }
        enqueue(new Entry(parentIno, name.clone(), expireOnly, done));
    }

    @Override
    public boolean canExpireEntries() {
        return canExpire;
    }

    @Override
    public void invalidateAttributes(long ino, Runnable done) {
        enqueue(new Attributes(ino, done));
    }

    @Override
    public void invalidatePages(long ino, long offsetBytes, long lengthBytes, Runnable done) {
        invalidatePages(ino, offsetBytes, lengthBytes, () -> {}, done);
    }

    @Override
    public void invalidatePages(long ino, long offsetBytes, long lengthBytes, Runnable sending, Runnable done) {
        if (offsetBytes < 0 || lengthBytes < 0) {
            throw new IllegalArgumentException(lengthBytes + " bytes at " + offsetBytes);
        }
        enqueue(new Pages(ino, offsetBytes, lengthBytes, sending, done));
    }

    @Override
    public boolean canPrune() {
        return canPrune;
    }

    @Override
    public void prune(long[] inos, Runnable done) {
        if (!canPrune) {
            done.run();
            return;
        }
        enqueue(new Prune(inos.clone(), done));
    }

    @Override
    public void abort() {
        abort.run();
    }

    private void enqueue(Message message) {
        long number = -1;
        boolean relief = false;
        lock.lock();
        try {
            queue.addLast(message);
            if (queue.size() <= idleThreads) {
                queued.signal();
            } else if (threads < USUAL_THREADS) {
                threads++;
                number = started++;
            } else if (!relieving) {
                relieving = true;
                relief = true;
            }
        } finally {
            lock.unlock();
        }
        if (number >= 0) {
            startThread(number);
        }
        if (relief) {
            Thread.ofPlatform().daemon().name("fuse-notify-relief").uncaughtExceptionHandler(onError).start(this::relieve);
        }
    }

    private void startThread(long number) {
        Thread.ofPlatform().daemon().name("fuse-notify-" + number).uncaughtExceptionHandler(onError).start(this::run);
    }

    /** Adds threads while notifications are queued and none is taken from the queue. */
    private void relieve() {
        long seen = -1;
        while (true) {
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(STUCK_MS));
            int more = 0;
            long number = 0;
            lock.lock();
            try {
                if (queue.isEmpty()) {
                    relieving = false;
                    return;
                }
                if (taken == seen) {
                    more = Math.min(queue.size(), MAX_THREADS - threads);
                    threads += more;
                    number = started;
                    started += more;
                }
                seen = taken;
            } finally {
                lock.unlock();
            }
            for (int i = 0; i < more; i++) {
                startThread(number + i);
            }
        }
    }

    /** Threads that exist, for diagnostics. */
    int threads() {
        lock.lock();
        try {
            return threads;
        } finally {
            lock.unlock();
        }
    }

    private void run() {
        Block block = new Block(Native.PAGE_BYTES);
        try {
            Message message = next();
            while (message != null) {
                send(message, block);
                message = next();
            }
        } catch (Error e) {
            threadEnded();
            throw e;
        } finally {
            block.unmap();
        }
    }

    private void threadEnded() {
        lock.lock();
        try {
            threads--;
        } finally {
            lock.unlock();
        }
    }

    /** Null: the thread is not needed any more, and no longer counts. */
    private Message next() {
        lock.lock();
        try {
            long left = TimeUnit.SECONDS.toNanos(IDLE_S);
            while (queue.isEmpty()) {
                if (left <= 0) {
                    threads--;
                    return null;
                }
                idleThreads++;
                try {
                    left = queued.awaitNanos(left);
                } catch (InterruptedException e) {
                    left = 0;
                } finally {
                    idleThreads--;
                }
            }
            taken++;
            return queue.pollFirst();
        } finally {
            lock.unlock();
        }
    }

    private void send(Message message, Block block) {
        if (connection.acquire()) {
            try {
                write(message, block);
            } finally {
                connection.release();
            }
        }
        try {
            message.done().run();
        } catch (RuntimeException e) {
            LOG.log(System.Logger.Level.ERROR, "after " + message, e);
        }
    }

    private void write(Message message, Block block) {
        int length = message.encode(block.payload);
        long result = 0;
        for (int i = 0; i < ATTEMPTS; i++) {
            result = FuseConnection.send(connection.mounted(), block.payload, length, block.errno);
            if (result != -ErrorNumbers.ENOMEM && result != -ErrorNumbers.EAGAIN) {
                break;
            }
            pause();
        }
        if (result < 0 && result != -ErrorNumbers.ENOENT && !connection.isBroken()) {
            LOG.log(System.Logger.Level.ERROR, message + ": " + ErrorNumbers.describe((int) -result));
        }
    }

    private static void pause() {
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
    }
}
