package io.etcfs.linux.mount;

import io.etcfs.fuse.protocol.Exchange;
import io.etcfs.fuse.protocol.InitRequest;
import io.etcfs.fuse.protocol.Negotiation;
import io.etcfs.fuse.protocol.Opcode;
import io.etcfs.fuse.protocol.UnsupportedKernelException;
import io.etcfs.linux.call.Descriptors;
import io.etcfs.linux.call.ErrorNumbers;
import io.etcfs.linux.call.LinuxException;
import io.etcfs.linux.call.Native;
import java.io.IOException;

/** INIT, the first request of a mount: between its arrival and its answer, what can fail is set up. */
final class InitHandshake implements AutoCloseable {
    private final FuseConnection connection;
    private final BlockPool pool;
    private final Block request;
    private final Block reply;
    private final Exchange exchange = new Exchange(Native.MEMORY);
    private InitRequest init;

    private InitHandshake(FuseConnection connection, BlockPool pool) {
        this.connection = connection;
        this.pool = pool;
        this.request = pool.takeLargest();
        this.reply = pool.take(Native.PAGE_BYTES);
    }

    /** Waits for INIT. A kernel of a later major version is told ours, and asks again. */
    static InitHandshake await(FuseConnection connection, BlockPool pool) throws IOException, UnsupportedKernelException {
        InitHandshake handshake = new InitHandshake(connection, pool);
        boolean complete = false;
        try {
            handshake.receive();
            while (handshake.init.major() > Negotiation.MAJOR) {
                handshake.answer(0);
                handshake.receive();
            }
            complete = true;
            return handshake;
        } finally {
            if (!complete) {
                handshake.close();
            }
        }
    }

    private void receive() throws IOException {
        long result;
        do {
            result = Descriptors.read(connection.mounted(), request.request(), request.requestCapacity(), request.errno);
        } while (result == -ErrorNumbers.EINTR || result == -ErrorNumbers.EAGAIN);
        LinuxException.check((int) result, "read of INIT");
        exchange.pointAt(request.request(), reply.reply(), reply.capacity);
        if (exchange.opcode() != Opcode.INIT) {
            throw new IOException("the first request is not INIT but opcode " + exchange.opcodeNumber());
        }
        init = InitRequest.decode(Native.MEMORY, request.request());
    }

    /** {@code flag}: of {@link io.etcfs.fuse.protocol.InitFlags}. */
    boolean offers(long flag) {
        return (init.flags() & flag) != 0;
    }

    /** From now on the kernel sends requests. */
    Negotiation answer(long wanted) throws IOException, UnsupportedKernelException {
        Negotiation negotiation = Negotiation.negotiate(init, wanted);
        int length = negotiation.encode(Native.MEMORY, reply.reply(), exchange.unique());
        LinuxException.check((int) FuseConnection.send(connection.mounted(), reply.reply(), length, reply.errno), "answer to INIT");
        return negotiation;
    }

    @Override
    public void close() {
        pool.giveBack(request);
        pool.giveBack(reply);
    }
}
