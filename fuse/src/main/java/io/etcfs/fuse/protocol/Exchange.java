package io.etcfs.fuse.protocol;

import io.etcfs.core.fs.Errno;
import java.lang.foreign.MemorySegment;

/**
 * A request in memory and the room for its reply: a view that its owner points at one request after the other. Not thread-safe.
 *
 * <p>The request is contiguous, its fuse_in_header at {@link #request}. The reply has its fuse_out_header at {@link #reply} and its body behind it, or
 * elsewhere. For READ and WRITE to do without copies, the bytes behind a WRITE's arguments (request + 80) and the reply's body are page-aligned.
 */
public final class Exchange {
    /** struct fuse_in_header. */
    public static final int IN_HEADER_BYTES = 40;
    /** struct fuse_out_header. */
    public static final int OUT_HEADER_BYTES = 16;
    /** From the start of a WRITE to its bytes: fuse_in_header and fuse_write_in. */
    public static final int WRITE_DATA_OFFSET = 80;
    /** How much larger than the read asked for the scratch memory of {@link io.etcfs.core.fs.Operations#read} is. */
    public static final int READ_SLACK_BYTES = 8192;
    private static final int SMALL_REPLY_BYTES = 4096;

    private final MemorySegment memory;
    private long request;
    private long reply;
    private long body;
    private int bodyCapacity;
    private int replyBytes;
    private int error;
    private MemorySegment data;

    public Exchange(MemorySegment memory) {
        this.memory = memory;
    }

    /** @param bodyCapacity bytes there are from reply + 16 on, at least {@link #bodyCapacityNeeded} */
    public void pointAt(long request, long reply, int bodyCapacity) {
        pointAt(request, reply, reply + OUT_HEADER_BYTES, bodyCapacity);
    }

    /**
     * With the reply in two places.
     *
     * @param body where the reply's body goes. It may be the room behind the request's arguments (its names, its data): they have been used up by then
     */
    public void pointAt(long request, long reply, long body, int bodyCapacity) {
        this.request = request;
        this.reply = reply;
        this.body = body;
        this.bodyCapacity = bodyCapacity;
        clear();
    }

    /** The same, of a request whose reply is there: complete, and all of its body at {@code body}. */
    public void pointAtReplied(long request, long reply, long body, int bodyBytes) {
        pointAt(request, reply, body, bodyBytes);
        error = -Wire.u32(memory, reply + 4);
        replyBytes = OUT_HEADER_BYTES + bodyBytes;
    }

    void clear() {
        replyBytes = 0;
        error = 0;
        data = null;
    }

    /** Room that the body of the reply to the request at {@code request} can take, in bytes. */
    public static int bodyCapacityNeeded(MemorySegment memory, long request) {
        Opcode opcode = Opcode.of(Wire.u32(memory, request + 4));
        long body = request + IN_HEADER_BYTES;
        return switch (opcode) {
            case READ -> Wire.u32(memory, body + 16) + READ_SLACK_BYTES;
            case READDIR, READDIRPLUS -> Math.max(Wire.u32(memory, body + 16), SMALL_REPLY_BYTES);
            case GETXATTR, LISTXATTR -> Math.max(Wire.u32(memory, body), SMALL_REPLY_BYTES);
            case null, default -> SMALL_REPLY_BYTES;
        };
    }

    MemorySegment memory() {
        return memory;
    }

    public long request() {
        return request;
    }

    public long reply() {
        return reply;
    }

    /** Where the reply's body is. */
    public long body() {
        return body;
    }

    int bodyCapacity() {
        return bodyCapacity;
    }

    /** Of the whole request, in bytes. */
    public int length() {
        return Wire.u32(memory, request);
    }

    /** Null if it is not known. */
    public Opcode opcode() {
        return Opcode.of(Wire.u32(memory, request + 4));
    }

    public int opcodeNumber() {
        return Wire.u32(memory, request + 4);
    }

    public long unique() {
        return Wire.u64(memory, request + 8);
    }

    public long nodeId() {
        return Wire.u64(memory, request + 16);
    }

    public int uid() {
        return Wire.u32(memory, request + 24);
    }

    public int gid() {
        return Wire.u32(memory, request + 28);
    }

    public int pid() {
        return Wire.u32(memory, request + 32);
    }

    /** fuse_interrupt_in: the request that an INTERRUPT is about. */
    public long interruptedUnique() {
        return Wire.u64(memory, request + IN_HEADER_BYTES);
    }

    /** Length of the header and of the body at {@link #body}, before {@link #data}; 0: the request takes no reply. */
    public int replyBytes() {
        return replyBytes;
    }

    /** Rest of the reply, to be written behind {@link #replyBytes} in the same writev(2); or null. */
    public MemorySegment data() {
        return data;
    }

    /** The errno that the reply carries, 0 for success. */
    public int error() {
        return error;
    }

    /** Makes the reply an error without a body. */
    public void fail(Errno errno) {
        fail(errno.number());
    }

    void fail(int errno) {
        error = errno;
        data = null;
        replyBytes = encodeError(memory, reply, unique(), errno);
    }

    /** Writes a reply without a body; returns its length. {@code errno} 0: success. */
    public static int encodeError(MemorySegment memory, long reply, long unique, int errno) {
        Wire.u32(memory, reply, OUT_HEADER_BYTES);
        Wire.u32(memory, reply + 4, -errno);
        Wire.u64(memory, reply + 8, unique);
        return OUT_HEADER_BYTES;
    }

    /** Makes the reply a success whose body, already in its place, has that length. */
    void succeed(int bodyBytes) {
        header(bodyBytes);
        replyBytes = OUT_HEADER_BYTES + bodyBytes;
    }

    /** Makes the reply a success with these bytes as its body. Bytes that already are in its place are not sent apart. */
    void succeed(MemorySegment bytes) {
        int length = (int) bytes.byteSize();
        if (length == 0 || (bytes.isNative() && memory.isNative() && bytes.address() == memory.address() + body)) {
            succeed(length);
            return;
        }
        if (!bytes.isNative()) {
            MemorySegment.copy(bytes, 0, memory, body, length);
            succeed(length);
            return;
        }
        header(length);
        replyBytes = OUT_HEADER_BYTES;
        data = bytes;
    }

    private void header(int bodyBytes) {
        error = 0;
        data = null;
        Wire.u32(memory, reply, OUT_HEADER_BYTES + bodyBytes);
        Wire.u32(memory, reply + 4, 0);
        Wire.u64(memory, reply + 8, unique());
    }
}
