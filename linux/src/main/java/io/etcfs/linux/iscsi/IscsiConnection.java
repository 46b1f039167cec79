package io.etcfs.linux.iscsi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.etcfs.core.device.DeviceException;
import io.etcfs.linux.call.Descriptors;
import io.etcfs.linux.call.ErrorNumbers;
import io.etcfs.linux.call.Native;
import io.etcfs.linux.call.UringCalls;
import io.etcfs.linux.scsi.ScsiCommand;
import io.etcfs.linux.scsi.ScsiResult;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.ReentrantLock;

/**
 * One login, served by a thread of its own that has libiscsi's context to itself. It is never repaired: once an answer stayed out or the connection ended, every command
 * under way is {@link ScsiResult#LOST} and so is each later one.
 */
final class IscsiConnection {
    private static final int COMMAND_TIMEOUT_S = 30;
    private static final int TCP_TIMEOUT_MS = 10_000;
    /** libiscsi's own statuses begin here (SCSI_STATUS_CANCELLED): there was no answer. */
    private static final int NO_ANSWER = 0x0f000000;
    private static final int RESET_DONE = 0;
    /** In place of a user of CHAP. */
    private static final String NOBODY = "nobody";
    /** Between looks at commands that have timed out. */
    private static final int POLL_MS = 250;
    private static final int MOST_UNDER_WAY = 64;

    private static final class Request {
        /** Null: a reset of the unit. */
        final ScsiCommand command;
        final CompletableFuture<ScsiResult> result = new CompletableFuture<>();
        MemorySegment task = MemorySegment.NULL;

        Request(ScsiCommand command) {
            this.command = command;
        }
    }

    private final LibIscsi library = LibIscsi.load();
    private final IscsiAddress address;
    private final String initiator;
    private final int isid;
    private final ConcurrentLinkedQueue<Request> queue = new ConcurrentLinkedQueue<>();
    private final CompletableFuture<Void> connected = new CompletableFuture<>();
    private final CompletableFuture<Void> ended = new CompletableFuture<>();
    private final int wake;
    private volatile boolean closing;
    private final ReentrantLock lock = new ReentrantLock();
    /** Nothing is taken from the queue any more, and nobody may wake the thread. Under the lock. */
    private boolean over;

    // The thread's own.
    private final Map<Long, Request> underWay = new HashMap<>();
    private long lastId;
    private boolean broken;
    private MemorySegment context = MemorySegment.NULL;
    private MemorySegment callback;

    private IscsiConnection(IscsiAddress address, String initiator, int isid) {
        this.address = address;
        this.initiator = initiator;
        this.isid = isid;
        this.wake = UringCalls.eventCounter();
    }

    /**
     * Logs in. A login of the same initiator name and {@code isid} ends the one before it at the target.
     *
     * @throws DeviceException it was refused, or nobody answered in time
     */
    static IscsiConnection open(IscsiAddress address, String initiator, int isid) throws DeviceException {
        IscsiConnection c = new IscsiConnection(address, initiator, isid);
        Thread.ofPlatform().daemon().name("iscsi").start(c::serve);
        try {
            c.connected.join();
        } catch (CompletionException e) {
            throw new DeviceException(ErrorNumbers.ENOTCONN, address + ": " + e.getCause().getMessage());
        }
        return c;
    }

    /** Waits for the answer. */
    ScsiResult execute(ScsiCommand command) {
        return submit(new Request(command));
    }

    /** Of the unit: GOOD, LOST, or CHECK CONDITION if the target does not do that. */
    ScsiResult reset() {
        return submit(new Request(null));
    }

    private ScsiResult submit(Request request) {
        queue.add(request);
        return signal() ? request.result.join() : lost();
    }

    private static ScsiResult lost() {
        return new ScsiResult(ScsiResult.LOST, 0, 0);
    }

    /** False: there is nobody to be woken any more. */
    private boolean signal() {
        lock.lock();
        try (Arena arena = Arena.ofConfined()) {
            if (!over) {
                MemorySegment one = arena.allocate(JAVA_LONG);
                one.set(JAVA_LONG, 0, 1);
                Descriptors.write(wake, one.address(), 8);
            }
            return !over;
        } finally {
            lock.unlock();
        }
    }

    /** Ends it; returns when libiscsi touches no command's memory any more. */
    void close() {
        closing = true;
        signal();
        ended.join();
    }

    // ---- the thread

    private void serve() {
        try (Arena arena = Arena.ofConfined()) {
            callback = LibIscsi.stub(this::done, arena);
            serve(arena);
        } finally {
            end();
        }
    }

