package io.etcfs.linux.mount;

import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.MustWait;
import io.etcfs.fuse.protocol.Exchange;
import io.etcfs.fuse.protocol.Negotiation;
import io.etcfs.fuse.protocol.Opcode;
import io.etcfs.linux.call.Descriptors;
import io.etcfs.linux.call.ErrorNumbers;
import io.etcfs.linux.call.Native;
import java.lang.foreign.MemorySegment;

/** A thread that reads requests from one descriptor and answers them, one at a time, as far as they can be answered at once. */
final class FuseReader implements Runnable {
    /** A request from this size on leaves its block to the virtual thread that goes on with it; of a smaller one the bytes are copied. */
    private static final int HAND_OVER_BYTES = 256 << 10;

    private final FuseSession session;
    private final BlockPool pool;
    private final int descriptor;
    private final Exchange exchange = new Exchange(Native.MEMORY);

    FuseReader(FuseSession session, BlockPool pool, int descriptor) {
        this.session = session;
        this.pool = pool;
        this.descriptor = descriptor;
    }

    @Override
    public void run() {
        Block request = pool.takeLargest();
        Block reply = pool.takeLargest();
        FuseSession.Ending ending = FuseSession.Ending.FAILED;
        try {
            while (true) {
                long result = Descriptors.read(descriptor, request.request(), (long) Exchange.WRITE_DATA_OFFSET + Negotiation.MAX_WRITE_BYTES, request.errno);
                if (result > 0) {
                    request = handle(request, reply);
                } else if (result == -ErrorNumbers.ENODEV) {
                    ending = FuseSession.Ending.UNMOUNTED;
                    return;
                } else if (result == -ErrorNumbers.ECONNABORTED) {
                    ending = FuseSession.Ending.ABORTED;
                    return;
                } else if (result != -ErrorNumbers.EINTR && result != -ErrorNumbers.EAGAIN && result != -ErrorNumbers.ENOENT) {
                    throw new IllegalStateException("read of /dev/fuse: " + ErrorNumbers.describe((int) -result));
                }
            }
        } finally {
            pool.giveBack(request);
            pool.giveBack(reply);
            session.threadEnded(ending);
        }
    }

    /** Returns the block for the next request. */
    private Block handle(Block request, Block reply) {
        Exchange x = exchange;
        x.pointAt(request.request(), reply.reply(), reply.capacity);
        session.received(x);
        if (x.opcode() == Opcode.INTERRUPT) {
            session.interrupt(x.interruptedUnique());
            return request;
        }
        if (x.opcode() == Opcode.READ) {
            reply.prepareFor(Exchange.bodyCapacityNeeded(Native.MEMORY, request.request()));
        } else {
            request.prepareFor(x.length());
        }
        Call call = new Call(x.unique(), x.uid(), x.gid(), x.pid(), false, Call.Interruption.NEVER);
        try {
            session.dispatcher().dispatch(x, call);
            session.replying(x);
            session.reply(descriptor, x, call, reply);
            return request;
        } catch (MustWait e) {
            return handOver(request);
        } finally {
            session.replied(call);
        }
    }

    private Block handOver(Block request) {
        int length = exchange.length();
        if (length >= HAND_OVER_BYTES) {
            Block next = pool.takeLargest();
            session.startWaiting(exchange, new DeviceRequest(session, pool, request, descriptor));
            return next;
        }
        Block copy = pool.take(length);
        MemorySegment.copy(Native.MEMORY, request.request(), Native.MEMORY, copy.request(), length);
        session.startWaiting(exchange, new DeviceRequest(session, pool, copy, descriptor));
        return request;
    }
}
