package io.etcfs.linux.mount;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.etcfs.linux.call.Descriptors;
import io.etcfs.linux.call.ErrorNumbers;
import io.etcfs.linux.call.LinuxException;
import io.etcfs.linux.call.MemoryMaps;
import io.etcfs.linux.call.Native;
import io.etcfs.linux.call.UringCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;

/**
 * An io_uring with large submission entries (linux/io_uring.h). Of the thread that opens it, which alone may use and close it: completions come only while that
 * thread is in {@link #enter}.
 *
 * <p>The kernel and we are at the two ends of each ring: an index that one side advances is stored with release after what it covers was written or used up,
 * and loaded with acquire by the other before it looks.
 */
final class UringRing {
    static final int SUBMISSIONS = 64;
    /** What does not fit is kept by the kernel until there is room. */
    private static final int COMPLETIONS = 1024;
    private static final int FLAGS = UringCalls.SETUP_CQSIZE | UringCalls.SETUP_CLAMP | UringCalls.SETUP_SQE128 | UringCalls.SETUP_SINGLE_ISSUER
            | UringCalls.SETUP_DEFER_TASKRUN;
    private static final int SUBMISSION_BYTES = 128;
    private static final int COMPLETION_BYTES = 16;

    private static final int OP_READ = 22;
    private static final int OP_URING_CMD = 46;

    private static final VarHandle INDEX = JAVA_INT.varHandle();
    private static final MemorySegment MEMORY = Native.MEMORY;

    private final int descriptor;
    private final long rings;
    private final long ringsBytes;
    private final long submissions;
    private final long submissionsBytes;
    private final long submissionHead;
    private final long submissionTail;
    private final int submissionCount;
    private final long completionHead;
    private final long completionTail;
    private final int completionMask;
    private final long completions;
    private final MemorySegment errno = Arena.ofAuto().allocate(4, 4);
    /** Of the entries written; those up to the one that the kernel sees have been published. */
    private int tail;
    private int head;

    private UringRing(int descriptor, MemorySegment params, long rings, long ringsBytes, long submissions, long submissionsBytes) {
        this.descriptor = descriptor;
        this.rings = rings;
        this.ringsBytes = ringsBytes;
        this.submissions = submissions;
        this.submissionsBytes = submissionsBytes;
        this.submissionCount = params.get(JAVA_INT, 0);
        this.submissionHead = rings + params.get(JAVA_INT, 40);
        this.submissionTail = rings + params.get(JAVA_INT, 44);
        this.completionHead = rings + params.get(JAVA_INT, 80);
        this.completionTail = rings + params.get(JAVA_INT, 84);
        this.completionMask = MEMORY.get(JAVA_INT, rings + params.get(JAVA_INT, 88));
        this.completions = rings + params.get(JAVA_INT, 100);
        // The array of indices between ring and entries is not used for reordering.
        long array = rings + params.get(JAVA_INT, 64);
        for (int i = 0; i < submissionCount; i++) {
            MEMORY.set(JAVA_INT, array + 4L * i, i);
        }
    }

