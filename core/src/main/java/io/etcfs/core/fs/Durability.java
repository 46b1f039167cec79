package io.etcfs.core.fs;

import io.etcfs.core.device.DeviceException;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Vnode;
import io.etcfs.core.token.Blocked;

/** What fsync and close promise. */
final class Durability {
    private final Node node;
    private final Blocked unpublished;

    Durability(Node node) {
        this.node = node;
        this.unpublished = Blocked.among(node.pipeline().publications());
    }

    void fsync(Call call, long ino, boolean dataOnly) throws FsException {
        Vnode vnode = node.monitor().with(() -> node.vnodes().require(ino));
        makeDurable(call, vnode, dataOnly);
    }

    /** Before a close returns: what a mapping wrote until then is what every node reads, or the close says that it was lost. */
    void awaitWriteBack(Call call, long ino) throws FsException {
        node.waiting().run(call, a -> {
            Vnode v = node.vnodes().known(ino);
            if (v != null) {
                requireWrittenBack(v);
            }
            return null;
        });
    }

    private static void requireWrittenBack(Vnode v) throws FsException {
        if (!v.sideBuffer.isEmpty()) {
            throw Blocked.INSTANCE;
        }
        if (v.writeBackError != null) {
            Errno lost = v.writeBackError;
            v.writeBackError = null;
            throw new FsException(lost);
        }
    }

    void makeDurable(Call call, Vnode v, boolean dataOnly) throws FsException {
        long[] upTo = {-1};
        long[] writes = {0};
        boolean[] pushed = {false};
        node.waiting().run(call, a -> {
            requireWrittenBack(v);
            Domain d = node.tokens().known(v.home);
            Inode i = d == null ? null : d.inodes.get(v.ino);
            if (upTo[0] < 0) {
                // fsync is for all that was done here before; fdatasync for what the file's bytes need. Without a token that was published when it was given up.
                writes[0] = node.pipeline().deviceWrites();
                upTo[0] = !dataOnly ? node.pipeline().lastNumber() : i != null ? i.lastDataBatch : d == null ? 0 : d.lastBatch;
            }
            if (!node.pipeline().published(upTo[0])) {
                if (call.mayWait() && !pushed[0]) {
                    node.pipeline().pushForSync(upTo[0]);
                    pushed[0] = true;
                }
                throw unpublished;
            }
            return null;
        });
        flush(v, writes[0]);
    }

    /** Makes durable what was written to the device, for a write that waits for nothing else. */
    void flush(Vnode v) throws FsException {
        flush(v, Long.MAX_VALUE);
    }

    private void flush(Vnode v, long writes) throws FsException {
        try {
            node.pipeline().flushDevice(writes);
        } catch (DeviceException e) {
            throw Contents.failed("flush", v.ino, e);
        }
    }
}