    private void serve(Arena arena) {
        try {
            String refusal = login(NOBODY);
            if (refusal != null) {
                connected.completeExceptionally(new IllegalStateException(refusal));
            } else {
                connected.complete(null);
                loop(arena);
            }
        } catch (RuntimeException | Error e) {
            connected.completeExceptionally(e);
            System.getLogger(IscsiConnection.class.getName()).log(System.Logger.Level.ERROR, "the connection to " + address + " ended", e);
        } finally {
            if (context.address() != 0) {
                // Calls back what is under way.
                library.destroyContext(context);
            }
        }
    }

    /**
     * The security stage is gone through though there is nothing to be negotiated: only there tgt looks for a session that this one replaces (login_security_done), and without it
     * that would go on beside this one. A target that would rather have CHAP is asked again without; such a one is not tgt, which has either CHAP or none.
     *
     * @return why not; null: logged in
     */
    private String login(String user) {
        context = library.createContext(initiator, isid, user, address.target(), COMMAND_TIMEOUT_S, TCP_TIMEOUT_MS);
        if (context.address() == 0) {
            return "no memory for a connection";
        }
        if (library.connect(context, address.portal(), address.lun()) == 0) {
            return null;
        }
        String refusal = library.error(context);
        if (user == null || !LibIscsi.authenticationFailed(refusal)) {
            return refusal;
        }
        library.destroyContext(context);
        return login(null);
    }

    private void loop(Arena arena) {
        MemorySegment counter = arena.allocate(JAVA_LONG);
        Descriptors.Poll poll = new Descriptors.Poll(arena, 2);
        while (!broken && !closing) {
            begin();
            int fd = library.fd(context);
            poll.set(0, fd, library.whichEvents(context) | Descriptors.POLLRDHUP);
            poll.set(1, wake, Descriptors.POLLIN);
            poll.await(POLL_MS);
            if (poll.events(1) != 0) {
                Descriptors.read(wake, counter.address(), 8);
            }
            int events = poll.events(0);
            // What came before the other side hung up is taken first: it may answer commands.
            broken |= library.service(context, events & ~Descriptors.POLLRDHUP) < 0 || (events & (Descriptors.POLLERR | Descriptors.POLLHUP | Descriptors.POLLRDHUP)) != 0;
        }
    }

    private void begin() {
        Request r;
        while (underWay.size() < MOST_UNDER_WAY && (r = queue.poll()) != null) {
            long id = ++lastId;
            underWay.put(id, r);
            if (begin(r, id) < 0) {
                underWay.remove(id);
                broken = true;
                free(r);
                r.result.complete(lost());
            }
        }
    }

    private int begin(Request r, long id) {
        if (r.command == null) {
            return library.resetUnit(context, address.lun(), callback, id);
        }
        MemorySegment bytes = r.command.data();
        r.task = library.createTask(r.command.cdb(), switch (r.command.direction()) {
            case NONE -> LibIscsi.XFER_NONE;
            case IN -> LibIscsi.XFER_READ;
            case OUT -> LibIscsi.XFER_WRITE;
        }, (int) bytes.byteSize());
        if (r.task.address() == 0) {
            return -1;
        }
        if (r.command.direction() == ScsiCommand.Direction.IN && library.addDataIn(r.task, bytes.address(), (int) bytes.byteSize()) < 0) {
            return -1;
        }
        if (r.command.direction() != ScsiCommand.Direction.OUT) {
            return library.command(context, address.lun(), r.task, callback, MemorySegment.NULL, id);
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment data = arena.allocate(16, 8);
            data.set(JAVA_LONG, 0, bytes.byteSize());
            data.set(JAVA_LONG, 8, bytes.address());
            return library.command(context, address.lun(), r.task, callback, data, id);
        }
    }

    /** Called by libiscsi; nothing may be thrown through it. */
    private void done(int status, MemorySegment data, long id) {
        Request r = underWay.remove(id);
        if (r == null) {
            return;
        }
        ScsiResult result;
        if (status >= NO_ANSWER) {
            broken = true;
            result = lost();
        } else if (r.command == null) {
            result = data.address() != 0 && Native.MEMORY.get(JAVA_INT, data.address()) == RESET_DONE ? new ScsiResult(status, 0, 0) : new ScsiResult(ScsiResult.CHECK_CONDITION, 0, 0);
        } else if (status == ScsiResult.CHECK_CONDITION) {
            result = new ScsiResult(status, LibIscsi.senseKey(r.task), LibIscsi.senseCode(r.task));
        } else {
            result = new ScsiResult(status, 0, 0);
        }
        free(r);
        r.result.complete(result);
    }

    private void free(Request r) {
        if (r.task.address() != 0) {
            library.freeTask(r.task);
            r.task = MemorySegment.NULL;
        }
    }

    private void end() {
        lock.lock();
        try {
            over = true;
        } finally {
            lock.unlock();
        }
        underWay.values().forEach(r -> r.result.complete(lost()));
        for (Request r; (r = queue.poll()) != null; ) {
            r.result.complete(lost());
        }
        Descriptors.close(wake);
        ended.complete(null);
    }
}