    /** @throws LinuxException EPERM: forbidden by kernel.io_uring_disabled, or by a container's system call filter; ENOSYS; ENOMEM */
    static UringRing open() throws LinuxException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment params = arena.allocate(120, 8);
            params.fill((byte) 0);
            params.set(JAVA_INT, 4, COMPLETIONS);
            params.set(JAVA_INT, 8, FLAGS);
            int fd = LinuxException.check(UringCalls.setup(SUBMISSIONS, params.address()), "io_uring_setup");
            long rings = 0;
            long ringsBytes = Math.max(params.get(JAVA_INT, 64) + 4L * params.get(JAVA_INT, 0), params.get(JAVA_INT, 100) + (long) COMPLETION_BYTES * params.get(JAVA_INT, 4));
            try {
                if ((params.get(JAVA_INT, 20) & UringCalls.FEAT_SINGLE_MMAP) == 0) {
                    throw new LinuxException(ErrorNumbers.EINVAL, "io_uring_setup");
                }
                rings = mapped(MemoryMaps.share(fd, UringCalls.OFFSET_RINGS, ringsBytes));
                long submissionsBytes = (long) SUBMISSION_BYTES * params.get(JAVA_INT, 0);
                long submissions = mapped(MemoryMaps.share(fd, UringCalls.OFFSET_SUBMISSIONS, submissionsBytes));
                return new UringRing(fd, params, rings, ringsBytes, submissions, submissionsBytes);
            } catch (LinuxException e) {
                if (rings != 0) {
                    MemoryMaps.unmap(rings, ringsBytes);
                }
                Descriptors.close(fd);
                throw e;
            }
        }
    }

    private static long mapped(long address) throws LinuxException {
        LinuxException.check((int) Math.min(address, 0), "mmap of an io_uring");
        return address;
    }

    /**
     * Adds a command for a descriptor. There is room for it. Nothing is submitted before {@link #enter}.
     *
     * @param address and {@code length} as the command wants them
     * @return where the command's own 80 bytes go, all of them 0
     */
    long command(int fd, int command, long address, int length, long userData) {
        long at = next();
        MEMORY.set(JAVA_BYTE, at, (byte) OP_URING_CMD);
        MEMORY.set(JAVA_INT, at + 4, fd);
        MEMORY.set(JAVA_INT, at + 8, command);
        MEMORY.set(JAVA_LONG, at + 16, address);
        MEMORY.set(JAVA_INT, at + 24, length);
        MEMORY.set(JAVA_LONG, at + 32, userData);
        tail++;
        return at + 48;
    }

    /** Adds a read from something that has no position. There is room for it. */
    void read(int fd, long address, int bytes, long userData) {
        long at = next();
        MEMORY.set(JAVA_BYTE, at, (byte) OP_READ);
        MEMORY.set(JAVA_INT, at + 4, fd);
        MEMORY.set(JAVA_LONG, at + 8, -1L);
        MEMORY.set(JAVA_LONG, at + 16, address);
        MEMORY.set(JAVA_INT, at + 24, bytes);
        MEMORY.set(JAVA_LONG, at + 32, userData);
        tail++;
    }

    private long next() {
        if (isFull()) {
            throw new IllegalStateException("no room in the ring");
        }
        long at = submissions + (long) SUBMISSION_BYTES * (tail & submissionCount - 1);
        MEMORY.asSlice(at, SUBMISSION_BYTES).fill((byte) 0);
        return at;
    }

    /** There is room again after {@link #enter}. */
    boolean isFull() {
        return unsubmitted() == submissionCount;
    }

    private int unsubmitted() {
        return tail - (int) INDEX.getAcquire(MEMORY, submissionHead);
    }

    /** Submits all that was added, and waits for that many completions, or not at all. May return before there are any. */
    void enter(int minComplete) {
        INDEX.setRelease(MEMORY, submissionTail, tail);
        int result;
        do {
            result = UringCalls.enter(descriptor, unsubmitted(), minComplete, UringCalls.ENTER_GETEVENTS, errno);
            // EAGAIN, EBUSY: the kernel is short of memory, or of room for completions, which we are about to take.
            if (result < 0 && result != -ErrorNumbers.EINTR && result != -ErrorNumbers.EAGAIN && result != -ErrorNumbers.EBUSY) {
                throw new IllegalStateException("io_uring_enter: " + ErrorNumbers.describe(-result));
            }
        } while (unsubmitted() > 0);
    }

    boolean hasCompletion() {
        return head != (int) INDEX.getAcquire(MEMORY, completionTail);
    }

    /** Of the first completion. */
    long userData() {
        return MEMORY.get(JAVA_LONG, first());
    }

    /** Of the first completion: not negative, or minus an errno. */
    int result() {
        return MEMORY.get(JAVA_INT, first() + 8);
    }

    /** Among the completions that are there: minus an errno, or 0. */
    int firstFailure() {
        int end = (int) INDEX.getAcquire(MEMORY, completionTail);
        for (int at = head; at != end; at++) {
            int result = MEMORY.get(JAVA_INT, completions + (long) COMPLETION_BYTES * (at & completionMask) + 8);
            if (result < 0) {
                return result;
            }
        }
        return 0;
    }

    private long first() {
        return completions + (long) COMPLETION_BYTES * (head & completionMask);
    }

    void removeFirst() {
        head++;
        INDEX.setRelease(MEMORY, completionHead, head);
    }

    /** Cancels what is under way. */
    void close() {
        MemoryMaps.unmap(submissions, submissionsBytes);
        MemoryMaps.unmap(rings, ringsBytes);
        Descriptors.close(descriptor);
    }
}
