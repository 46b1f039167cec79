package io.etcfs.linux.mount;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.etcfs.core.fs.Call;
import io.etcfs.fuse.protocol.Exchange;
import io.etcfs.fuse.protocol.Negotiation;
import io.etcfs.linux.call.MemoryMaps;
import io.etcfs.linux.call.Native;
import java.lang.foreign.MemorySegment;

/**
 * Memory that the kernel puts one request after the other into, and takes their replies from: struct fuse_uring_req_header of linux/fuse.h, and a payload.
 * It belongs to the kernel, to the queue's thread, or to the thread that goes on with a waiting request, and is passed on through the rings or through
 * {@link UringQueue#answered}.
 *
 * <p>A request comes in three parts: its header, the structure of its operation, and the payload, which has names and data. The first two are copied to just
 * before the payload, so that the request is contiguous and a WRITE's bytes are page-aligned. The reply's header goes where the request's was, its body into
 * the payload.
 *
 * <pre>
 * page 0:  0 header, in and out    128 structure    256 flags, commit id, payload bytes    512 errno    ... copy of header and structure
 * page 1:  payload
 * </pre>
 */
final class UringEntry implements FuseTransport.Pending {
    static final int PAYLOAD_BYTES = Negotiation.MAX_WRITE_BYTES + Exchange.READ_SLACK_BYTES;
    static final int VECTORS_BYTES = 32;
    /** More than its pages: those that keep their memory use a huge page. */
    static final long BYTES = MemoryMaps.HUGE_PAGE_BYTES;

    private static final int STRUCTURE_AT = 128;
    private static final int STRUCTURE_BYTES = 128;
    private static final int COMMIT_ID_AT = 264;
    private static final int PAYLOAD_BYTES_AT = 272;
    private static final int HEADERS_BYTES = 288;
    private static final int ERRNO_AT = 512;
    /** Payload up to this size always stays in memory for the next request. */
    private static final int KEEP_BYTES = 64 << 10;
    private static final MemorySegment MEMORY = Native.MEMORY;

    final int index;
    /** The queue's. */
    boolean keptLarge;
    private final UringQueue queue;
    private final long headers;
    private final long payload;
    private final MemorySegment errno;
    private long request;
    private Call answeredCall;
    private int touchedBytes;

    /** @param base a multiple of {@link #BYTES} */
    UringEntry(UringQueue queue, int index, long base) {
        this.queue = queue;
        this.index = index;
        this.headers = base;
        this.payload = base + Native.PAGE_BYTES;
        this.errno = MEMORY.asSlice(base + ERRNO_AT, 4);
    }

    /** Writes two struct iovec, of the headers and of the payload. */
    void describe(long vectors) {
        MEMORY.set(JAVA_LONG, vectors, headers);
        MEMORY.set(JAVA_LONG, vectors + 8, HEADERS_BYTES);
        MEMORY.set(JAVA_LONG, vectors + 16, payload);
        MEMORY.set(JAVA_LONG, vectors + 24, PAYLOAD_BYTES);
    }

    /** For calls of the thread that has the entry. */
    MemorySegment errno() {
        return errno;
    }

    /** A request is there. */
    void receive(Exchange exchange) {
        int payloadBytes = MEMORY.get(JAVA_INT, headers + PAYLOAD_BYTES_AT);
        int structureBytes = MEMORY.get(JAVA_INT, headers) - Exchange.IN_HEADER_BYTES - payloadBytes;
        if (structureBytes < 0 || structureBytes > STRUCTURE_BYTES) {
            throw new IllegalStateException("a request of " + MEMORY.get(JAVA_INT, headers) + " bytes with a payload of " + payloadBytes);
        }
        request = payload - structureBytes - Exchange.IN_HEADER_BYTES;
        MemorySegment.copy(MEMORY, headers, MEMORY, request, Exchange.IN_HEADER_BYTES);
        MemorySegment.copy(MEMORY, headers + STRUCTURE_AT, MEMORY, request + Exchange.IN_HEADER_BYTES, structureBytes);
        touchedBytes = Math.max(touchedBytes, payloadBytes);
        view(exchange);
    }

    @Override
    public void view(Exchange exchange) {
        exchange.pointAt(request, headers, payload, PAYLOAD_BYTES);
    }

    /** What identifies the request when its reply is committed. */
    long commitId() {
        return MEMORY.get(JAVA_LONG, headers + COMMIT_ID_AT);
    }

    /** Puts the reply where the kernel looks for it. */
    void complete(Exchange exchange, Call call) {
        answeredCall = call;
        if (exchange.replyBytes() == 0) {
            // Unlike on /dev/fuse, here each request is answered.
            Exchange.encodeError(MEMORY, headers, exchange.unique(), 0);
            MEMORY.set(JAVA_INT, headers + PAYLOAD_BYTES_AT, 0);
            return;
        }
        int bodyBytes = exchange.replyBytes() - Exchange.OUT_HEADER_BYTES;
        MemorySegment data = exchange.data();
        if (data != null) {
            MemorySegment.copy(data, 0, MEMORY, payload + bodyBytes, data.byteSize());
            bodyBytes += (int) data.byteSize();
        }
        MEMORY.set(JAVA_INT, headers + PAYLOAD_BYTES_AT, bodyBytes);
        touchedBytes = Math.max(touchedBytes, bodyBytes);
    }

    /** Whether it takes much memory. */
    boolean isLarge() {
        return touchedBytes > KEEP_BYTES;
    }

    /** From now on its memory stays. */
    void keepLarge() {
        keptLarge = true;
        MemoryMaps.useHugePages(headers, BYTES);
    }

    /** Gives memory back that the last requests have used, apart from that of the reply. */
    void trim() {
        int kept = Math.max(KEEP_BYTES, (MEMORY.get(JAVA_INT, headers + PAYLOAD_BYTES_AT) + Native.PAGE_BYTES - 1) & -Native.PAGE_BYTES);
        if (touchedBytes > kept) {
            // READ uses its slack, too.
            MemoryMaps.discard(payload + kept, PAYLOAD_BYTES - kept);
            touchedBytes = kept;
        }
    }

    @Override
    public void reply(Exchange exchange, Call call) {
        complete(exchange, call);
        queue.answered(this);
    }

    /** Of the reply that was given last. */
    Call answeredCall() {
        return answeredCall;
    }

    /** The reply that is there, and that the kernel does not have yet. */
    void viewReply(Exchange exchange) {
        exchange.pointAtReplied(request, headers, payload, MEMORY.get(JAVA_INT, headers + PAYLOAD_BYTES_AT));
    }

    /** The queue has it back with the reply; without one, the kernel's request stays in it. */
    @Override
    public void end() {}
}
