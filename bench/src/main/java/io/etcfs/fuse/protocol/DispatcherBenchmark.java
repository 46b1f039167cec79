package io.etcfs.fuse.protocol;

import io.etcfs.core.fs.Call;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/** A request taken apart and its reply written, with a filesystem that answers at once. */
@State(Scope.Thread)
public class DispatcherBenchmark {
    private static final int BODY_BYTES = 1 << 17;
    /** Behind a request of up to 4 KiB of data, so that the body is page-aligned. */
    private static final long REPLY = 3 * 4096 - Exchange.OUT_HEADER_BYTES;
    private static final long ARGUMENT = Exchange.IN_HEADER_BYTES;
    private static final byte[] NAME = "0123456789abcdef\0".getBytes(StandardCharsets.US_ASCII);

    private final MemorySegment memory = Arena.global().allocate(3 * 4096 + BODY_BYTES + Exchange.READ_SLACK_BYTES, 4096);
    private final Exchange exchange = new Exchange(memory);
    private final Call call = new Call(77, 1000, 1000, 4711, false, Call.Interruption.NEVER);
    private final Dispatcher dispatcher = new Dispatcher(new InstantOperations(), new Negotiation(Negotiation.NEWEST_MINOR, 0, 0, 0, 0, 0, 0, 1, false));

    private int dispatch(Opcode opcode, int argumentBytes) {
        Wire.u32(memory, 0, Exchange.IN_HEADER_BYTES + argumentBytes);
        Wire.u32(memory, 4, opcode.number());
        Wire.u64(memory, 8, 77);
        Wire.u64(memory, 16, 4242);
        exchange.pointAt(0, REPLY, BODY_BYTES);
        dispatcher.dispatch(exchange, call);
        if (exchange.error() != 0) {
            throw new IllegalStateException(opcode + " answers " + exchange.error());
        }
        return exchange.replyBytes();
    }

    /** struct fuse_read_in, and the first fields of fuse_write_in: handle, offset, size. */
    private void range(int size) {
        Wire.u64(memory, ARGUMENT, 1);
        Wire.u64(memory, ARGUMENT + 8, 0);
        Wire.u32(memory, ARGUMENT + 16, size);
        Wire.u32(memory, ARGUMENT + 20, 0);
    }

    @Benchmark
    public int lookup() {
        Wire.bytes(memory, ARGUMENT, NAME);
        return dispatch(Opcode.LOOKUP, NAME.length);
    }

    @Benchmark
    public int getattr() {
        Wire.u32(memory, ARGUMENT, 0);
        return dispatch(Opcode.GETATTR, 16);
    }

    @Benchmark
    public int create() {
        Wire.u64(memory, ARGUMENT, 0);
        Wire.u64(memory, ARGUMENT + 8, 0);
        Wire.bytes(memory, ARGUMENT + 16, NAME);
        return dispatch(Opcode.CREATE, 16 + NAME.length);
    }

    @Benchmark
    public int read4k() {
        range(4096);
        return dispatch(Opcode.READ, 40);
    }

    @Benchmark
    public int write4k() {
        range(4096);
        return dispatch(Opcode.WRITE, 40 + 4096);
    }

    /** {@value InstantOperations#NAMES} names with attributes. */
    @Benchmark
    public int readdirplus() {
        range(BODY_BYTES);
        return dispatch(Opcode.READDIRPLUS, 40);
    }
}
