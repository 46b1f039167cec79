package io.etcfs.core.check;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.FileType;
import io.etcfs.core.record.proto.Inode;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Inodes and the tree that names make of them: {@code inode:}, {@code inode_alloc_counter}. An inode is spoken of by its place in key order. What else there
 * is of single inodes is {@link StateCheck}'s.
 */
final class InodeCheck {
    static final long ROOT = 1;
    private static final int FORMAT_MASK = 0170000;
    private static final long SIZE_MAX = 16L << 40;
    private static final int SYMLINK_MAX = 4095;

    private final Keys keys;
    private final Findings findings;
    private final ExtentCheck extents;
    private final Homes homesSeen = new Homes();
    private final LongList inos = new LongList();
    private final LongIndex index = new LongIndex(inos);
    private final LongList homes = new LongList();
    private final LongList parents = new LongList();
    private final IntList types = new IntList();
    private final IntList nlinks = new IntList();
    private final IntList names = new IntList();
    private final IntList subdirectories = new IntList();
    /** The directory's place and the name's, of the last name. */
    private final IntList directoryOf = new IntList();
    private final IntList nameOf = new IntList();
    /** Places of numbers that were there before, in damaged filesystems only. */
    private final Map<Long, List<Integer>> again = new HashMap<>();
    /** Of inodes with {@code dead_from}: the block. */
    private final Map<Long, Long> deadFrom = new LinkedHashMap<>();
    private long directories;

    InodeCheck(Keys keys, Findings findings, ExtentCheck extents) {
        this.keys = keys;
        this.findings = findings;
        this.extents = extents;
    }

    void inode(KeyValue kv, StateCheck state) throws InvalidProtocolBufferException {
        Keys.InodeKey key = keys.parseInode(kv.key());
        Inode inode = Inode.parseFrom(kv.value());
        FileType type = typeOf(inode.getMode());
        add(key, inode, type);
        if (key.ino() == key.home() != (type == FileType.DIRECTORY)) {
            findings.add(Kind.INODE_HOME, (type == FileType.DIRECTORY ? "a directory" : "of type " + type) + " in home " + key.home(), kv.key());
        }
        checkFields(kv.key(), inode, type);
        checkSize(kv.key(), inode, type);
        if (inode.getDeadFrom() != 0) {
            deadFrom.put(key.ino(), inode.getDeadFrom() - 1);
        }
        homesSeen.add(key.home(), key.ino(), extents.inode(kv.key(), key.ino(), inode));
        for (ByteString name : inode.getLargeXattrsList()) {
            state.lists(key, name.toByteArray());
        }
    }

    private void add(Keys.InodeKey key, Inode inode, FileType type) {
        int place = inos.size();
        int before = index.of(key.ino());
        inos.add(key.ino());
        homes.add(key.home());
        parents.add(inode.getParent());
        types.add(type.getNumber());
        nlinks.add(inode.getNlink());
        names.add(0);
        subdirectories.add(0);
        directoryOf.add(-1);
        nameOf.add(-1);
        index.addLast();
        directories += type == FileType.DIRECTORY ? 1 : 0;
        if (before >= 0) {
            again.computeIfAbsent(key.ino(), ino -> new ArrayList<>()).add(place);
            findings.add(Kind.INODE_TWICE, "inode " + key.ino() + " is also in home " + homes.get(before), key(place), key(before));
        }
    }

    private static FileType typeOf(int mode) {
        return switch (mode & FORMAT_MASK) {
            case 0100000 -> FileType.REGULAR;
            case 0040000 -> FileType.DIRECTORY;
            case 0120000 -> FileType.SYMLINK;
            case 0010000 -> FileType.FIFO;
            case 0020000 -> FileType.CHARACTER_DEVICE;
            case 0060000 -> FileType.BLOCK_DEVICE;
            case 0140000 -> FileType.SOCKET;
            default -> FileType.FILE_TYPE_UNSPECIFIED;
        };
    }

    private void checkFields(Key key, Inode inode, FileType type) {
        if (type == FileType.FILE_TYPE_UNSPECIFIED) {
            findings.add(Kind.INODE_FIELDS, "mode " + Integer.toOctalString(inode.getMode()) + " has no type", key);
        } else if (type != FileType.REGULAR && (inode.getValid() != 0 || inode.getDeadFrom() != 0 || inode.getExtentsCount() > 0 || inode.getFlags() != 0 || extents.hasRecords(inos.get(inos.size() - 1)))) {
            findings.add(Kind.INODE_FIELDS, "of type " + type + " with what only a regular file has: valid, dead_from, flags or extents", key);
        } else if (type == FileType.SYMLINK ? inode.getSymlinkTarget().size() != inode.getSize() || inode.getSize() > SYMLINK_MAX : !inode.getSymlinkTarget().isEmpty()) {
            findings.add(Kind.INODE_FIELDS, "of type " + type + " and size " + inode.getSize() + " with a symlink target of " + inode.getSymlinkTarget().size() + " bytes", key);
        }
    }

    private void checkSize(Key key, Inode inode, FileType type) {
        if (type != FileType.REGULAR) {
            return;
        }
        if (Long.compareUnsigned(inode.getSize(), SIZE_MAX) > 0) {
            findings.add(Kind.INODE_SIZE, "size " + Long.toUnsignedString(inode.getSize()) + " is above 16 TiB", key);
        }
        if (Long.compareUnsigned(inode.getValid(), inode.getSize()) > 0) {
            findings.add(Kind.INODE_SIZE, "valid " + Long.toUnsignedString(inode.getValid()) + " is above size " + Long.toUnsignedString(inode.getSize()), key);
        } else if (inode.getDeadFrom() != 0 && (inode.getValid() + BlockDevice.BLOCK_BYTES - 1) / BlockDevice.BLOCK_BYTES > inode.getDeadFrom() - 1) {
            findings.add(Kind.INODE_SIZE, "valid " + inode.getValid() + " is beyond block " + (inode.getDeadFrom() - 1) + ", from which a truncation is freed", key);
        }
    }

