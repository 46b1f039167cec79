package io.etcfs.core.domain;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.file.Extent;
import io.etcfs.core.file.ExtentMap;
import io.etcfs.core.fs.Attributes;
import io.etcfs.core.record.proto.ExtentRange;
import io.etcfs.core.record.proto.FileType;
import io.etcfs.core.record.proto.Xattr;
import io.etcfs.core.session.NodeStoppedError;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.NavigableSet;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * An inode as cached under its domain's token. Fields are under the node's monitor and changed only while the domain is held EXCLUSIVE; times
 * are ns since the epoch, sizes bytes, blocks 4 KiB.
 */
public final class Inode {
    private static final byte[] NO_BYTES = {};
    public static final int FORMAT_MASK = 0170000;
    public static final int REGULAR = 0100000;
    public static final int DIRECTORY = 0040000;
    public static final int SYMLINK = 0120000;
    public static final int SET_UID = 04000;
    public static final int SET_GID = 02000;

    /** Flag: extents are in records of their own. */
    public static final int FLAG_EXTENT_RECORDS = 1;

    /** With more extents than this they move to records of their own, and stay there. */
    public static final int INLINE_EXTENTS = 32;

    /** With extents beyond this many ranges they do, too: all records are put at once when they move, and a batch has to take them. */
    public static final long INLINE_RANGES = 16;

    public final long ino;
    public final long home;

    public int mode;
    public int uid;
    public int gid;
    public int nlink;
    public long size;
    /** Bytes from here on read as zero, whatever the blocks contain. */
    public long valid;
    public long atimeNs;
    public long mtimeNs;
    public long ctimeNs;
    public long btimeNs;
    public int rdev;
    public int flags;
    public long parent;
    public byte[] symlinkTarget = NO_BYTES;
    /** Extents at or beyond this logical block count as absent until they are freed; {@link Long#MAX_VALUE}: none. */
    public long deadFrom = Long.MAX_VALUE;
    public final ExtentMap extents = new ExtentMap();
    /** Whether {@link #extents} is complete; false for extents in records that were not read yet. */
    public boolean extentsLoaded = true;
    /** {@link ExtentMap#count} of it as counted in {@link Domain#cachedExtents}. */
    int countedExtents;
    private NavigableSet<Long> extentRecords = Collections.emptyNavigableSet();
    private NavigableMap<ByteBuffer, byte[]> xattrs = Collections.emptyNavigableMap();
    private NavigableMap<ByteBuffer, byte[]> largeXattrs = Collections.emptyNavigableMap();

    /** The batch that first puts it, or 0 if it was read from etcd. */
    public long bornBatch;
    /** The last batch that has a change of it. */
    public long lastBatch;
    /** The last batch that has a change of it that fdatasync must see: size, extents, birth. */
    public long lastDataBatch;

    /** Blocks according to the record, while the extents are not loaded. */
    private long recordedBlocks;
    private io.etcfs.core.record.proto.Inode unknown = io.etcfs.core.record.proto.Inode.getDefaultInstance();

    public Inode(long ino, long home) {
        this.ino = ino;
        this.home = home;
    }

    /** Which extent records exist, in the view that includes the open batch. Not to be changed. */
    public NavigableSet<Long> extentRecords() {
        return extentRecords;
    }

    public NavigableSet<Long> extentRecordsForChange() {
        if (extentRecords.isEmpty()) {
            extentRecords = new TreeSet<>();
        }
        return extentRecords;
    }

    /** Small xattrs with their values, large ones with null. Not to be changed. */
    public NavigableMap<ByteBuffer, byte[]> xattrs() {
        return xattrs;
    }

    public NavigableMap<ByteBuffer, byte[]> xattrsForChange() {
        if (xattrs.isEmpty()) {
            xattrs = new TreeMap<>();
        }
        return xattrs;
    }

    /** Values of large xattrs that were set here, while the inode is cached. Not to be changed. */
    public NavigableMap<ByteBuffer, byte[]> largeXattrs() {
        return largeXattrs;
    }

    public NavigableMap<ByteBuffer, byte[]> largeXattrsForChange() {
        if (largeXattrs.isEmpty()) {
            largeXattrs = new TreeMap<>();
        }
        return largeXattrs;
    }

    public static Inode decode(long ino, long home, byte[] value) {
        try {
            io.etcfs.core.record.proto.Inode r = io.etcfs.core.record.proto.Inode.parseFrom(value);
            Inode i = new Inode(ino, home);
            i.mode = r.getMode();
            i.uid = r.getUid();
            i.gid = r.getGid();
            i.nlink = r.getNlink();
            i.size = r.getSize();
            i.valid = r.getValid();
            i.atimeNs = r.getAtimeNs();
            i.mtimeNs = r.getMtimeNs();
            i.ctimeNs = r.getCtimeNs();
            i.btimeNs = r.getBtimeNs();
            i.rdev = r.getRdev();
            i.flags = r.getFlags();
            i.parent = r.getParent();
            i.symlinkTarget = r.getSymlinkTarget().isEmpty() ? NO_BYTES : r.getSymlinkTarget().toByteArray();
            i.deadFrom = r.getDeadFrom() == 0 ? Long.MAX_VALUE : r.getDeadFrom() - 1;
            i.recordedBlocks = r.getBlocks();
            for (Xattr x : r.getXattrsList()) {
                i.xattrsForChange().put(ByteBuffer.wrap(x.getName().toByteArray()), x.getValue().toByteArray());
            }
            for (ByteString name : r.getLargeXattrsList()) {
                i.xattrsForChange().put(ByteBuffer.wrap(name.toByteArray()), null);
            }
            i.extentsLoaded = (i.flags & FLAG_EXTENT_RECORDS) == 0;
            if (i.extentsLoaded && r.getExtentsCount() > 0) {
                i.extents.load(decodeExtents(r.getExtentsList()));
            }
            if (r.getUnknownFields().getSerializedSize() > 0) {
                i.unknown = io.etcfs.core.record.proto.Inode.newBuilder().setUnknownFields(r.getUnknownFields()).build();
            }
            return i;
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record of inode " + ino + ": " + e.getMessage());
        }
    }

