package io.etcfs.fuse.protocol;

import io.etcfs.core.fs.Attributes;
import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.Operations;
import io.etcfs.core.lock.HeldLock;
import io.etcfs.core.lock.LockOwner;
import io.etcfs.core.lock.LockRequest;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** Answers what the benchmark asks, always the same, and refuses the rest. */
final class InstantOperations implements Operations {
    static final int NAMES = 100;
    private static final byte[] NAME = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);
    private static final long NOW_NS = 1_790_000_000_123_456_789L;
    private static final Attributes ATTRIBUTES = new Attributes(4243, 0100644, 1000, 1000, 1, 8192, 16, NOW_NS, NOW_NS, NOW_NS, NOW_NS, 0);
    private static final Entry ENTRY = new Entry(4243, 0, ATTRIBUTES, 1_500_000_000L, 1_500_000_000L);
    private static final Attr ATTR = new Attr(ATTRIBUTES, 1_500_000_000L);
    private static final Created CREATED = new Created(ENTRY, new Opened(9, 2));

    @Override
    public boolean grantsStand(Call call) {
        return true;
    }

    @Override
    public void replied(Call call) {}

    @Override
    public Entry lookup(Call call, long parent, byte[] name) {
        return ENTRY;
    }

    @Override
    public void forget(long ino, long count) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Attr getattr(Call call, long ino, long handle) {
        return ATTR;
    }

    @Override
    public Attr setattr(Call call, long ino, Change change) {
        throw new UnsupportedOperationException();
    }

    @Override
    public byte[] readlink(Call call, long ino) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Entry symlink(Call call, long parent, byte[] name, byte[] target) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Entry mknod(Call call, long parent, byte[] name, int mode, int umask, int rdev) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Entry mkdir(Call call, long parent, byte[] name, int mode, int umask) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void unlink(Call call, long parent, byte[] name) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void rmdir(Call call, long parent, byte[] name) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void rename(Call call, long parent, byte[] name, long newParent, byte[] newName, int flags) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Entry link(Call call, long ino, long newParent, byte[] newName) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Opened open(Call call, long ino, int flags, boolean killPrivileges) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Created tmpfile(Call call, long parent, int mode, int umask, int flags) {
        return CREATED;
    }

    @Override
    public Created create(Call call, long parent, byte[] name, int mode, int umask, int flags) {
        return CREATED;
    }

    @Override
    public MemorySegment read(Call call, long ino, long handle, long offset, int size, int openFlags, MemorySegment scratch) {
        return scratch.asSlice(0, size);
    }

    @Override
    public int write(Call call, long ino, long handle, long offset, MemorySegment data, int openFlags, boolean fromPageCache, boolean killPrivileges) {
        return (int) data.byteSize();
    }

    @Override
    public void flush(Call call, long ino, long handle, long lockOwner) {
        throw new UnsupportedOperationException();
    }

    @Override
    public LockRequest.Conflict getlk(Call call, long ino, long handle, HeldLock wanted) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void lock(Call call, long ino, long handle, HeldLock wanted, boolean wait) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void unlock(Call call, long ino, long handle, LockOwner owner, long start, long end) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void release(Call call, long ino, long handle) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void fsync(Call call, long ino, long handle, boolean dataOnly) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Opened opendir(Call call, long ino) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void readdir(Call call, long ino, long handle, long cookie, boolean withAttributes, DirectorySink sink) {
        for (int i = 0; i < NAMES; i++) {
            sink.add(NAME, ENTRY.ino() + i, 8, 1000 + i, ENTRY);
        }
    }

    @Override
    public void releasedir(Call call, long ino, long handle) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void fsyncdir(Call call, long ino, long handle, boolean dataOnly) {
        throw new UnsupportedOperationException();
    }

    @Override
    public FilesystemStatus statfs(Call call) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void setxattr(Call call, long ino, byte[] name, byte[] value, int flags) {
        throw new UnsupportedOperationException();
    }

    @Override
    public byte[] getxattr(Call call, long ino, byte[] name) {
        throw new UnsupportedOperationException();
    }

    @Override
    public List<byte[]> listxattr(Call call, long ino) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void removexattr(Call call, long ino, byte[] name) {
        throw new UnsupportedOperationException();
    }

    @Override
    public long lseek(Call call, long ino, long handle, long offset, int whence) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void fallocate(Call call, long ino, long handle, long offset, long length, int mode) {
        throw new UnsupportedOperationException();
    }
}
