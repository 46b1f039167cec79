package io.etcfs.core.fs;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.domain.Vnode;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.file.Extent;
import io.etcfs.core.space.Run;
import io.etcfs.core.token.Blocked;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * While a domain has suspects, a block of an older epoch can change without anybody's doing: a write that a vanished holder had sent to the device lands. Such blocks
 * are copied, and the copies published, before they are shown to anybody: whatever is seen first is what stays. Planned under the monitor, carried out without, and
 * completed under it again, as a write is.
 */
final class Copies {
    private static final int BLOCK = BlockDevice.BLOCK_BYTES;
    /** Copied at once, from the block that was asked for on: 1 MiB. */
    private static final int MOST_BLOCKS = 256;
    /** Operations that a copy adds to a batch at most. */
    private static final int ROOM = 72;

    private final Node node;
    private final OpenFiles openFiles;
    private final Contents contents;
    private final Blocked unpublished;

    Copies(Node node, OpenFiles openFiles, Contents contents) {
        this.node = node;
        this.openFiles = openFiles;
        this.contents = contents;
        this.unpublished = Blocked.among(node.pipeline().publications());
    }

    /** Blocks that go elsewhere: what they were, and where they go, piece by piece. */
    private record Plan(Domain domain, Inode inode, long epoch, long sessionRevision, List<Extent> from, List<Run> to) {}

    /** Whether the blocks have to be copied before they are shown. Monitor held. */
    boolean needed(Domain d, Inode i, long first, long end) {
        return !d.suspects.isEmpty() && !Fault.SERVED_WITHOUT_COPY.on() && !doubtful(d, i, first, end, 1).isEmpty();
    }

    /** What is shown while there are suspects has to stay when this node ends, too. Monitor held. */
    void requirePublished(Domain d, Inode i) {
        if (!d.suspects.isEmpty() && !node.pipeline().published(i.lastDataBatch) && !Fault.COPY_SERVED_UNPUBLISHED.on()) {
            node.pipeline().push(i.lastDataBatch);
            throw unpublished;
        }
    }

    /** The extents in the range that a suspect may still write and that have bytes to show, up to so many blocks. */
    private static List<Extent> doubtful(Domain d, Inode i, long first, long end, int most) {
        List<Extent> found = new ArrayList<>();
        long validEnd = (i.valid + BLOCK - 1) / BLOCK;
        int blocks = 0;
        for (Extent e : i.extents.within(first, Math.max(first, Math.min(Math.min(end, validEnd), i.deadFrom)))) {
            if (!e.unwritten() && e.epoch() != d.epoch && blocks < most) {
                Extent part = e.slice(e.logicalBlock(), Math.min(e.logicalEnd(), e.logicalBlock() + most - blocks));
                found.add(part);
                blocks += part.length();
            }
        }
        return found;
    }

    /** Copies the first blocks of the range that need it. Afterwards the range is to be looked at again. */
    void copy(Call call, Waiting.Held held, Vnode v, long first, long end) throws FsException {
        Plan p = node.waiting().run(call, held, a -> plan(v, first, end));
        if (p == null) {
            return;
        }
        boolean copied = false;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment buffer = arena.allocate((long) MOST_BLOCKS * BLOCK, BLOCK);
            for (int k = 0; k < p.from.size(); k++) {
                MemorySegment bytes = buffer.asSlice(0, (long) p.from.get(k).length() * BLOCK);
                node.device().read(p.from.get(k).deviceBlock() * BLOCK, bytes);
                node.device().write(p.to.get(k).firstBlock() * BLOCK, bytes);
            }
            copied = true;
        } catch (DeviceException e) {
            if (!e.isLate()) {
                throw Contents.failed("copy", v.ino, e);
            }
        } finally {
            node.monitor().lock();
            try {
                node.pipeline().deviceWritten();
                node.pipeline().endDeviceAccess();
                if (!copied) {
                    giveUp(v, p);
                }
            } finally {
                node.monitor().unlock();
            }
        }
        if (!copied) {
            return;
        }
        boolean completed = false;
        try {
            completed = node.waiting().run(call, held, a -> {
                if (p.domain.held != Mode.EXCLUSIVE || p.domain.inodes.get(v.ino) != p.inode || p.domain.epoch != p.epoch || node.session().revision() != p.sessionRevision
                        || !node.session().live()) {
                    return false;
                }
                if (!node.session().trusted() || !node.pipeline().room(ROOM)) {
                    throw Blocked.INSTANCE;
                }
                complete(p);
                v.changing = false;
                node.monitor().changed();
                return true;
            });
        } finally {
            if (!completed) {
                node.monitor().lock();
                try {
                    giveUp(v, p);
                } finally {
                    node.monitor().unlock();
                }
            }
        }
    }

    /** Null: there is nothing to be copied any more. */
    private Plan plan(Vnode v, long first, long end) throws FsException {
        Domain d = node.tokens().requireForData(v.home, Mode.EXCLUSIVE);
        Inode i = contents.inode(d, v);
        if (!needed(d, i, first, end)) {
            return null;
        }
        if (v.changing || !node.pipeline().room(ROOM)) {
            throw Blocked.INSTANCE;
        }
        contents.requireNoReaders(v);
        for (int most = MOST_BLOCKS; ; most /= 2) {
            List<Extent> from = doubtful(d, i, first, end, most);
            List<Run> to = new ArrayList<>();
            List<Extent> pieces = new ArrayList<>();
            List<Extent> touched = new ArrayList<>(from);
            try {
                for (Extent e : from) {
                    long at = e.logicalBlock();
                    for (Run run : node.space().allocateForCopy(e.length(), to.isEmpty() ? -1 : to.getLast().firstBlock() + to.getLast().length())) {
                        pieces.add(e.slice(at, at + run.length()));
                        to.add(run);
                        touched.add(new Extent(at, run.firstBlock(), run.length(), d.epoch, 0));
                        at += run.length();
                    }
                }
            } catch (Blocked b) {
                node.space().abandon(to);
                throw b;
            } catch (FsException noSpace) {
                // The vanished node may come back, or somebody make room, while the reader may wait.
                node.space().abandon(to);
                throw Blocked.INSTANCE;
            }
            if (most > 1 && openFiles.spaceKeys(touched) > OpenFiles.maxSpaceKeys()) {
                node.space().abandon(to);
                continue;
            }
            v.changing = true;
            node.pipeline().beginDeviceAccess();
            return new Plan(d, i, d.epoch, node.session().revision(), pieces, to);
        }
    }

    /** The copies take the place of the blocks, in the open batch. */
    private void complete(Plan p) {
        for (int k = 0; k < p.from.size(); k++) {
            Extent e = p.from.get(k);
            List<Extent> replaced = p.inode.extents.put(new Extent(e.logicalBlock(), p.to.get(k).firstBlock(), e.length(), p.epoch, e.flags()));
            node.space().reference(p.to.get(k));
            node.space().free(replaced, p.domain);
        }
        node.journal().changed(p.domain, p.inode, true);
    }

    private void giveUp(Vnode v, Plan p) {
        node.space().abandon(p.to);
        v.changing = false;
        node.vnodes().dropIfUnused(v);
        node.monitor().changed();
    }
}
