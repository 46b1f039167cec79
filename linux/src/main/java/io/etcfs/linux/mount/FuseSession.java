package io.etcfs.linux.mount;

import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.MustWait;
import io.etcfs.core.fs.Operations;
import io.etcfs.core.kernel.KernelCache;
import io.etcfs.fuse.protocol.Dispatcher;
import io.etcfs.fuse.protocol.Exchange;
import io.etcfs.fuse.protocol.Negotiation;
import io.etcfs.fuse.protocol.Opcode;
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
import java.util.concurrent.Executor;
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
    private static final long CLOSE_WAIT_S = 5;

    /** How a mount ended. FAILED: its threads did, by an {@link Error} that the handler was given. */
    public enum Ending { UNMOUNTED, ABORTED, FAILED }

    /**
     * Counters since the start, and gauges.
     *
     * @param requests     read from the kernel
     * @param handedOver   of those, could not be answered at once
     * @param waiting      of those, are waiting now
     * @param memoryBytes  address space of the buffers in use, those of waiting requests and of readers
     * @param notifiers    notification threads
     */
    public record Statistics(long requests, long handedOver, int waiting, long memoryBytes, int notifiers) {}

    private final Path mountPoint;
    private final MountInfo mount;
    private final Negotiation negotiation;
    private final FuseConnection connection;
    private final BlockPool pool;
    private final FuseTransport transport;
    private final Thread.UncaughtExceptionHandler onError;
    private final FuseNotifier notifier;
    private final Dispatcher dispatcher;
    private final WaitingRequests waiting = new WaitingRequests(ProcessStatus::isDying, ProcessStatus::isSignalled, System::nanoTime);
    private final ThreadFactory waitingThreads;
    private final WireTrace trace = WireTrace.ifEnabled();
    private final AtomicInteger threadsLeft = new AtomicInteger();
    private final AtomicReference<Ending> ending = new AtomicReference<>();
    private final CountDownLatch ended = new CountDownLatch(1);
    private volatile boolean staysInPlace;
    private final LongAdder requests = new LongAdder();
    private final LongAdder handedOver = new LongAdder();

    FuseSession(MountInfo mount, Negotiation negotiation, FuseConnection connection, BlockPool pool, FuseTransport transport,
            Function<KernelCache, Operations> operations, Thread.UncaughtExceptionHandler onError) {
        this.mountPoint = Path.of(mount.mountPoint());
        this.mount = mount;
        this.negotiation = negotiation;
        this.connection = connection;
        this.pool = pool;
        this.transport = transport;
        this.onError = onError;
        this.notifier = new FuseNotifier(connection, negotiation.canExpireEntries(), negotiation.canPrune(), this::abort, onError);
        this.waitingThreads = Thread.ofVirtual().name("fuse-request-", 0).uncaughtExceptionHandler(onError).factory();
        this.dispatcher = new Dispatcher(operations.apply(notifier), negotiation);
    }

    /** Begins to answer requests. Until then whoever uses the mount waits. After an exception it can only be closed. */
    public void start() throws LinuxException {
        if (!threadsLeft.compareAndSet(0, transport.threads())) {
            throw new IllegalStateException("already started, or closed");
        }
        boolean started = false;
        try {
            transport.start(this);
            started = true;
        } finally {
            if (!started) {
                threadsLeft.set(0);
            }
        }
    }

    void startThread(String name, Runnable body) {
        Thread.ofPlatform().daemon().name(name).uncaughtExceptionHandler(onError).start(body);
    }

    /** A virtual one. */
    void startWaitingThread(Runnable body) {
        waitingThreads.newThread(body).start();
    }

    /** The one in use. */
    public Transport transport() {
        return transport.kind();
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

    /** What ends the connection when it is written to, for another process. To be opened while the mount has not ended, as {@link #hasEnded} says afterwards. */
    public Path abortFile() throws IOException {
        FuseControl.prepare();
        return FuseControl.abortFile(mount.minor());
    }

    /** It was unmounted and no file is open, or it was aborted: from then on another mount can have its connection number. */
    public boolean hasEnded() {
        if (!connection.acquire()) {
            return true;
        }
        try {
            return connection.isBroken();
        } finally {
            connection.release();
        }
    }

    /** Absolute, without symbolic links. */
    public Path mountPoint() {
        return mountPoint;
    }

    public Statistics statistics() {
        return new Statistics(requests.sum(), handedOver.sum(), waiting.count(), pool.takenBytes() + transport.memoryBytes(), notifier.threads());
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

    /** A mount that was aborted fails every call: {@link #close} leaves it there. Taken away, programs would go on in the directory below it. */
    public void stayInPlace() {
        staysInPlace = true;
    }

    /** Unmounts in whatever state: if it is busy, aborts and detaches. */
    @Override
    public void close() throws IOException {
        if (staysInPlace && ended.getCount() == 0) {
            return;
        }
        if (threadsLeft.compareAndSet(0, 1)) {
            // Never started, or ended already.
            detach();
            if (ended.getCount() > 0) {
                transport.cancel();
                threadEnded(Ending.UNMOUNTED);
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

    Dispatcher dispatcher() {
        return dispatcher;
    }

    WaitingRequests waiting() {
        return waiting;
    }

    boolean isBroken() {
        return connection.isBroken();
    }

    /** The reply to the call is with the kernel, or never will be. */
    void replied(Call call) {
        dispatcher.replied(call);
    }

    void received(Exchange exchange) {
        requests.increment();
        if (trace != null) {
            trace.received(exchange);
        }
    }

    /** A reply is on its way, for the trace. */
    void replying(Exchange exchange) {
        if (trace != null) {
            trace.replied(exchange);
        }
    }

    /** Through /dev/fuse. */
    void reply(int descriptor, Exchange exchange, Call call, Block block) {
        int bytes = exchange.replyBytes();
        if (bytes == 0) {
            return;
        }
        dispatcher.replying(exchange, call);
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

    /** As a transport's thread does, but on one of these. */
    void tryElsewhere(Executor threads, FuseTransport.Pending request) {
        connection.acquire();
        threads.execute(() -> {
            try {
                Exchange x = new Exchange(Native.MEMORY);
                request.view(x);
                Call call = new Call(x.unique(), x.uid(), x.gid(), x.pid(), false, Call.Interruption.NEVER);
                boolean replied = false;
                try {
                    dispatcher.dispatch(x, call);
                    replying(x);
                    request.reply(x, call);
                    replied = true;
                } catch (MustWait e) {
                    startWaiting(x, request);
                } finally {
                    if (!replied) {
                        replied(call);
                    }
                }
            } finally {
                connection.release();
            }
        });
    }

    /** Goes on with a request on a virtual thread. */
    void startWaiting(Exchange received, FuseTransport.Pending request) {
        handedOver.increment();
        if (trace != null) {
            trace.waits(received);
        }
        // The threads of the transport have the connection in use, so that this can't fail.
        connection.acquire();
        boolean unasked = transport.losesInterrupts() && callerWaits(received.opcode());
        WaitingRequests.Waiting registered = waiting.begin(received.unique(), received.pid(), unasked);
        startWaitingThread(() -> runWaiting(registered, request));
    }

    /** Whether the process that a request is of is always there until it is answered. Read-ahead, write-back and the last close go on without it. */
    private static boolean callerWaits(Opcode opcode) {
        return opcode != null && switch (opcode) {
            case READ, WRITE, FLUSH, RELEASE, RELEASEDIR -> false;
            default -> true;
        };
    }

    private void runWaiting(WaitingRequests.Waiting registered, FuseTransport.Pending request) {
        boolean replied = false;
        Exchange x = new Exchange(Native.MEMORY);
        try {
            request.view(x);
            Call call = new Call(x.unique(), x.uid(), x.gid(), x.pid(), true, registered);
            try {
                dispatcher.dispatch(x, call);
                registered.end();
                replying(x);
                request.reply(x, call);
                replied = true;
            } finally {
                if (!replied) {
                    replied(call);
                }
            }
        } finally {
            registered.end();
            request.end();
            connection.release();
        }
    }

    void interrupt(long unique) {
        if (!waiting.interrupt(unique)) {
            transport.interruptEarly(this, unique);
        }
    }

    /** {@code how}: null if the thread can't tell how the mount ended. */
    void threadEnded(Ending how) {
        if (how != null) {
            ending.updateAndGet(before -> before == null || before == Ending.FAILED ? how : before);
        }
        if (how == Ending.UNMOUNTED || how == Ending.ABORTED) {
            transport.mountEnded();
        }
        if (threadsLeft.decrementAndGet() == 0) {
            ended.countDown();
            connection.release();
        }
    }
}
