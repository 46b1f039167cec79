package io.etcfs.core.check;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.file.ExtentMap;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Extent;
import io.etcfs.core.record.proto.ExtentRange;
import io.etcfs.core.record.proto.Inode;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import java.util.BitSet;
import java.util.List;

/** What files consist of: {@code extents:}, which come before the inodes, and the extents within those. Their blocks go to the {@link Runs}. */
final class ExtentCheck {
    private static final int FLAG_EXTENT_RECORDS = 1;

    private final Keys keys;
    private final Geometry geometry;
    private final long revision;
    private final Findings findings;
    private final Runs runs;
    /** Inodes with records of extents, in key order; what those come to; whether the inode was seen. */
    private final LongList inos = new LongList();
    private final LongIndex index = new LongIndex(inos);
    private final LongList blocks = new LongList();
    private final LongList epochs = new LongList();
    private final LongList ranges = new LongList();
    private final BitSet claimed = new BitSet();
    /** Of the list that is being looked at. */
    private long logicalEnd;
    private long sum;
    private long newest;

    ExtentCheck(Keys keys, Geometry geometry, long revision, Findings findings, Runs runs) {
        this.keys = keys;
        this.geometry = geometry;
        this.revision = revision;
        this.findings = findings;
        this.runs = runs;
    }

    void record(KeyValue kv) throws InvalidProtocolBufferException {
        Keys.ExtentsKey key = keys.parseExtents(kv.key());
        List<Extent> extents = ExtentRange.parseFrom(kv.value()).getExtentsList();
        int last = inos.size() - 1;
        if (last < 0 || inos.get(last) != key.ino()) {
            inos.add(key.ino());
            index.addLast();
            blocks.add(0);
            epochs.add(0);
            ranges.add(key.range());
            last++;
        }
        if (extents.isEmpty()) {
            findings.add(Kind.EXTENT_RECORD, "a record without extents", kv.key());
        }
        if (key.range() < 0 || key.range() > Long.MAX_VALUE / ExtentMap.RANGE_BLOCKS - 1) {
            findings.add(Kind.EXTENTS_OVERLAP, "no file has a range " + Long.toUnsignedString(key.range()), kv.key());
            return;
        }
        long from = key.range() * ExtentMap.RANGE_BLOCKS;
        check(kv.key(), key.ino(), extents, from, from + ExtentMap.RANGE_BLOCKS);
        blocks.set(last, blocks.get(last) + sum);
        epochs.set(last, Math.max(epochs.get(last), newest));
    }

    boolean hasRecords(long ino) {
        return index.of(ino) >= 0;
    }

    /** The extents of an inode. Returns the newest epoch among them, 0 if there are none. */
    long inode(Key key, long ino, Inode inode) {
        check(key, ino, inode.getExtentsList(), 0, Long.MAX_VALUE);
        int records = index.of(ino);
        boolean hasRecords = (inode.getFlags() & FLAG_EXTENT_RECORDS) != 0;
        if (hasRecords && inode.getExtentsCount() > 0) {
            findings.add(Kind.EXTENT_RECORD, "the inode says that its extents are in records, and has some itself", key);
        } else if (!hasRecords && records >= 0) {
            findings.add(Kind.EXTENT_RECORD, "the inode does not say that it has records of extents", keys.extents(ino, ranges.get(records)), key);
        }
        if (records >= 0) {
            claimed.set(records);
            sum += blocks.get(records);
            newest = Math.max(newest, epochs.get(records));
        }
        if (sum != inode.getBlocks()) {
            findings.add(Kind.BLOCK_COUNT, "the inode counts " + inode.getBlocks() + " blocks, its extents have " + sum, key);
        }
        return newest;
    }

    private void check(Key key, long ino, List<Extent> extents, long from, long to) {
        logicalEnd = from;
        sum = 0;
        newest = 0;
        for (Extent e : extents) {
            long length = Integer.toUnsignedLong(e.getLength());
            if (length == 0 || length > ExtentMap.MAX_EXTENT_BLOCKS || e.getLogicalBlock() < logicalEnd || e.getLogicalBlock() > to - length) {
                findings.add(Kind.EXTENTS_OVERLAP, "the extent of " + length + " blocks at the file's block " + Long.toUnsignedString(e.getLogicalBlock()) + " is not within ["
                        + logicalEnd + ", " + to + "), where it has to be", key);
            }
            if (!geometry.usable(e.getDeviceBlock()) || e.getDeviceBlock() > geometry.deviceBlocks() - length) {
                findings.add(Kind.EXTENT_OUTSIDE, "the extent at the file's block " + e.getLogicalBlock() + " has device blocks [" + e.getDeviceBlock() + ", " + (e.getDeviceBlock() + length)
                        + "), which are not in [1, " + geometry.deviceBlocks() + ")", key);
            } else if (length > 0) {
                runs.addExtent(e.getDeviceBlock(), (int) length, e.getLogicalBlock(), ino);
            }
            if (e.getEpoch() <= 0 || e.getEpoch() > revision) {
                findings.add(Kind.EXTENT_EPOCH, "the extent at the file's block " + e.getLogicalBlock() + " has epoch " + Long.toUnsignedString(e.getEpoch()) + ", which was no revision yet", key);
            } else {
                newest = Math.max(newest, e.getEpoch());
            }
            logicalEnd = Math.max(logicalEnd, e.getLogicalBlock() + length);
            sum += length;
        }
    }

    void finish() {
        for (int i = 0; i < inos.size(); i++) {
            if (!claimed.get(i)) {
                findings.add(Kind.EXTENT_RECORD, "there is no inode " + inos.get(i), keys.extents(inos.get(i), ranges.get(i)));
            }
        }
    }
}
