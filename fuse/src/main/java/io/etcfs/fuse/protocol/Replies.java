package io.etcfs.fuse.protocol;

import io.etcfs.core.fs.Attributes;
import io.etcfs.core.fs.Operations.Attr;
import io.etcfs.core.fs.Operations.Entry;
import io.etcfs.core.fs.Operations.FilesystemStatus;
import io.etcfs.core.fs.Operations.Opened;
import io.etcfs.core.lock.LockRequest;
import java.lang.foreign.MemorySegment;

/** The structures that replies are made of. Each method writes one at {@code at} and returns its length in bytes. */
final class Replies {
    static final int ENTRY_BYTES = 128;
    private static final int ATTRIBUTES_BYTES = 88;
    private static final int ATTR_BYTES = 16 + ATTRIBUTES_BYTES;
    private static final int STATX_BYTES = 288;
    private static final int LOCK_BYTES = 24;
    private static final int STATFS_BYTES = 80;
    private static final long NS_PER_S = 1_000_000_000L;
    private static final int BLOCK_BYTES = 4096;
    /** STATX_BASIC_STATS and STATX_BTIME of linux/stat.h. */
    private static final int STATX_ALL = 0xfff;

    /** struct fuse_entry_out. Null attributes: node id 0, there is no such name. */
    static int entry(MemorySegment memory, long at, Entry entry) {
        Attributes attributes = entry.attributes();
        if (attributes == null) {
            noEntry(memory, at);
            validity(memory, at + 16, at + 32, entry.entryValidNs());
            return ENTRY_BYTES;
        }
        Wire.u64(memory, at, entry.ino());
        Wire.u64(memory, at + 8, entry.generation());
        validity(memory, at + 16, at + 32, entry.entryValidNs());
        validity(memory, at + 24, at + 36, entry.attributesValidNs());
        attributes(memory, at + 40, attributes);
        return ENTRY_BYTES;
    }

    /** A fuse_entry_out that says nothing: in READDIRPLUS the kernel then looks the name up when it needs it. */
    static int noEntry(MemorySegment memory, long at) {
        memory.asSlice(at, ENTRY_BYTES).fill((byte) 0);
        return ENTRY_BYTES;
    }

    /** struct fuse_attr_out. */
    static int attr(MemorySegment memory, long at, Attr attr) {
        validity(memory, at, at + 8, attr.validNs());
        Wire.u32(memory, at + 12, 0);
        attributes(memory, at + 16, attr.attributes());
        return ATTR_BYTES;
    }

    /** struct fuse_open_out. */
    static int opened(MemorySegment memory, long at, Opened opened) {
        Wire.u64(memory, at, opened.handle());
        Wire.u32(memory, at + 8, opened.openFlags());
        Wire.u32(memory, at + 12, 0);
        return 16;
    }

    /** struct fuse_lk_out. Null: F_UNLCK, nothing is in the way. */
    static int lock(MemorySegment memory, long at, LockRequest.Conflict conflict) {
        Wire.u64(memory, at, conflict == null ? 0 : conflict.start());
        Wire.u64(memory, at + 8, conflict == null ? 0 : conflict.end());
        Wire.u32(memory, at + 16, conflict == null ? 2 : conflict.exclusive() ? 1 : 0);
        Wire.u32(memory, at + 20, conflict == null ? 0 : conflict.pid());
        return LOCK_BYTES;
    }

    /** struct fuse_attr. */
    private static void attributes(MemorySegment memory, long at, Attributes a) {
        Wire.u64(memory, at, a.ino());
        Wire.u64(memory, at + 8, a.size());
        Wire.u64(memory, at + 16, a.blocks());
        time(memory, at + 24, at + 48, a.atimeNs());
        time(memory, at + 32, at + 52, a.mtimeNs());
        time(memory, at + 40, at + 56, a.ctimeNs());
        Wire.u32(memory, at + 60, a.mode());
        Wire.u32(memory, at + 64, a.nlink());
        Wire.u32(memory, at + 68, a.uid());
        Wire.u32(memory, at + 72, a.gid());
        Wire.u32(memory, at + 76, a.rdev());
        Wire.u32(memory, at + 80, BLOCK_BYTES);
        Wire.u32(memory, at + 84, 0);
    }

