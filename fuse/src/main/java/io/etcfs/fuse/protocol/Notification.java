package io.etcfs.fuse.protocol;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Messages that nobody asked for (enum fuse_notify_code). Each method writes one at {@code at}, header included, and returns its length in bytes. */
public final class Notification {
    private static final int INVAL_INODE = 2;
    private static final int INVAL_ENTRY = 3;
    private static final int PRUNE = 9;
    private static final int EXPIRE_ONLY = 1;
    /** FUSE_NAME_MAX of fs/fuse/fuse_i.h. */
    private static final int MAX_NAME_BYTES = 1024;
    /** Without the name and its NUL. */
    private static final int INVAL_ENTRY_BYTES = Exchange.OUT_HEADER_BYTES + 16;

    /** Inodes in one PRUNE. */
    public static final int MAX_PRUNED = 256;

    /** Longest message, in bytes. */
    public static final int MAX_BYTES = Exchange.OUT_HEADER_BYTES + 16 + 8 * MAX_PRUNED;

    /** Attributes only. */
    public static int invalidateAttributes(MemorySegment memory, long at, long ino) {
        return invalidateInode(memory, at, ino, -1, 0);
    }

    /** Attributes and the pages of a range; {@code lengthBytes} 0: to the end. */
    public static int invalidatePages(MemorySegment memory, long at, long ino, long offsetBytes, long lengthBytes) {
        return invalidateInode(memory, at, ino, offsetBytes, lengthBytes);
    }

    private static int invalidateInode(MemorySegment memory, long at, long ino, long offset, long length) {
        int bytes = header(memory, at, INVAL_INODE, 24);
        Wire.u64(memory, at + 16, ino);
        Wire.u64(memory, at + 24, offset);
        Wire.u64(memory, at + 32, length);
        return bytes;
    }

    /** {@code expireOnly}: only if {@link Negotiation#canExpireEntries}. */
    public static int invalidateEntry(MemorySegment memory, long at, long parent, byte[] name, boolean expireOnly) {
        if (name.length > MAX_NAME_BYTES) {
            throw new IllegalArgumentException("a name of " + name.length + " bytes");
        }
        int bytes = header(memory, at, INVAL_ENTRY, 16 + name.length + 1);
        Wire.u64(memory, at + 16, parent);
        Wire.u32(memory, at + 24, name.length);
        Wire.u32(memory, at + 28, expireOnly ? EXPIRE_ONLY : 0);
        Wire.bytes(memory, at + INVAL_ENTRY_BYTES, name);
        memory.set(ValueLayout.JAVA_BYTE, at + INVAL_ENTRY_BYTES + name.length, (byte) 0);
        return bytes;
    }

    /** Only if {@link Negotiation#canPrune}. struct fuse_notify_prune_out (count, padding, spare), then the inodes. */
    public static int prune(MemorySegment memory, long at, long[] inos) {
        if (inos.length > MAX_PRUNED) {
            throw new IllegalArgumentException(inos.length + " inodes");
        }
        int bytes = header(memory, at, PRUNE, 16 + 8 * inos.length);
        Wire.u32(memory, at + 16, inos.length);
        Wire.u32(memory, at + 20, 0);
        Wire.u64(memory, at + 24, 0);
        for (int i = 0; i < inos.length; i++) {
            Wire.u64(memory, at + 32 + 8L * i, inos[i]);
        }
        return bytes;
    }

    private static int header(MemorySegment memory, long at, int code, int bodyBytes) {
        int length = Exchange.OUT_HEADER_BYTES + bodyBytes;
        Wire.u32(memory, at, length);
        Wire.u32(memory, at + 4, code);
        Wire.u64(memory, at + 8, 0);
        return length;
    }

    private Notification() {}
}
