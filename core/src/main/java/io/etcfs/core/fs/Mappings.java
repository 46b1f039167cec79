package io.etcfs.core.fs;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.domain.Vnode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Map;

/** Write-back of shared mappings: it is never kept waiting for a token. What comes without X stays in the inode's side buffer until X is ours. */
final class Mappings {
    private static final int BLOCK = BlockDevice.BLOCK_BYTES;
    private static final Call BACKGROUND = new Call(0, 0, 0, 0, true, Call.Interruption.NEVER);

    private final Node node;
    private final Writes writes;

    Mappings(Node node, Writes writes) {
        this.node = node;
        this.writes = writes;
    }

    boolean holdsExclusive(Vnode v) {
        Domain d = node.tokens().known(v.home);
        return d != null && d.usableForData(Mode.EXCLUSIVE) && node.session().trusted();
    }

    /** True: X is held, write as usual. False: the bytes are in the side buffer until X is ours. Never waits for a token. */
    boolean tryWriteBack(Vnode v, long offset, MemorySegment data) {
        node.monitor().lock();
        try {
            if (holdsExclusive(v) && v.sideBuffer.isEmpty()) {
                return true;
            }
            sideBuffer(v, offset, data);
            return false;
        } finally {
            node.monitor().unlock();
        }
    }

    void sideBuffer(Vnode v, long offset, MemorySegment data) {
        boolean first = v.sideBuffer.isEmpty();
        // By page: a later write-back of a page replaces an earlier one.
        long n = data.byteSize();
        for (long at = offset; at < offset + n; ) {
            long to = Math.min(offset + n, (at / BLOCK + 1) * BLOCK);
            byte[] bytes = data.asSlice(at - offset, to - at).toArray(ValueLayout.JAVA_BYTE);
            byte[] before = v.sideBuffer.get(at);
            if (before != null && before.length > bytes.length) {
                // A new array: whoever writes the old one out has to see that it was replaced.
                byte[] both = before.clone();
                System.arraycopy(bytes, 0, both, 0, bytes.length);
                bytes = both;
            }
            v.sideBuffer.put(at, bytes);
            at = to;
        }
        if (first) {
            node.tasks().start("write-back-" + v.ino, () -> writeSideBuffer(v));
        }
    }

    private void writeSideBuffer(Vnode v) {
        while (!node.waiting().stopped()) {
            Map.Entry<Long, byte[]> next = node.monitor().with(() -> v.sideBuffer.isEmpty() ? null : Map.entry(v.sideBuffer.firstKey(), v.sideBuffer.firstEntry().getValue()));
            if (next == null) {
                return;
            }
            MemorySegment data = MemorySegment.ofArray(next.getValue());
            boolean done;
            boolean lost = false;
            try {
                WritePlan plan = node.waiting().run(BACKGROUND, a -> v.sideBuffer.get(next.getKey()) != next.getValue() ? WritePlan.NOTHING_LEFT
                        : writes.planWrite(v, next.getKey(), data, false, false, Writes.Source.SIDE_BUFFER, false));
                done = plan.complete || writes.carryOut(BACKGROUND, plan);
            } catch (FsException e) {
                if (e.errno() == Errno.ETIMEDOUT) {
                    continue;
                }
                // The file is gone or there is no room: as with a local disk, the bytes of the mapping are lost and it is said once.
                System.getLogger(Bytes.class.getName()).log(System.Logger.Level.ERROR, "bytes of a shared mapping of inode {0} could not be written: {1}", v.ino, e.errno());
                lost = true;
                done = true;
            }
            if (done) {
                node.monitor().lock();
                try {
                    v.writeBackFailed |= lost;
                    if (v.sideBuffer.get(next.getKey()) == next.getValue()) {
                        v.sideBuffer.remove(next.getKey());
                    }
                    node.vnodes().dropIfUnused(v);
                    node.monitor().changed();
                } finally {
                    node.monitor().unlock();
                }
            }
        }
    }

    /** Bytes of mappings behind the new end are gone with it. */
    static void cutSideBuffer(Vnode v, long size) {
        v.sideBuffer.tailMap(size, true).clear();
        Map.Entry<Long, byte[]> last = v.sideBuffer.lastEntry();
        if (last != null && last.getKey() + last.getValue().length > size) {
            v.sideBuffer.put(last.getKey(), Arrays.copyOf(last.getValue(), (int) (size - last.getKey())));
        }
    }
}
