package io.etcfs.linux.mount;

import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.Operations;
import io.etcfs.core.kernel.KernelCache;
import io.etcfs.fuse.protocol.Dispatcher;
import io.etcfs.fuse.protocol.Exchange;
import io.etcfs.fuse.protocol.Negotiation;
import io.etcfs.fuse.protocol.WaitingRequests;
import io.etcfs.fuse.protocol.WireTrace;
import io.etcfs.linux.call.Descriptors;
import io.etcfs.linux.call.ErrorNumbers;
import io.etcfs.linux.call.LinuxException;
import io.etcfs.linux.call.MountCalls;
import io.etcfs.linux.call.Native;
import io.etcfs.linux.process.ProcessStatus;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Function;

/**
 * A mount, from the answered INIT to its end. It ends by umount(2), from here or elsewhere, once no file in it is open any more, or by
 * {@link #abort}; the readers then see ENODEV or ECONNABORTED. Requests that still wait at that time go on, and their replies go nowhere.
 */
public final class FuseSession implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger("io.etcfs.fuse");
    private static final long AGAIN_AFTER_MS = 5;
    private static final long CLOSE_WAIT_S = 5;
    private static final int INTERRUPT_BIT = 1;

    /** How a mount ended. FAILED: its readers did, by an {@link Error} that the handler was given. */
    public enum Ending { UNMOUNTED, ABORTED, FAILED }

    /**
     * Counters since the start, and gauges.
     *
     * @param requests     read from the kernel
     * @param handedOver   of those, could not be answered at once
     * @param waiting      of those, are waiting now
     * @param memoryBytes  address space of the buffers in use, those of waiting requests and of the readers
     * @param notifiers    notification threads
     */
    public record Statistics(long requests, long handedOver, int waiting, long memoryBytes, int notifiers) {}

    private final MountOptions options;
    private final Path mountPoint;
    private final MountInfo mount;
    private final Negotiation negotiation;
    private final FuseConnection connection;
    private final BlockPool pool;
    private final Thread.UncaughtExceptionHandler onError;
    private final FuseNotifier notifier;
    private final Dispatcher dispatcher;
    private final WaitingRequests waiting = new WaitingRequests(ProcessStatus::isDying, System::nanoTime);
    private final ThreadFactory waitingThreads;
    private final WireTrace trace = WireTrace.ifEnabled();
    private final AtomicInteger readersLeft = new AtomicInteger();
    private final AtomicReference<Ending> ending = new AtomicReference<>();
    private final CountDownLatch ended = new CountDownLatch(1);
    private final LongAdder requests = new LongAdder();
    private final LongAdder handedOver = new LongAdder();

    FuseSession(MountOptions options, MountInfo mount, Negotiation negotiation, FuseConnection connection, BlockPool pool,
            Function<KernelCache, Operations> operations, Thread.UncaughtExceptionHandler onError) {
        this.options = options;
        this.mountPoint = Path.of(mount.mountPoint());
        this.mount = mount;
        this.negotiation = negotiation;
        this.connection = connection;
        this.pool = pool;
        this.onError = onError;
        this.notifier = new FuseNotifier(connection, negotiation.canExpireEntries(), this::abort, onError);
        this.waitingThreads = Thread.ofVirtual().name("fuse-request-", 0).uncaughtExceptionHandler(onError).factory();
        this.dispatcher = new Dispatcher(operations.apply(notifier), negotiation);
    }

    /** Begins to answer requests. Until then whoever uses the mount waits. */
    public void start() throws LinuxException {
        int[] descriptors = new int[options.readers()];
        descriptors[0] = connection.mounted();
        for (int i = 1; i < descriptors.length; i++) {
            descriptors[i] = connection.cloneDescriptor();
        }
        if (!readersLeft.compareAndSet(0, descriptors.length)) {
            throw new IllegalStateException("already started, or closed");
        }
        for (int i = 0; i < descriptors.length; i++) {
            Thread.ofPlatform().daemon().name("fuse-reader-" + i).uncaughtExceptionHandler(onError).start(new FuseReader(this, descriptors[i]));
        }
    }

    public KernelCache kernelCache() {
        return notifier;
    }

    public Negotiation negotiation() {
        return negotiation;
    }

    /** The minor number of the mount's st_dev, and its directory's name in fusectl. */
    public int connectionNumber() {
        return mount.minor();
    }

    /** Absolute, without symbolic links. */
    public Path mountPoint() {
        return mountPoint;
    }

    public Statistics statistics() {
        return new Statistics(requests.sum(), handedOver.sum(), waiting.count(), pool.takenBytes(), notifier.threads());
    }

    /** Waits until the mount has ended. */
    public Ending awaitUnmounted() throws InterruptedException {
        ended.await();
        return ending.get();
    }

    /** Empty: it has not ended within the timeout. */
    public Optional<Ending> awaitUnmounted(long timeout, TimeUnit unit) throws InterruptedException {
        return ended.await(timeout, unit) ? Optional.of(ending.get()) : Optional.empty();
    }

    /**
     * Unmounts; the end is to be waited for. Nothing happens if the mount is gone from its place.
     *
     * @throws LinuxException EBUSY if a file is open or a process has its working directory there
     */
    public void unmount() throws IOException {
        if (isInPlace()) {
            LinuxException.check(MountCalls.umount(mountPoint.toString(), MountCalls.UMOUNT_NOFOLLOW), "umount " + mountPoint);
        }
    }

    /** Takes the mount from its place; it ends when the last file in it is closed. */
    public void detach() throws IOException {
        if (isInPlace()) {
            LinuxException.check(MountCalls.umount(mountPoint.toString(), MountCalls.MNT_DETACH | MountCalls.UMOUNT_NOFOLLOW), "umount -l " + mountPoint);
        }
    }

    private boolean isInPlace() throws IOException {
        return Mounts.at(mountPoint).filter(top -> top.type().equals(Mounts.TYPE) && top.major() == mount.major() && top.minor() == mount.minor()).isPresent();
    }

    /**
     * Cuts the kernel off: all requests, and all calls in the mount from now on, fail. The mount stays where it is. Also ends notifications that hang. Does
     * nothing if the mount has ended, since its connection number may be another mount's by then.
     */
    public void abort() {
        if (!connection.acquire()) {
            return;
        }
        try {
            if (connection.isBroken()) {
                return;
            }
            try {
                FuseControl.abort(mount.minor());
            } catch (IOException e) {
                LOG.log(System.Logger.Level.WARNING, "abort through fusectl failed, forcing the mount off", e);
                if (isInPlace()) {
                    LinuxException.check(MountCalls.umount(mountPoint.toString(), MountCalls.MNT_FORCE | MountCalls.MNT_DETACH | MountCalls.UMOUNT_NOFOLLOW),
                            "umount -f " + mountPoint);
                }
            }
        } catch (IOException e) {
            LOG.log(System.Logger.Level.ERROR, "the connection of " + mountPoint + " can't be aborted", e);
        } finally {
            connection.release();
        }
    }

    /** Unmounts in whatever state: if it is busy, aborts and detaches. */
    @Override
    public void close() throws IOException {
        if (readersLeft.compareAndSet(0, 1)) {
            // Never started, or ended already.
            detach();
            if (ended.getCount() > 0) {
                readerEnded(Ending.UNMOUNTED);
            }
            return;
        }
        try {
            unmount();
        } catch (LinuxException e) {
            abort();
            detach();
        }
        try {
            if (!ended.await(CLOSE_WAIT_S, TimeUnit.SECONDS)) {
                abort();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            abort();
        }
    }

    BlockPool pool() {
        return pool;
    }

    Dispatcher dispatcher() {
        return dispatcher;
    }

    void received(Exchange exchange) {
        requests.increment();
        if (trace != null) {
            trace.received(exchange);
        }
    }

    void reply(int descriptor, Exchange exchange, Block block) {
        if (trace != null) {
            trace.replied(exchange);
        }
        int bytes = exchange.replyBytes();
        if (bytes == 0) {
            return;
        }
        long result;
        if (exchange.data() == null) {
            result = FuseConnection.send(descriptor, exchange.reply(), bytes, block.errno);
        } else {
            long vectors = block.vectors(exchange.reply(), bytes, exchange.data().address(), exchange.data().byteSize());
            do {
                result = Descriptors.writev(descriptor, vectors, 2, block.errno);
            } while (result == -ErrorNumbers.EINTR);
        }
        // ENOENT: the kernel has given the request up, as it does with those of an unmounted or aborted connection.
        if (result < 0 && result != -ErrorNumbers.ENOENT && !connection.isBroken()) {
            LOG.log(System.Logger.Level.ERROR, "reply to " + exchange.unique() + " " + exchange.opcode() + ": " + ErrorNumbers.describe((int) -result));
        }
    }

    /** Goes on with a request on a virtual thread. {@code request} is a copy of it, or its block, and is given back to the pool there. */
    void startWaiting(Exchange received, Block request, int descriptor) {
        handedOver.increment();
        if (trace != null) {
            trace.waits(received);
        }
        // A reader has the connection in use, so that this can't fail.
        connection.acquire();
        WaitingRequests.Waiting registered = waiting.begin(received.unique(), received.pid());
        waitingThreads.newThread(() -> runWaiting(registered, request, descriptor)).start();
    }

    private void runWaiting(WaitingRequests.Waiting registered, Block request, int descriptor) {
        Block reply = null;
        try {
            reply = pool.take(Exchange.bodyCapacityNeeded(Native.MEMORY, request.request()));
            Exchange x = new Exchange(Native.MEMORY);
            x.pointAt(request.request(), reply.reply(), reply.capacity);
            Call call = new Call(x.unique(), x.uid(), x.gid(), x.pid(), true, registered);
            try {
                dispatcher.dispatch(x, call);
                registered.end();
                reply(descriptor, x, reply);
            } finally {
                dispatcher.replied(call);
            }
        } finally {
            registered.end();
            pool.giveBack(request);
            if (reply != null) {
                pool.giveBack(reply);
            }
            connection.release();
        }
    }

    /**
     * A request that is not waiting has ended, or another reader is about to hand it over. The kernel, which interrupts once, is asked to interrupt again after a few
     * ms. It takes that answer only on the descriptor that the request itself was read from, which is not known: all of them get it, and
     * those that don't have the request say ENOENT.
     */
    void interrupt(long unique) {
        if (waiting.interrupt(unique)) {
            return;
        }
        connection.acquire();
        waitingThreads.newThread(() -> {
            try {
                Thread.sleep(AGAIN_AFTER_MS);
                if (!waiting.interrupt(unique)) {
                    interruptAgain(unique);
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            } finally {
                connection.release();
            }
        }).start();
    }

    private void interruptAgain(long unique) {
        Block block = pool.take(Native.PAGE_BYTES);
        try {
            int length = Exchange.encodeError(Native.MEMORY, block.reply(), unique | INTERRUPT_BIT, Errno.EAGAIN.number());
            for (int descriptor : connection.descriptors()) {
                if (FuseConnection.send(descriptor, block.reply(), length, block.errno) > 0) {
                    return;
                }
            }
        } finally {
            pool.giveBack(block);
        }
    }

    void readerEnded(Ending how) {
        ending.updateAndGet(before -> before == null || before == Ending.FAILED ? how : before);
        if (readersLeft.decrementAndGet() == 0) {
            ended.countDown();
            connection.release();
        }
    }
}
