package io.etcfs.linux.mount;

import io.etcfs.linux.call.LinuxException;
import io.etcfs.linux.call.MemoryMaps;
import io.etcfs.linux.call.Native;
import io.etcfs.linux.process.CpuLists;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * FUSE over io_uring: a {@link UringQueue} for each CPU that there can be, and a few readers of /dev/fuse for FORGET and INTERRUPT, which still come there.
 *
 * <p>All that can fail for reasons of the system is done by {@link #prepare}, before INIT is answered: then /dev/fuse can still be used alone. Once the flag is in
 * the answer, the kernel lets nobody use the mount before every queue has registered.
 */
final class UringTransport implements FuseTransport {
    private static final int READERS = 2;

    private final DeviceTransport readers;
    private final List<UringQueue> queues;
    private final ExecutorService data;
    private final AffinityGuard guard;

    private UringTransport(DeviceTransport readers, List<UringQueue> queues, ExecutorService data, AffinityGuard guard) {
        this.readers = readers;
        this.queues = queues;
        this.data = data;
        this.guard = guard;
    }

    /**
     * Starts a thread for each queue, with its ring, memory and CPU.
     *
     * @param dataThreads how many may access the device apart from those
     * @throws IOException nothing is left behind
     */
    static UringTransport prepare(FuseConnection connection, BlockPool pool, int dataThreads, Thread.UncaughtExceptionHandler onError) throws IOException {
        if (MemoryMaps.kernelPageBytes() != Native.PAGE_BYTES) {
            // It wants a payload of as many of its own pages as a request can have.
            throw new IOException("not with pages of " + MemoryMaps.kernelPageBytes() + " bytes");
        }
        BitSet online = CpuLists.online();
        // The kernel numbers queues by CPU, from 0 to the number of possible CPUs.
        int count = CpuLists.possible().cardinality();
        ThreadFactory factory = Thread.ofPlatform().daemon().name("fuse-data-", 0).uncaughtExceptionHandler(onError).factory();
        ThreadPoolExecutor data = new ThreadPoolExecutor(dataThreads, dataThreads, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), factory);
        AffinityGuard guard = AffinityGuard.ofThisProcess();
        List<UringQueue> queues = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int cpu = 0; cpu < count; cpu++) {
            UringQueue queue = new UringQueue(cpu, online.get(cpu), connection.mounted(), data);
            queues.add(queue);
            threads.add(Thread.ofPlatform().daemon().name("fuse-queue-" + cpu).uncaughtExceptionHandler(onError).start(queue));
        }
        LinuxException failure = null;
        for (UringQueue queue : queues) {
            LinuxException found = queue.awaitOpened();
            failure = failure == null ? found : failure;
        }
        UringTransport transport = new UringTransport(new DeviceTransport(connection, pool, READERS), queues, data, guard);
        if (failure != null) {
            transport.cancel();
            for (Thread thread : threads) {
                joinUninterruptibly(thread);
            }
            transport.free();
            throw failure;
        }
        // From here: a queue's thread would pass its CPU on.
        data.prestartAllCoreThreads();
        connection.whenClosed(transport::free);
        return transport;
    }

    private static void joinUninterruptibly(Thread thread) {
        boolean interrupted = false;
        while (thread.isAlive()) {
            try {
                thread.join();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** In /proc/self/task. */
    static int currentThreadNumber() {
        try {
            return Integer.parseInt(Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName().toString());
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public Transport kind() {
        return Transport.URING;
    }

    @Override
    public int threads() {
        return readers.threads() + queues.size();
    }

    @Override
    public void start(FuseSession session) throws LinuxException {
        for (UringQueue queue : queues) {
            LinuxException failure = queue.register();
            if (failure != null) {
                cancel();
                throw failure;
            }
        }
        boolean started = false;
        try {
            readers.start(session);
            started = true;
        } finally {
            if (!started) {
                cancel();
            }
        }
        Set<Integer> ours = new HashSet<>();
        for (UringQueue queue : queues) {
            ours.add(queue.threadNumber());
            queue.serve(session);
        }
        guard.start(ours);
    }

    @Override
    public void cancel() {
        queues.forEach(UringQueue::cancel);
    }

    @Override
    public void mountEnded() {
        guard.stop();
        queues.forEach(UringQueue::end);
    }

    /** The request is on its way to wait, or has ended: the kernel's number of it is remembered. */
    @Override
    public void interruptEarly(FuseSession session, long unique) {
        session.waiting().interruptEarly(unique);
    }

    @Override
    public boolean losesInterrupts() {
        return true;
    }

    @Override
    public long memoryBytes() {
        return queues.stream().mapToLong(UringQueue::memoryBytes).sum();
    }

    private void free() {
        data.shutdown();
        queues.forEach(UringQueue::free);
    }
}
