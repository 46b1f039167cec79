package io.etcfs.linux.mount;

import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.MustWait;
import io.etcfs.fuse.protocol.Exchange;
import io.etcfs.fuse.protocol.Opcode;
import io.etcfs.linux.call.AffinityCalls;
import io.etcfs.linux.call.Descriptors;
import io.etcfs.linux.call.ErrorNumbers;
import io.etcfs.linux.call.LinuxException;
import io.etcfs.linux.call.MemoryMaps;
import io.etcfs.linux.call.Native;
import io.etcfs.linux.call.UringCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The requests that are made on one CPU: a ring, the entries that are registered for it, and the thread that serves it, on that CPU.
 *
 * <p><b>Requests behind waiting ones.</b> An entry is occupied until its request is answered, also while that waits, and what comes when there is no free entry
 * stays in the kernel, unseen: it may be the very request that the others wait for. The kernel looks at what it has kept when a reply is committed, and only
 * then: not when an entry is registered. So there must always be free entries, before they are needed: whenever fewer than {@value #RESERVE} are left,
 * {@value #ENTRIES} more are registered. They cost next to nothing while they are not used, as the kernel takes those first that came back last, and memory is
 * not touched before that. What remains: if more than {@value #RESERVE} requests arrive before the thread gets to run, and all of those have to wait, the ones beyond
 * are served when any request of this CPU is next answered, at the latest when one of the waiting gives up.
 *
 * <p><b>Accesses to the device.</b> READ and WRITE do them on the thread that has the request. Those of one client are best done here; but the others of this CPU
 * should not wait for them. If one came while the thread was in another, the next go to threads of their own.
 *
 * <p>States: opened (ring and memory are there), registered (the kernel may send requests once all queues are), serving, ended. All fields but those that
 * are volatile or concurrent are the thread's own.
 */
final class UringQueue implements Runnable {
    static final int ENTRIES = 512;
    static final int RESERVE = 384;
    /** Of a CPU that is not there yet. */
    private static final int OFFLINE_ENTRIES = 16;
    /** So many may keep the memory of a large request. */
    private static final int LARGE_ENTRIES = 16;
    /** A READ or WRITE that takes longer has accessed the device; others are over before another thread could have been woken. */
    private static final long LONG_NS = 30_000;
    /** READs and WRITEs that are given away after the thread was seen to hold others up. */
    private static final int CROWD = 64;

    private static final int REGISTER = 1;
    private static final int COMMIT_AND_FETCH = 2;
    private static final long WAKE = -1;
    /** Room for the counter's values, one that is read and one to be written, and for the iovecs of the entries that are registered next. */
    private static final int SCRATCH_BYTES = Native.PAGE_BYTES;
    private static final int ONE_AT = 8;
    private static final int VECTORS_AT = 1024;

    private static final System.Logger LOG = System.getLogger("io.etcfs.fuse");

    private final int cpu;
    private final boolean pinned;
    private final int fuseDescriptor;
    private final Executor dataThreads;
    private final CompletableFuture<LinuxException> opened = new CompletableFuture<>();
    private final CompletableFuture<Boolean> register = new CompletableFuture<>();
    private final CompletableFuture<LinuxException> registered = new CompletableFuture<>();
    private final CompletableFuture<FuseSession> serve = new CompletableFuture<>();

    private final List<UringEntry> entries = new ArrayList<>();
    private final Exchange exchange = new Exchange(Native.MEMORY);
    private final Exchange replied = new Exchange(Native.MEMORY);
    /** Entries with replies that grant something, and that are not submitted yet. */
    private final List<UringEntry> unconfirmed = new ArrayList<>();
    private UringRing ring;
    private FuseSession session;
    /** Whether the thread was in an access to the device since the last look. */
    private boolean accessed;
    /** So many of those are given to other threads. */
    private int crowded;
    /** Entries that keep memory. */
    private int large;

    private final List<long[]> mappings = new ArrayList<>();
    private int counter = -1;
    private long scratch;
    private final ConcurrentLinkedQueue<UringEntry> answered = new ConcurrentLinkedQueue<>();
    private final AtomicBoolean woken = new AtomicBoolean();
    private volatile boolean ending;
    private volatile boolean ended;
    private volatile int held;
    private volatile int threadNumber;

    /**
     * @param pinned      whether the CPU is online, so that its thread can be bound to it
     * @param dataThreads bound to no CPU
     */
    UringQueue(int cpu, boolean pinned, int fuseDescriptor, Executor dataThreads) {
        this.cpu = cpu;
        this.pinned = pinned;
        this.fuseDescriptor = fuseDescriptor;
        this.dataThreads = dataThreads;
    }

    // ---- for other threads

    /** Null, or why it can't be used: the thread ends then. */
    LinuxException awaitOpened() {
        return opened.join();
    }

    /** Gives the entries to the kernel. Null, or the error: it is to be cancelled then. */
    LinuxException register() {
        register.complete(true);
        return registered.join();
    }

    void serve(FuseSession served) {
        serve.complete(served);
    }

    /** In place of the next step. */
    void cancel() {
        register.complete(false);
        serve.complete(null);
    }

    /** Its thread leaves soon. */
    void end() {
        ending = true;
        try (Arena arena = Arena.ofConfined()) {
            wake(arena.allocate(4, 4));
        }
    }

    /** The thread that answered a waiting request gives the entry back. */
    void answered(UringEntry entry) {
        answered.add(entry);
        if (ended) {
            // Nobody else would look. The entry was added before, the thread looked once more after it had set this.
            discardAnswered();
        } else {
            wake(entry.errno());
        }
    }

    private void wake(MemorySegment errno) {
        if (!woken.getAndSet(true)) {
            Descriptors.write(counter, scratch + ONE_AT, 8, errno);
        }
    }

    /** Address space of the entries whose requests wait, in bytes. */
    long memoryBytes() {
        return held * UringEntry.BYTES;
    }

    /** As in /proc/self/task; 0: not known yet. */
    int threadNumber() {
        return threadNumber;
    }

    /** Frees what others may have used until now. The thread has ended. */
    void free() {
        for (long[] mapping : mappings) {
            MemoryMaps.unmap(mapping[0], mapping[1]);
        }
        mappings.clear();
        if (counter >= 0) {
            Descriptors.close(counter);
            counter = -1;
        }
    }

    // ---- the thread

    @Override
    public void run() {
        LinuxException failure;
        try {
            failure = open();
        } catch (RuntimeException | Error e) {
            opened.completeExceptionally(e);
            return;
        }
        opened.complete(failure);
        if (failure != null) {
            return;
        }
        boolean serving = false;
        try {
            if (!register.get()) {
                return;
            }
            registerFirst();
            // The transport cancels if an entry was not taken.
            session = serve.get();
            if (session != null) {
                serving = true;
                loop();
            }
        } catch (InterruptedException | ExecutionException e) {
            throw new IllegalStateException(e);
        } catch (RuntimeException | Error e) {
            registered.completeExceptionally(e);
            throw e;
        } finally {
            end(serving);
        }
    }

    private LinuxException open() {
        try {
            threadNumber = UringTransport.currentThreadNumber();
            if (pinned) {
                BitSet only = new BitSet();
                only.set(cpu);
                LinuxException.check(AffinityCalls.set(0, only), "binding a thread to CPU " + cpu);
            }
            scratch = reserve(SCRATCH_BYTES);
            Native.MEMORY.set(JAVA_LONG, scratch + ONE_AT, 1);
            counter = LinuxException.check(UringCalls.eventCounter(), "eventfd");
            addEntries(pinned ? ENTRIES : OFFLINE_ENTRIES);
            ring = UringRing.open();
            return null;
        } catch (LinuxException e) {
            return e;
        }
    }

    private long reserve(long bytes) throws LinuxException {
        long address = MemoryMaps.reserve(bytes);
        LinuxException.check((int) Math.min(address, 0), "mmap of " + bytes + " bytes");
        mappings.add(new long[] {address, bytes});
        return address;
    }

    private void addEntries(int count) throws LinuxException {
        // One more, to begin at a multiple.
        long base = (reserve((count + 1) * UringEntry.BYTES) + UringEntry.BYTES - 1) & -UringEntry.BYTES;
        for (int i = 0; i < count; i++) {
            entries.add(new UringEntry(this, entries.size(), base + i * UringEntry.BYTES));
        }
    }

    /** Errors show at once; requests that are there already are left for {@link #loop}. */
    private void registerFirst() {
        for (UringEntry entry : entries) {
            register(entry);
        }
        ring.enter(0);
        int failed = ring.firstFailure();
        registered.complete(failed < 0 ? new LinuxException(-failed, "registering with FUSE over io_uring") : null);
    }

    private void register(UringEntry entry) {
        long vectors = scratch + VECTORS_AT + (long) UringEntry.VECTORS_BYTES * (entry.index % UringRing.SUBMISSIONS);
        command(REGISTER, entry, vectors, 2, 0);
        // The kernel reads them when it takes the command from the ring. Only now it is certain to have taken the one that used this place before.
        entry.describe(vectors);
    }

    private void command(int command, UringEntry entry, long address, int length, long commitId) {
        makeRoom();
        long at = ring.command(fuseDescriptor, command, address, length, entry.index);
        Native.MEMORY.set(JAVA_LONG, at + 8, commitId);
        Native.MEMORY.set(JAVA_SHORT, at + 16, (short) cpu);
    }

    private void loop() {
        awaitWake();
        while (!ending) {
            commitAnswered();
            while (ring.hasCompletion() && !ending) {
                long userData = ring.userData();
                int result = ring.result();
                ring.removeFirst();
                completed(userData, result);
            }
            if (unconfirmed.isEmpty() && !accessed && answered.isEmpty() && !ring.hasCompletion() && !ending) {
                ring.enter(1);
            } else {
                submit();
                noteCrowd();
            }
        }
    }

    /** What has come while the thread was in an access to the device need not have waited for it. */
    private void noteCrowd() {
        if (accessed && ring.hasCompletion()) {
            crowded = CROWD;
        }
        accessed = false;
    }

    /** Posts a read of the counter: what wakes the thread. */
    private void awaitWake() {
        makeRoom();
        ring.read(counter, scratch, 8, WAKE);
    }

    private void makeRoom() {
        if (ring.isFull()) {
            submit();
        }
    }

    /** Submits what was added. Replies among it are with the kernel when this returns. */
    private void submit() {
        for (UringEntry entry : unconfirmed) {
            // Others were served since it was made.
            entry.viewReply(replied);
            session.dispatcher().replying(replied, entry.answeredCall());
        }
        ring.enter(0);
        for (UringEntry entry : unconfirmed) {
            session.replied(entry.answeredCall());
        }
        unconfirmed.clear();
    }

    private void completed(long userData, int result) {
        if (userData == WAKE) {
            // Before the answered are looked for: who adds one after that wakes again.
            woken.set(false);
            awaitWake();
        } else if (result == 0) {
            handle(entries.get((int) userData));
        } else if (result == -ErrorNumbers.ENOTCONN || result == -ErrorNumbers.ECONNABORTED || session.isBroken()) {
            ending = true;
        } else {
            throw new IllegalStateException("FUSE over io_uring, CPU " + cpu + ": " + ErrorNumbers.describe(-result));
        }
    }

    private void handle(UringEntry entry) {
        Exchange x = exchange;
        entry.receive(x);
        session.received(x);
        boolean data = x.opcode() == Opcode.READ || x.opcode() == Opcode.WRITE;
        if (data && crowded > 0) {
            crowded--;
            hold();
            session.tryElsewhere(dataThreads, entry);
            return;
        }
        long beganNs = data ? System.nanoTime() : 0;
        Call call = new Call(x.unique(), x.uid(), x.gid(), x.pid(), false, Call.Interruption.NEVER);
        boolean answeredAtOnce = false;
        try {
            session.dispatcher().dispatch(x, call);
            accessed |= data && System.nanoTime() - beganNs > LONG_NS;
            session.replying(x);
            entry.complete(x, call);
            commit(entry);
            answeredAtOnce = true;
        } catch (MustWait e) {
            hold();
            session.startWaiting(x, entry);
        } finally {
            if (!answeredAtOnce) {
                session.replied(call);
            } else if (call.hasGrants()) {
                unconfirmed.add(entry);
            }
        }
    }

    private void commit(UringEntry entry) {
        if (entry.isLarge() && !entry.keptLarge) {
            if (large < LARGE_ENTRIES) {
                large++;
                entry.keepLarge();
            } else {
                entry.trim();
            }
        }
        command(COMMIT_AND_FETCH, entry, 0, 0, entry.commitId());
    }

    /** The entry stays occupied, by a thread that may be long about its request. */
    private void hold() {
        held++;
        if (entries.size() - held < RESERVE) {
            grow();
        }
    }

    private void grow() {
        int first = entries.size();
        try {
            addEntries(ENTRIES);
        } catch (LinuxException e) {
            LOG.log(System.Logger.Level.WARNING, held + " requests wait on CPU " + cpu + ", and there is no memory for more: " + e.getMessage());
            return;
        }
        for (UringEntry entry : entries.subList(first, entries.size())) {
            register(entry);
        }
    }

    private void commitAnswered() {
        for (UringEntry entry = answered.poll(); entry != null; entry = answered.poll()) {
            held--;
            commit(entry);
            if (entry.answeredCall().hasGrants()) {
                unconfirmed.add(entry);
            }
        }
    }

    private void end(boolean served) {
        ring.close();
        ended = true;
        discardAnswered();
        if (served) {
            for (UringEntry entry : unconfirmed) {
                session.replied(entry.answeredCall());
            }
            session.threadEnded(ending ? null : FuseSession.Ending.FAILED);
        }
    }

    private void discardAnswered() {
        for (UringEntry entry = answered.poll(); entry != null; entry = answered.poll()) {
            session.replied(entry.answeredCall());
        }
    }
}
