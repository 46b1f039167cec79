package io.etcfs.linux.mount;

import io.etcfs.core.fs.Operations;
import io.etcfs.core.kernel.KernelCache;
import io.etcfs.fuse.protocol.InitFlags;
import io.etcfs.fuse.protocol.Negotiation;
import io.etcfs.fuse.protocol.UnsupportedKernelException;
import io.etcfs.linux.call.LinuxException;
import io.etcfs.linux.call.MountCalls;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Function;

/** Mounts. Needs CAP_SYS_ADMIN. */
public final class FuseMount {
    private static final Path ENABLE_URING = Path.of("/sys/module/fuse/parameters/enable_uring");
    private static final System.Logger LOG = System.getLogger("io.etcfs.fuse");
    /** The mount's root is a directory, everybody may use it, and the kernel checks permissions by mode and owner. */
    private static final String DATA = "rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions,max_read=" + Negotiation.MAX_WRITE_BYTES;

    /**
     * Mounts and answers INIT. {@link FuseSession#start} is to be called next.
     *
     * @param operations what requests are dispatched to, made for the kernel cache of this mount
     * @param onError    is given an {@link Error} that came out of an operation, and what ends a thread of the session unexpectedly. The request has no answer:
     *                   the handler is expected to end the process, or to abort the session
     * @throws UnsupportedKernelException    the kernel is older than 5.14
     * @throws TransportUnavailableException the transport that was demanded can't be had
     */
    public static FuseSession mount(MountOptions options, Function<KernelCache, Operations> operations, Thread.UncaughtExceptionHandler onError)
            throws IOException, UnsupportedKernelException {
        Path mountPoint = options.mountPoint().toRealPath();
        prepareControl();
        BlockPool pool = new BlockPool();
        FuseConnection connection = FuseConnection.open(pool::close);
        FuseTransport transport = null;
        boolean mounted = false;
        boolean complete = false;
        try {
            LinuxException.check(MountCalls.mount(options.source(), mountPoint.toString(), Mounts.TYPE, options.flags(),
                    "fd=" + connection.mounted() + "," + DATA), "mount " + mountPoint);
            mounted = true;
            MountInfo mount = Mounts.at(mountPoint).filter(top -> top.type().equals(Mounts.TYPE))
                    .orElseThrow(() -> new IOException(mountPoint + " is not to be found in /proc/self/mountinfo"));
            Negotiation negotiation;
            try (InitHandshake init = InitHandshake.await(connection, pool)) {
                transport = transport(options, init, connection, pool, onError);
                negotiation = init.answer(transport.kind() == Transport.URING ? options.initFlags() | InitFlags.OVER_IO_URING : options.initFlags());
            }
            setReadAhead(mount, options.readAheadKb());
            FuseSession session = new FuseSession(mount, negotiation, connection, pool, transport, operations, onError);
            complete = true;
            return session;
        } finally {
            if (!complete) {
                if (transport != null) {
                    transport.cancel();
                }
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

    private static FuseTransport transport(MountOptions options, InitHandshake init, FuseConnection connection, BlockPool pool,
            Thread.UncaughtExceptionHandler onError) throws IOException {
        boolean demanded = options.transport() == Transport.URING;
        boolean offered = init.offers(InitFlags.OVER_IO_URING);
        if (demanded && !offered) {
            throw new TransportUnavailableException("the kernel does not offer FUSE over io_uring: write Y to " + ENABLE_URING
                    + (Files.exists(ENABLE_URING) ? "" : " (not there: it needs Linux 6.14 with CONFIG_FUSE_IO_URING)") + " before mounting, or use the transport dev");
        }
        if (offered && options.transport() != Transport.DEV) {
            try {
                return UringTransport.prepare(connection, pool, options.readers(), onError);
            } catch (IOException e) {
                if (demanded) {
                    throw new TransportUnavailableException("FUSE over io_uring can't be set up (" + e.getMessage()
                            + "): see that kernel.io_uring_disabled is 0, that no system call filter forbids io_uring, and that all CPUs are allowed, or use the transport dev");
                }
                LOG.log(System.Logger.Level.WARNING, "FUSE over io_uring is offered but can't be set up, /dev/fuse is used: " + e.getMessage());
            }
        }
        return new DeviceTransport(connection, pool, options.readers());
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