    /** struct fuse_statx_out with its fuse_statx: as fuse_attr_out, and the birth time. */
    static int statx(MemorySegment memory, long at, Attr attr) {
        memory.asSlice(at, STATX_BYTES).fill((byte) 0);
        validity(memory, at, at + 8, attr.validNs());
        Attributes a = attr.attributes();
        long stat = at + 32;
        Wire.u32(memory, stat, STATX_ALL);
        Wire.u32(memory, stat + 4, BLOCK_BYTES);
        Wire.u32(memory, stat + 16, a.nlink());
        Wire.u32(memory, stat + 20, a.uid());
        Wire.u32(memory, stat + 24, a.gid());
        Wire.u16(memory, stat + 28, a.mode());
        Wire.u64(memory, stat + 32, a.ino());
        Wire.u64(memory, stat + 40, a.size());
        Wire.u64(memory, stat + 48, a.blocks());
        time(memory, stat + 64, stat + 72, a.atimeNs());
        time(memory, stat + 80, stat + 88, a.btimeNs());
        time(memory, stat + 96, stat + 104, a.ctimeNs());
        time(memory, stat + 112, stat + 120, a.mtimeNs());
        Wire.u32(memory, stat + 128, (a.rdev() & 0xfff00) >>> 8);
        Wire.u32(memory, stat + 132, (a.rdev() & 0xff) | ((a.rdev() >>> 12) & 0xfff00));
        return STATX_BYTES;
    }

    /** struct fuse_kstatfs. */
    static int statfs(MemorySegment memory, long at, FilesystemStatus status) {
        memory.asSlice(at, STATFS_BYTES).fill((byte) 0);
        Wire.u64(memory, at, status.blocks());
        Wire.u64(memory, at + 8, status.freeBlocks());
        Wire.u64(memory, at + 16, status.availableBlocks());
        Wire.u64(memory, at + 24, status.files());
        Wire.u64(memory, at + 32, status.freeFiles());
        Wire.u32(memory, at + 40, status.blockSize());
        Wire.u32(memory, at + 44, status.nameMax());
        Wire.u32(memory, at + 48, status.blockSize());
        return STATFS_BYTES;
    }

    /** Time since the epoch; before it the seconds are negative and the nanoseconds count up. */
    private static void time(MemorySegment memory, long secondsAt, long nanosAt, long ns) {
        Wire.u64(memory, secondsAt, Math.floorDiv(ns, NS_PER_S));
        Wire.u32(memory, nanosAt, (int) Math.floorMod(ns, NS_PER_S));
    }

    /** Makes the validities 0 of the reply to a request of that kind, whose body is at {@code at}. */
    static void withoutValidity(Opcode opcode, MemorySegment memory, long at, int bodyBytes) {
        switch (opcode) {
            case LOOKUP, SYMLINK, MKNOD, MKDIR, LINK, CREATE -> entryWithoutValidity(memory, at);
            case GETATTR, SETATTR, STATX -> validity(memory, at, at + 8, 0);
            case READDIRPLUS -> DirectoryReply.withoutValidity(memory, at, bodyBytes);
            case null, default -> { }
        }
    }

    static void entryWithoutValidity(MemorySegment memory, long at) {
        validity(memory, at + 16, at + 32, 0);
        validity(memory, at + 24, at + 36, 0);
    }

    private static void validity(MemorySegment memory, long secondsAt, long nanosAt, long ns) {
        time(memory, secondsAt, nanosAt, Math.max(0, ns));
    }

    private Replies() {}
}
