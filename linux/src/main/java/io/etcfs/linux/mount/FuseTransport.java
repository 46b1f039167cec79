package io.etcfs.linux.mount;

import io.etcfs.core.fs.Call;
import io.etcfs.fuse.protocol.Dispatcher;
import io.etcfs.fuse.protocol.Exchange;
import io.etcfs.linux.call.LinuxException;

/**
 * Takes requests from the kernel, has them tried at once, and gives the replies back. Its threads tell the session when they end.
 *
 * <p>INIT has been answered before, and notifications go their own way. The {@link Dispatcher#replied} of a call comes after its reply is with the kernel.
 */
interface FuseTransport {
    /** DEV or URING. */
    Transport kind();

    /** Threads that will each call {@link FuseSession#threadEnded}, once, after {@link #start} succeeded. */
    int threads();

    /**
     * Begins to take requests.
     *
     * @throws LinuxException none of the threads runs
     */
    void start(FuseSession session) throws LinuxException;

    /** In place of {@link #start}, or after it failed. */
    void cancel();

    /** The kernel has ended the mount: threads that can't see it themselves are to end. */
    void mountEnded();

    /** An interrupt came for a request that is not among those that wait: it has ended, is about to wait, or is waiting by now. */
    void interruptEarly(FuseSession session, long unique);

    /** Whether the kernel can fail to send an interrupt: one whose signal came just before the request was taken. */
    boolean losesInterrupts();

    /** Address space of the memory that requests are using now, apart from the pool's, in bytes. */
    long memoryBytes();

    /** A request that has to wait: its memory, and the way back. Used by one thread. */
    interface Pending {
        /** Points at the request and at room for its reply. */
        void view(Exchange exchange);

        /** Sends the reply. Then {@link FuseSession#replied}. */
        void reply(Exchange exchange, Call call);

        /** Nothing of it is used any more. Without a reply, the request stays unanswered. */
        void end();
    }
}
