package io.etcfs.core.fs;

import io.etcfs.core.domain.Dirent;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.fault.Rare;
import io.etcfs.core.file.Extent;
import io.etcfs.core.file.ExtentMap;
import io.etcfs.core.pipeline.Pipeline;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Orphan;
import io.etcfs.core.record.proto.Remainder;
import io.etcfs.core.space.Space;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;

/** How changes of inodes and names become changes of keys in the open batch. Monitor held, the domains EXCLUSIVE. */
final class Journal {
    private final Pipeline pipeline;
    private final Space space;
    private final Keys keys;
    private final String node;

    Journal(Pipeline pipeline, Space space, Keys keys, String node) {
        this.pipeline = pipeline;
        this.space = space;
        this.keys = keys;
        this.node = node;
    }

    Pipeline pipeline() {
        return pipeline;
    }

    private boolean existed(long bornBatch) {
        return bornBatch != pipeline.openNumber();
    }

    void add(Domain dir, Dirent e) {
        dir.entries.put(e.hash(), e);
        nameChanges(dir, e);
        pipeline.put(keys.dirent(dir.id, e.hash(), e.name()), e::encode, false, 24);
        pipeline.touch(dir);
    }

    /** The name stays and is another inode's now. */
    void replace(Domain dir, Dirent was, Dirent is) {
        dir.entries.put(is.hash(), is);
        nameChanges(dir, is);
        pipeline.put(keys.dirent(dir.id, is.hash(), is.name()), is::encode, existed(was.bornBatch()), 24);
        pipeline.touch(dir);
    }

    void remove(Domain dir, Dirent e) {
        dir.entries.remove(e.hash());
        nameChanges(dir, e);
        pipeline.delete(keys.dirent(dir.id, e.hash(), e.name()), existed(e.bornBatch()));
        pipeline.touch(dir);
    }

    private void nameChanges(Domain dir, Dirent e) {
        dir.nameChanges(e.hash(), pipeline.openNumber(), pipeline.committedNumber());
    }

    void born(Domain domain, Inode inode) {
        inode.bornBatch = pipeline.openNumber();
        domain.inodes.put(inode.ino, inode);
        changed(domain, inode, true);
    }

    /** @param data whether fdatasync has to see the change */
    void changed(Domain domain, Inode inode, boolean data) {
        if (inode.extentsLoaded) {
            if ((inode.flags & Inode.FLAG_EXTENT_RECORDS) == 0) {
                inode.extents.takeDirtyRanges();
                if (inode.extents.count() > inlineExtents() || inode.extents.end() > Inode.INLINE_RANGES * ExtentMap.RANGE_BLOCKS) {
                    inode.flags |= Inode.FLAG_EXTENT_RECORDS;
                    List<Extent> all = inode.extents.all();
                    for (Extent e : all) {
                        for (long r = e.logicalBlock() / ExtentMap.RANGE_BLOCKS; r <= (e.logicalEnd() - 1) / ExtentMap.RANGE_BLOCKS; r++) {
                            putExtentRecord(inode, r);
                        }
                    }
                }
            } else {
                for (long r : inode.extents.takeDirtyRanges()) {
                    putExtentRecord(inode, r);
                }
            }
        }
        pipeline.put(keys.inode(inode.home, inode.ino), inode::encode, existed(inode.bornBatch), 200 + 24 * Math.min(inode.extents.count(), Inode.INLINE_EXTENTS) + inode.symlinkTarget.length + inode.xattrBytes());
        inode.lastBatch = pipeline.openNumber();
        if (data) {
            inode.lastDataBatch = inode.lastBatch;
        }
        domain.countExtents(inode);
        pipeline.touch(domain);
        space.touched();
    }

    /** Whether the inode's extents stay in its record though up to {@code more} are added, before block {@code end}. */
    static boolean staysInline(Inode inode, int more, long end) {
        return (inode.flags & Inode.FLAG_EXTENT_RECORDS) == 0 && inode.extents.count() + more <= inlineExtents()
                && Math.max(end, inode.extents.end()) <= Inode.INLINE_RANGES * ExtentMap.RANGE_BLOCKS;
    }

