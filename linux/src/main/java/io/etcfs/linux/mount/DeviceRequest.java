package io.etcfs.linux.mount;

import io.etcfs.core.fs.Call;
import io.etcfs.fuse.protocol.Exchange;
import io.etcfs.linux.call.Native;

/** A request that was read from a descriptor and waits. It has its block, or a copy of it, to itself. */
final class DeviceRequest implements FuseTransport.Pending {
    private final FuseSession session;
    private final BlockPool pool;
    private final Block request;
    private final int descriptor;
    private Block reply;

    DeviceRequest(FuseSession session, BlockPool pool, Block request, int descriptor) {
        this.session = session;
        this.pool = pool;
        this.request = request;
        this.descriptor = descriptor;
    }

    @Override
    public void view(Exchange exchange) {
        int bytes = Exchange.bodyCapacityNeeded(Native.MEMORY, request.request());
        reply = pool.take(bytes);
        reply.prepareFor(bytes);
        exchange.pointAt(request.request(), reply.reply(), reply.capacity);
    }

    @Override
    public void reply(Exchange exchange, Call call) {
        session.reply(descriptor, exchange, call, reply);
        session.replied(call);
    }

    @Override
    public void end() {
        pool.giveBack(request);
        if (reply != null) {
            pool.giveBack(reply);
        }
    }
}
