package io.etcfs.core.fs;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.domain.Vnode;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.file.Extent;
import io.etcfs.core.file.ExtentMap;
import io.etcfs.core.token.Blocked;
import java.util.List;

/** Changes of a file's size. */
final class Sizes {
    /** Operations that a change of size adds to a batch at most, beside those of the blocks it frees. */
    private static final int ROOM = 16;
    private static final int BLOCK = BlockDevice.BLOCK_BYTES;
    private static final long FAR = Long.MAX_VALUE >> 1;

    private final Node node;
    private final OpenFiles openFiles;
    private final Contents contents;
    private final Mappings mappings;

    Sizes(Node node, OpenFiles openFiles, Contents contents, Mappings mappings) {
        this.node = node;
        this.openFiles = openFiles;
        this.contents = contents;
        this.mappings = mappings;
    }

    Operations.Attr setSize(Call call, long ino, Operations.Change c) throws FsException {
        long size = c.size();
        if (size < 0) {
            throw new FsException(Errno.EINVAL);
        }
        if (size > Names.FILE_MAX) {
            throw new FsException(Errno.EFBIG);
        }
        Vnode vnode = node.monitor().with(() -> node.vnodes().require(ino));
        return node.waiting().run(call, sizeChange(vnode), a -> {
            Domain d = node.tokens().requireForData(vnode.home, Mode.EXCLUSIVE);
            Inode i = contents.inode(d, vnode);
            if (!i.isRegular()) {
                throw new FsException(Errno.EINVAL);
            }
            long nowNs = node.realtimeNs();
            truncate(d, i, vnode, size, nowNs);
            if (c.mtimeNs() == null) {
                i.mtimeNs = nowNs;
            }
            Names.applyAttributes(i, c, nowNs);
            node.journal().changed(d, i, true);
            return new Operations.Attr(i.attributes(), node.view().grantAttributes(call, d, vnode, i));
        });
    }

    /** The kernel holds write-back of the inode up while it waits for a change of size, by truncate or by open. */
    Waiting.Held sizeChange(Vnode vnode) {
        return new Waiting.Held() {
            @Override
            public void begin() {}

            @Override
            public void end() {}

            @Override
            public boolean hopeless() {
                return node.view().sizeChangeIsHopeless(vnode);
            }
        };
    }

    /** Sets the size. X is held and the extents are loaded. Throws {@link Blocked} before it has any effect. */
    void truncate(Domain d, Inode i, Vnode v, long size, long nowNs) {
        if (v.changing) {
            throw Blocked.INSTANCE;
        }
        contents.requireNoReaders(v);
        long keep = (size + BLOCK - 1) / BLOCK;
        // A file that grows keeps what is reserved behind its end; one that is set to the size it has gives that up.
        boolean cuts = size <= i.size;
        List<Extent> gone = cuts ? i.extents.within(keep, FAR) : List.of();
        int spaceKeys = openFiles.spaceKeys(gone);
        int records = cuts ? extentRecordsFrom(i, keep) : 0;
        if (!node.pipeline().room(Math.min(spaceKeys, OpenFiles.MAX_SPACE_KEYS) + Math.min(records, OpenFiles.MAX_SPACE_KEYS) + ROOM)) {
            throw Blocked.INSTANCE;
        }
        if (cuts) {
            if (i.deadFrom == Long.MAX_VALUE && spaceKeys <= OpenFiles.maxSpaceKeys() && records <= OpenFiles.maxSpaceKeys()) {
                node.space().free(i.extents.remove(keep, FAR), d);
            } else if (!gone.isEmpty()) {
                i.deadFrom = Math.min(i.deadFrom, keep);
                node.journal().putRemainder(d, i);
                openFiles.finishRemainder(i.home, i.ino);
            }
        }
        i.size = size;
        if (!Fault.VALID_NOT_LOWERED.on()) {
            i.valid = Math.min(i.valid, size);
        }
        i.mtimeNs = nowNs;
        i.ctimeNs = nowNs;
        mappings.cutSideBuffer(v, size);
        node.journal().changed(d, i, true);
    }

    private static int extentRecordsFrom(Inode i, long block) {
        return i.extentRecords().tailSet(block / ExtentMap.RANGE_BLOCKS, true).size();
    }
}
