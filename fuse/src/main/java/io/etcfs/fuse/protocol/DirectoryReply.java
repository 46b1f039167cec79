package io.etcfs.fuse.protocol;

import io.etcfs.core.fs.Operations.DirectorySink;
import io.etcfs.core.fs.Operations.Entry;
import java.lang.foreign.MemorySegment;

/** The body of a READDIR (struct fuse_dirent) or READDIRPLUS (struct fuse_direntplus), written entry by entry. */
final class DirectoryReply implements DirectorySink {
    private static final int DIRENT_BYTES = 24;

    private final MemorySegment memory;
    private final long start;
    private final long end;
    private final boolean withAttributes;
    private long at;

    DirectoryReply(MemorySegment memory, long start, int capacity, boolean withAttributes) {
        this.memory = memory;
        this.start = start;
        this.end = start + capacity;
        this.withAttributes = withAttributes;
        this.at = start;
    }

    int length() {
        return (int) (at - start);
    }

    @Override
    public boolean hasRoomFor(int nameLength) {
        return at + size(nameLength) <= end;
    }

    private long size(int nameLength) {
        return Wire.align8((withAttributes ? Replies.ENTRY_BYTES : 0) + DIRENT_BYTES + (long) nameLength);
    }

    @Override
    public void add(byte[] name, long ino, int type, long cookie, Entry entry) {
        if (!hasRoomFor(name.length)) {
            throw new IllegalStateException("no room for a name of " + name.length + " bytes");
        }
        long next = at + size(name.length);
        if (withAttributes) {
            // The kernel counts no lookup for the two dots, so it is told nothing about them that a FORGET would have to give back.
            at += entry == null || isDots(name) ? Replies.noEntry(memory, at) : Replies.entry(memory, at, entry);
        }
        Wire.u64(memory, at, ino);
        Wire.u64(memory, at + 8, cookie);
        Wire.u32(memory, at + 16, name.length);
        Wire.u32(memory, at + 20, type);
        // The padding first: it is in the last eight bytes, which the name may fill.
        Wire.u64(memory, next - 8, 0);
        Wire.bytes(memory, at + DIRENT_BYTES, name);
        at = next;
    }

    /** Of a READDIRPLUS: makes the validities of all its entries 0. */
    static void withoutValidity(MemorySegment memory, long start, int bytes) {
        long at = start;
        while (at < start + bytes) {
            Replies.entryWithoutValidity(memory, at);
            at += Wire.align8(Replies.ENTRY_BYTES + DIRENT_BYTES + Wire.u32(memory, at + Replies.ENTRY_BYTES + 16));
        }
    }

    private static boolean isDots(byte[] name) {
        return name.length <= 2 && name.length > 0 && name[0] == '.' && name[name.length - 1] == '.';
    }
}
