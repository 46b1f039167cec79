package io.etcfs.linux.mount;

import io.etcfs.core.fs.Operations;
import io.etcfs.core.kernel.KernelCache;
import io.etcfs.fuse.protocol.Exchange;
import io.etcfs.fuse.protocol.InitRequest;
import io.etcfs.fuse.protocol.Negotiation;
import io.etcfs.fuse.protocol.Opcode;
import io.etcfs.fuse.protocol.UnsupportedKernelException;
import io.etcfs.linux.call.Descriptors;
import io.etcfs.linux.call.ErrorNumbers;
import io.etcfs.linux.call.LinuxException;
import io.etcfs.linux.call.MountCalls;
import io.etcfs.linux.call.Native;
import java.io.IOException;
import java.nio.file.Path;
import java.util.function.Function;

/** Mounts. Needs CAP_SYS_ADMIN. */
public final class FuseMount {
    private static final System.Logger LOG = System.getLogger("io.etcfs.fuse");
    /** The mount's root is a directory, everybody may use it, and the kernel checks permissions by mode and owner. */
    private static final String DATA = "rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions,max_read=" + Negotiation.MAX_WRITE_BYTES;

    /**
     * Mounts and answers INIT. {@link FuseSession#start} is to be called next.
     *
     * @param operations what requests are dispatched to, made for the kernel cache of this mount
     * @param onError    is given an {@link Error} that came out of an operation, and what ends a thread of the session unexpectedly. The request has no answer:
     *                   the handler is expected to end the process, or to abort the session
     * @throws UnsupportedKernelException the kernel is older than 5.14
     */
    public static FuseSession mount(MountOptions options, Function<KernelCache, Operations> operations, Thread.UncaughtExceptionHandler onError)
            throws IOException, UnsupportedKernelException {
        Path mountPoint = options.mountPoint().toRealPath();
        prepareControl();
        BlockPool pool = new BlockPool();
        FuseConnection connection = FuseConnection.open(pool::close);
        boolean mounted = false;
        boolean complete = false;
        try {
            LinuxException.check(MountCalls.mount(options.source(), mountPoint.toString(), Mounts.TYPE, options.flags(),
                    "fd=" + connection.mounted() + "," + DATA), "mount " + mountPoint);
            mounted = true;
            MountInfo mount = Mounts.at(mountPoint).filter(top -> top.type().equals(Mounts.TYPE))
                    .orElseThrow(() -> new IOException(mountPoint + " is not to be found in /proc/self/mountinfo"));
            Negotiation negotiation = answerInit(connection, pool, options.initFlags());
            setReadAhead(mount, options.readAheadKb());
            FuseSession session = new FuseSession(options, mount, negotiation, connection, pool, operations, onError);
            complete = true;
            return session;
        } finally {
            if (!complete) {
                if (mounted) {
                    MountCalls.umount(mountPoint.toString(), MountCalls.MNT_DETACH | MountCalls.UMOUNT_NOFOLLOW);
                }
                connection.release();
            }
        }
    }

    /** Early, so that little can go wrong when it is needed. */
    private static void prepareControl() {
        try {
            FuseControl.prepare();
        } catch (IOException e) {
            LOG.log(System.Logger.Level.WARNING, "connections can't be aborted through fusectl: " + e.getMessage());
        }
    }

    private static Negotiation answerInit(FuseConnection connection, BlockPool pool, long wanted) throws IOException, UnsupportedKernelException {
        Block request = pool.takeLargest();
        Block reply = pool.take(Native.PAGE_BYTES);
        try {
            Exchange x = new Exchange(Native.MEMORY);
            Negotiation negotiation;
            do {
                readFirst(connection.mounted(), request);
                x.pointAt(request.request(), reply.reply(), reply.capacity);
                if (x.opcode() != Opcode.INIT) {
                    throw new IOException("the first request is not INIT but opcode " + x.opcodeNumber());
                }
                negotiation = Negotiation.negotiate(InitRequest.decode(Native.MEMORY, request.request()), wanted);
                int length = negotiation.encode(Native.MEMORY, reply.reply(), x.unique());
                LinuxException.check((int) FuseConnection.send(connection.mounted(), reply.reply(), length, reply.errno), "answer to INIT");
            } while (negotiation.newerMajor());
            return negotiation;
        } finally {
            pool.giveBack(request);
            pool.giveBack(reply);
        }
    }

    private static void readFirst(int descriptor, Block request) throws LinuxException {
        long result;
        do {
            result = Descriptors.read(descriptor, request.request(), request.requestCapacity(), request.errno);
        } while (result == -ErrorNumbers.EINTR || result == -ErrorNumbers.EAGAIN);
        LinuxException.check((int) result, "read of INIT");
    }

    private static void setReadAhead(MountInfo mount, int kb) {
        if (kb <= 0) {
            return;
        }
        try {
            FuseControl.setReadAhead(mount, kb);
        } catch (IOException e) {
            LOG.log(System.Logger.Level.WARNING, "read-ahead stays as it is: " + e.getMessage());
        }
    }

    private FuseMount() {}
}