    public byte[] encode() {
        io.etcfs.core.record.proto.Inode.Builder b = unknown.toBuilder()
                .setMode(mode).setUid(uid).setGid(gid).setNlink(nlink).setSize(size).setValid(valid)
                .setAtimeNs(atimeNs).setMtimeNs(mtimeNs).setCtimeNs(ctimeNs).setBtimeNs(btimeNs)
                .setRdev(rdev).setFlags(flags).setParent(parent).setBlocks(blocks());
        if (symlinkTarget.length > 0) {
            b.setSymlinkTarget(ByteString.copyFrom(symlinkTarget));
        }
        if (deadFrom != Long.MAX_VALUE) {
            b.setDeadFrom(deadFrom + 1);
        }
        xattrs.forEach((name, value) -> {
            if (value == null) {
                b.addLargeXattrs(ByteString.copyFrom(name.array()));
            } else {
                b.addXattrs(Xattr.newBuilder().setName(ByteString.copyFrom(name.array())).setValue(ByteString.copyFrom(value)));
            }
        });
        if ((flags & FLAG_EXTENT_RECORDS) == 0) {
            for (Extent e : extents.all()) {
                b.addExtents(encode(e));
            }
        }
        return b.build().toByteArray();
    }

    public byte[] encodeExtentRecord(long range) {
        ExtentRange.Builder b = ExtentRange.newBuilder();
        for (Extent e : extents.ofRange(range)) {
            b.addExtents(encode(e));
        }
        return b.build().toByteArray();
    }

    public static List<Extent> decodeExtentRecord(byte[] value) throws InvalidProtocolBufferException {
        return decodeExtents(ExtentRange.parseFrom(value).getExtentsList());
    }

    private static List<Extent> decodeExtents(List<io.etcfs.core.record.proto.Extent> records) {
        List<Extent> extents = new ArrayList<>(records.size());
        for (io.etcfs.core.record.proto.Extent e : records) {
            extents.add(new Extent(e.getLogicalBlock(), e.getDeviceBlock(), e.getLength(), e.getEpoch(), e.getFlags()));
        }
        return extents;
    }

    private static io.etcfs.core.record.proto.Extent encode(Extent e) {
        return io.etcfs.core.record.proto.Extent.newBuilder().setLogicalBlock(e.logicalBlock()).setDeviceBlock(e.deviceBlock())
                .setLength(e.length()).setEpoch(e.epoch()).setFlags(e.flags()).build();
    }

    /** About what the xattrs take in the record. */
    public int xattrBytes() {
        int bytes = 0;
        for (Map.Entry<ByteBuffer, byte[]> x : xattrs.entrySet()) {
            bytes += 8 + x.getKey().capacity() + (x.getValue() == null ? 0 : x.getValue().length);
        }
        return bytes;
    }

    /** Device blocks in use. */
    public long blocks() {
        return extentsLoaded ? extents.blocks() : recordedBlocks;
    }

    public boolean isDirectory() {
        return (mode & FORMAT_MASK) == DIRECTORY;
    }

    public boolean isRegular() {
        return (mode & FORMAT_MASK) == REGULAR;
    }

    public boolean isSymlink() {
        return (mode & FORMAT_MASK) == SYMLINK;
    }

    public FileType type() {
        return switch (mode & FORMAT_MASK) {
            case DIRECTORY -> FileType.DIRECTORY;
            case SYMLINK -> FileType.SYMLINK;
            case 0010000 -> FileType.FIFO;
            case 0020000 -> FileType.CHARACTER_DEVICE;
            case 0060000 -> FileType.BLOCK_DEVICE;
            case 0140000 -> FileType.SOCKET;
            default -> FileType.REGULAR;
        };
    }

    /** The format bits of st_mode for a type. */
    static int format(FileType type) {
        return switch (type) {
            case DIRECTORY -> DIRECTORY;
            case SYMLINK -> SYMLINK;
            case FIFO -> 0010000;
            case CHARACTER_DEVICE -> 0020000;
            case BLOCK_DEVICE -> 0060000;
            case SOCKET -> 0140000;
            case REGULAR, FILE_TYPE_UNSPECIFIED, UNRECOGNIZED -> REGULAR;
        };
    }

    public Attributes attributes() {
        long length = isSymlink() ? symlinkTarget.length : size;
        return new Attributes(ino, mode, uid, gid, nlink, length, blocks() * 8, atimeNs, mtimeNs, ctimeNs, btimeNs, rdev);
    }

    /** A write or size change by somebody without CAP_FSETID, or a change of owner or group by anybody: suid goes, sgid too where the group may execute; not of directories. */
    public void killPrivileges() {
        if (!isDirectory()) {
            mode &= ~SET_UID;
            if ((mode & 010) != 0 || Fault.SET_GROUP_ID_ALWAYS_GOES.on()) {
                mode &= ~SET_GID;
            }
        }
    }
}