    private static int inlineExtents() {
        return Rare.EXTENT_RECORDS.on() ? 2 : Inode.INLINE_EXTENTS;
    }

    private void putExtentRecord(Inode inode, long range) {
        boolean there = inode.extentRecords().contains(range);
        if (!inode.extents.hasAny(range)) {
            if (there) {
                inode.extentRecordsForChange().remove(range);
                pipeline.delete(keys.extents(inode.ino, range), true);
            }
            return;
        }
        inode.extentRecordsForChange().add(range);
        pipeline.put(keys.extents(inode.ino, range), () -> inode.encodeExtentRecord(range), there, 24 * inode.extents.about(range));
    }

    /** The inode goes, blocks and all. Its extents are loaded and few enough for one batch. */
    void delete(Domain domain, Inode inode) {
        if (inode.ino == domain.id && domain.part != null) {
            throw new IllegalStateException("directory " + domain.id + " goes and not all is known that lives in it");
        }
        List<Extent> extents = inode.extents.remove(0, Long.MAX_VALUE >> 1);
        inode.extents.takeDirtyRanges();
        space.free(extents, domain);
        for (long r : inode.extentRecords()) {
            pipeline.delete(keys.extents(inode.ino, r), true);
        }
        inode.extentRecordsForChange().clear();
        for (Map.Entry<ByteBuffer, byte[]> x : inode.xattrs().entrySet()) {
            if (x.getValue() == null) {
                pipeline.delete(keys.xattr(inode.ino, x.getKey().array()), true);
            }
        }
        pipeline.delete(keys.inode(inode.home, inode.ino), existed(inode.bornBatch));
        domain.countExtents(inode);
        domain.inodes.remove(inode.ino);
        domain.inodeGoes(inode.ino, pipeline.openNumber(), pipeline.committedNumber());
        domain.othersOpen.remove(inode.ino);
        if (domain.nothingLivesHere()) {
            deleteOwner(domain);
        }
        pipeline.touch(domain);
        space.touched();
    }

    /**
     * The last that lived in a domain goes, the directory before it or with it: the owner record goes in the same batch, as nobody would come by it again. Whoever holds
     * the token from then on, or gets it, does without.
     */
    private void deleteOwner(Domain domain) {
        if (Fault.OWNERS_LEFT.on()) {
            return;
        }
        if (existed(domain.bornBatch)) {
            pipeline.delete(keys.owner(domain.id), true);
        } else {
            domain.goneAtBirth = true;
        }
        pipeline.onCommitted(() -> domain.ownerRevision = 0);
    }

    void putOrphan(Inode inode) {
        pipeline.put(keys.orphan(inode.ino), () -> Orphan.newBuilder().setHome(inode.home).build().toByteArray(), false, 20);
    }

    void deleteOrphan(Inode inode) {
        pipeline.delete(keys.orphan(inode.ino), true);
    }

    /** This node's {@code open:} and {@code opened:} of the inode, which always go together. */
    void putOpen(long home, long ino, boolean existed) {
        pipeline.put(keys.open(home, ino, node), () -> new byte[0], existed, 0);
        pipeline.put(keys.opened(node, home, ino), () -> new byte[0], existed, 0);
    }

    /** The same for a token that is given on: not published if the session ends first. {@code gone} runs then. */
    void putOpenForHandover(long home, long ino, boolean existed, Runnable gone) {
        pipeline.putBound(keys.open(home, ino, node), existed);
        pipeline.putBound(keys.opened(node, home, ino), existed);
        pipeline.onSessionGone(gone);
    }

    void deleteOpen(long home, long ino) {
        pipeline.delete(keys.open(home, ino, node), true);
        pipeline.delete(keys.opened(node, home, ino), true);
    }

    void putRemainder(Domain domain, Inode inode) {
        domain.remainders.put(inode.ino, inode.deadFrom);
        long deadFrom = inode.deadFrom;
        pipeline.put(keys.remainder(inode.home, inode.ino), () -> Remainder.newBuilder().setDeadFrom(deadFrom).build().toByteArray(), true, 20);
    }

    void deleteRemainder(Domain domain, Inode inode) {
        domain.remainders.remove(inode.ino);
        pipeline.delete(keys.remainder(inode.home, inode.ino), true);
    }
}
