package io.etcfs.linux.mount;

import io.etcfs.core.fs.Errno;
import io.etcfs.fuse.protocol.Exchange;
import io.etcfs.linux.call.LinuxException;
import io.etcfs.linux.call.Native;

/** Reader threads, each with a /dev/fuse descriptor of its own. */
final class DeviceTransport implements FuseTransport {
    private static final long AGAIN_AFTER_MS = 5;
    private static final int INTERRUPT_BIT = 1;

    private final FuseConnection connection;
    private final BlockPool pool;
    private final int readers;

    DeviceTransport(FuseConnection connection, BlockPool pool, int readers) {
        this.connection = connection;
        this.pool = pool;
        this.readers = readers;
    }

    @Override
    public Transport kind() {
        return Transport.DEV;
    }

    @Override
    public int threads() {
        return readers;
    }

    @Override
    public void start(FuseSession session) throws LinuxException {
        int[] descriptors = new int[readers];
        descriptors[0] = connection.mounted();
        for (int i = 1; i < descriptors.length; i++) {
            descriptors[i] = connection.cloneDescriptor();
        }
        for (int i = 0; i < descriptors.length; i++) {
            session.startThread("fuse-reader-" + i, new FuseReader(session, pool, descriptors[i]));
        }
    }

    @Override
    public void cancel() {}

    @Override
    public void mountEnded() {}

    @Override
    public boolean losesInterrupts() {
        return false;
    }

    @Override
    public long memoryBytes() {
        return 0;
    }

    /**
     * The kernel, which interrupts once, is asked to interrupt again after a few ms. It takes that answer only on the descriptor that the request itself was
     * read from, which is not known: all of them get it, and those that don't have the request say ENOENT.
     */
    @Override
    public void interruptEarly(FuseSession session, long unique) {
        connection.acquire();
        session.startWaitingThread(() -> {
            try {
                Thread.sleep(AGAIN_AFTER_MS);
                if (!session.waiting().interrupt(unique)) {
                    askAgain(unique);
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            } finally {
                connection.release();
            }
        });
    }

    private void askAgain(long unique) {
        Block block = pool.take(Native.PAGE_BYTES);
        try {
            int length = Exchange.encodeError(Native.MEMORY, block.reply(), unique | INTERRUPT_BIT, Errno.EAGAIN.number());
            for (int descriptor : connection.descriptors()) {
                if (FuseConnection.send(descriptor, block.reply(), length, block.errno) > 0) {
                    return;
                }
            }
        } finally {
            pool.giveBack(block);
        }
    }
}