    // ---- for others

    /** -1: no such inode. */
    int place(long ino) {
        return index.of(ino);
    }

    /** -1: no such inode in that home. */
    int place(long home, long ino) {
        int first = index.of(ino);
        if (first < 0 || homes.get(first) == home) {
            return first;
        }
        return again.getOrDefault(ino, List.of()).stream().filter(p -> homes.get(p) == home).findFirst().orElse(-1);
    }

    Key key(int place) {
        return keys.inode(homes.get(place), inos.get(place));
    }

    long home(int place) {
        return homes.get(place);
    }

    /** {@link FileType}'s number. */
    int type(int place) {
        return types.get(place);
    }

    boolean isDirectory(int place) {
        return types.get(place) == FileType.DIRECTORY_VALUE;
    }

    int nlink(int place) {
        return nlinks.get(place);
    }

    /** How many names it has; after {@link NameCheck#finish}. */
    int names(int place) {
        return names.get(place);
    }

    long count() {
        return inos.size();
    }

    long directories() {
        return directories;
    }

    Homes homes() {
        return homesSeen;
    }

    Map<Long, Long> deadFrom() {
        return deadFrom;
    }

    /** A name of an inode; {@code directory} is the place of the one that it is in, or -1. */
    void named(int inode, int directory, int name) {
        names.increment(inode);
        nameOf.set(inode, name);
        directoryOf.set(inode, directory);
        if (directory >= 0 && isDirectory(inode)) {
            subdirectories.increment(directory);
        }
    }

    // ---- the end: all names and orphans are known

    void finish(NameCheck nameCheck, StateCheck state, long nextIno) {
        int root = place(ROOT);
        if (root < 0 || !isDirectory(root)) {
            findings.add(Kind.NO_ROOT, "the root directory is missing", keys.inode(ROOT, ROOT));
        }
        for (int i = 0; i < inos.size(); i++) {
            if (inos.get(i) == 0 || nextIno != 0 && Long.compareUnsigned(inos.get(i), nextIno) >= 0) {
                findings.add(Kind.INODE_NUMBER, "the next number to give is " + nextIno, key(i), keys.inodeAllocCounter());
            }
            if (isDirectory(i)) {
                finishDirectory(i, nameCheck);
            } else if (!state.isOrphan(inos.get(i), homes.get(i))) {
                finishFile(i);
            }
        }
        findCycles();
    }

    private void finishDirectory(int i, NameCheck nameCheck) {
        boolean root = inos.get(i) == ROOT;
        if (names.get(i) != (root ? 0 : 1)) {
            findings.add(Kind.DIRECTORY_NAMES, "directory " + inos.get(i) + " has " + names.get(i) + " names", key(i));
        } else {
            long parent = root || directoryOf.get(i) < 0 ? parents.get(i) : inos.get(directoryOf.get(i));
            if (root && parents.get(i) != ROOT) {
                findings.add(Kind.DIRECTORY_PARENT, "the root's parent is " + parents.get(i), key(i));
            } else if (parents.get(i) != parent) {
                findings.add(Kind.DIRECTORY_PARENT, "its parent is " + parents.get(i) + ", its name is in directory " + parent, key(i), nameCheck.key(nameOf.get(i)));
            }
        }
        if (nlinks.get(i) != 2 + subdirectories.get(i)) {
            findings.add(Kind.LINK_COUNT, "nlink is " + Integer.toUnsignedString(nlinks.get(i)) + ", there are " + subdirectories.get(i) + " subdirectories", key(i));
        }
    }

    private void finishFile(int i) {
        if (names.get(i) == 0 && again.getOrDefault(inos.get(i), List.of()).contains(i)) {
            // Found already, as a second one of its number.
            return;
        }
        if (names.get(i) == 0) {
            findings.add(Kind.NAMELESS, "inode " + inos.get(i) + " has no name and is no orphan", key(i));
        } else if (nlinks.get(i) != names.get(i)) {
            findings.add(Kind.LINK_COUNT, "nlink is " + Integer.toUnsignedString(nlinks.get(i)) + ", there are " + names.get(i) + " names", key(i));
        }
    }

    /** Follows each directory up until it meets one that was followed before. Where that is of the same walk, it goes round. */
    private void findCycles() {
        int[] walk = new int[inos.size()];
        Arrays.fill(walk, -1);
        for (int start = 0; start < walk.length; start++) {
            int at = isDirectory(start) ? start : -1;
            while (at >= 0 && walk[at] < 0) {
                walk[at] = start;
                at = directoryOf.get(at);
            }
            if (at >= 0 && walk[at] == start) {
                reportCycle(at);
            }
        }
    }

    private void reportCycle(int start) {
        List<Key> members = new ArrayList<>();
        int at = start;
        do {
            members.add(key(at));
            at = directoryOf.get(at);
        } while (at != start);
        findings.add(Kind.DIRECTORY_CYCLE, members.size() == 1 ? "directory " + inos.get(start) + " is in itself" : members.size() + " directories are in each other, and not below the root",
                members.toArray(Key[]::new));
    }
}
