package io.etcfs.core.fs;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.domain.Vnode;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.token.Blocked;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Map;

/**
 * Write-back of shared mappings: it is never kept waiting for a token. What comes without X stays in the inode's side buffer until X is ours.
 *
 * <p>The side buffers of a node are bounded: beyond that a write-back waits until they drain. During a recall of the inode's pages it is taken all the same, as
 * the recall waits for it, and another node, whose bytes may be in such a buffer, too, for the recall.
 */
final class Mappings {
    private static final int BLOCK = BlockDevice.BLOCK_BYTES;
    /** In the side buffers of a node, apart from what recalls add. */
    private static final long MAX_BYTES = 64L << 20;
    private static final Call BACKGROUND = new Call(0, 0, 0, 0, true, Call.Interruption.NEVER);

    /** Nothing is known of what the file has. */
    static final byte[] NONE = {};

    private final Node node;
    private final Writes writes;
    private final Reads reads;
    /** In all side buffers. */
    private long bytes;

    Mappings(Node node, Writes writes, Reads reads) {
        this.node = node;
        this.writes = writes;
        this.reads = reads;
    }

    boolean holdsExclusive(Vnode v) {
        Domain d = node.tokens().known(v.home);
        return d != null && d.usableForData(Mode.EXCLUSIVE) && node.session().trusted();
    }

    /** True: X is held, write as usual. False: the bytes are in the side buffer until X is ours. Waits for room there, but never for this inode's token. */
    boolean tryWriteBack(Call call, Vnode v, long offset, MemorySegment data) throws FsException {
        Reads.Base base = node.monitor().with(() -> holdsExclusive(v) && v.sideBuffer.isEmpty()) || Fault.WHOLE_PAGES_WRITTEN_BACK.on() ? null
                : reads.base(v, offset, (int) data.byteSize());
        // It is not among the requests whose pages a recall leaves out: with the recall it goes through.
        return node.waiting().run(call, a -> {
            if (holdsExclusive(v) && v.sideBuffer.isEmpty()) {
                return true;
            }
            sideBuffer(v, offset, data, base != null && reads.stands(base) ? base.bytes() : NONE);
            return false;
        });
    }

    /**
     * Monitor held. Throws {@link Blocked} before it has any effect.
     *
     * @param base what the file has from there on, as far as it is known: what the mapping did not change is not written, as another node can change it before this one
     *             has X
     */
    void sideBuffer(Vnode v, long offset, MemorySegment data, byte[] base) {
        if (bytes > MAX_BYTES && v.pages == null) {
            throw Blocked.INSTANCE;
        }
        boolean first = v.sideBuffer.isEmpty();
        long n = data.byteSize();
        for (long at = offset; at < offset + n; ) {
            long to = Math.min(offset + n, (at / BLOCK + 1) * BLOCK);
            byte[] page = data.asSlice(at - offset, to - at).toArray(ValueLayout.JAVA_BYTE);
            int known = (int) Math.clamp(base.length - (at - offset), 0, page.length);
            sideBufferPage(v, at, page, known == 0 ? NONE : Arrays.copyOfRange(base, (int) (at - offset), (int) (at - offset) + known));
            at = to;
        }
        if (first && !v.sideBuffer.isEmpty()) {
            node.tasks().start("write-back-" + v.ino, () -> writeSideBuffer(v));
        }
    }

    /** What waits already of the page is replaced, and grows by what differs from {@code base}; behind that by all. */
    private void sideBufferPage(Vnode v, long at, byte[] page, byte[] base) {
        long start = at / BLOCK * BLOCK;
        byte[] both = new byte[BLOCK];
        BitSet changed = new BitSet(BLOCK);
        Map<Long, byte[]> before = v.sideBuffer.subMap(start, true, start + BLOCK, false);
        before.forEach((from, piece) -> {
            System.arraycopy(piece, 0, both, (int) (from - start), piece.length);
            changed.set((int) (from - start), (int) (from - start) + piece.length);
            bytes -= piece.length;
        });
        for (int k = 0; k < page.length; k++) {
            int i = (int) (at - start) + k;
            if (k >= base.length || page[k] != base[k] || changed.get(i)) {
                both[i] = page[k];
                changed.set(i);
            }
        }
        if (!before.isEmpty()) {
            before.clear();
        }
        // New arrays: whoever writes an old one out has to see that it was replaced.
        for (int from = changed.nextSetBit(0); from >= 0; ) {
            int to = changed.nextClearBit(from);
            v.sideBufferForChange().put(start + from, Arrays.copyOfRange(both, from, to));
            bytes += to - from;
            from = changed.nextSetBit(to);
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
            Errno lost = null;
            try {
                WritePlan plan = node.waiting().run(BACKGROUND, a -> v.sideBuffer.get(next.getKey()) != next.getValue() ? WritePlan.NOTHING_LEFT
                        : writes.planWrite(v, next.getKey(), data, Writes.Where.BATCH, false, Writes.Source.SIDE_BUFFER, false));
                done = plan.complete || writes.carryOut(BACKGROUND, plan);
            } catch (FsException e) {
                if (e.errno() == Errno.ETIMEDOUT) {
                    continue;
                }
                // The file is gone or there is no room: as with a local disk, the bytes of the mapping are lost and it is said once.
                System.getLogger(Bytes.class.getName()).log(System.Logger.Level.ERROR, "bytes of a shared mapping of inode {0} could not be written: {1}", v.ino, e.errno());
                lost = e.errno() == Errno.ENOSPC ? Errno.ENOSPC : Errno.EIO;
                done = true;
            }
            if (done) {
                node.monitor().lock();
                try {
                    v.writeBackError = lost == null ? v.writeBackError : lost;
                    if (v.sideBuffer.get(next.getKey()) == next.getValue()) {
                        v.sideBuffer.remove(next.getKey());
                        bytes -= next.getValue().length;
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
    void cutSideBuffer(Vnode v, long size) {
        if (v.sideBuffer.isEmpty()) {
            return;
        }
        Map<Long, byte[]> behind = v.sideBuffer.tailMap(size, true);
        for (byte[] b : behind.values()) {
            bytes -= b.length;
        }
        behind.clear();
        Map.Entry<Long, byte[]> last = v.sideBuffer.lastEntry();
        if (last != null && last.getKey() + last.getValue().length > size) {
            bytes -= last.getKey() + last.getValue().length - size;
            v.sideBuffer.put(last.getKey(), Arrays.copyOf(last.getValue(), (int) (size - last.getKey())));
        }
        node.monitor().changed();
    }
}
