package io.etcfs.linux.mount;

import io.etcfs.core.fs.Attributes;
import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.fs.Operations;
import io.etcfs.core.lock.HeldLock;
import io.etcfs.core.lock.LockOwner;
import io.etcfs.core.lock.LockRequest;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

/** A filesystem in the heap, with a place before each operation where a test can step in. What it tells the kernel is valid for {@link #validNs}. */
final class MemoryFilesystem implements Operations {
    /** Called without a lock, before the operation has any effect. */
    interface Before {
        void operation(String operation, Call call, long ino, MemorySegment data) throws FsException;
    }

    private static final int S_IFDIR = 0040000;
    private static final int S_IFREG = 0100000;
    private static final int S_IFLNK = 0120000;
    private static final int S_IFMT = 0170000;

    private static final class Node {
        final long ino;
        int mode;
        int uid;
        int gid;
        int nlink = 1;
        byte[] data = new byte[0];
        long atimeNs;
        long mtimeNs;
        long ctimeNs;
        final TreeMap<String, Long> children = new TreeMap<>();
        final TreeMap<String, byte[]> xattrs = new TreeMap<>();

        Node(long ino, int mode) {
            this.ino = ino;
            this.mode = mode;
        }
    }

    volatile Before before = (operation, call, ino, data) -> { };
    volatile long validNs;
    /** False: each answer of LOOKUP and GETATTR is too old to grant anything when it is about to be written. */
    volatile boolean grantsStand = true;
    final AtomicInteger lookups = new AtomicInteger();
    final AtomicInteger getattrs = new AtomicInteger();
    final AtomicLong forgotten = new AtomicLong();

    private final ReentrantLock lock = new ReentrantLock();
    private final Map<Long, Node> nodes = new ConcurrentHashMap<>();
    private long nextIno = 2;
    private long nextHandle = 1;

    MemoryFilesystem() {
        Node root = new Node(1, S_IFDIR | 0755);
        root.nlink = 2;
        nodes.put(1L, root);
    }

    /** Changes a file behind the kernel's back. */
    void put(long ino, byte[] data) {
        nodes.get(ino).data = data.clone();
    }

    long inoOf(String name) {
        return nodes.get(1L).children.get(name);
    }

    void removeFromRoot(String name) {
        nodes.get(1L).children.remove(name);
    }

    private static String text(byte[] name) {
        return new String(name, StandardCharsets.UTF_8);
    }

    private static FsException error(Errno errno) {
        return new FsException(errno);
    }

    private Node node(long ino) throws FsException {
        Node node = nodes.get(ino);
        if (node == null) {
            throw error(Errno.ESTALE);
        }
        return node;
    }

    private Node child(long parent, byte[] name) throws FsException {
        Long ino = node(parent).children.get(text(name));
        if (ino == null) {
            throw error(Errno.ENOENT);
        }
        return node(ino);
    }

    private Attributes attributes(Node n) {
        return new Attributes(n.ino, n.mode, n.uid, n.gid, n.nlink, n.data.length, (n.data.length + 511) / 512, n.atimeNs, n.mtimeNs, n.ctimeNs,
                1_234_567_890L, 0);
    }

    private Entry entry(Node n) {
        return new Entry(n.ino, 0, attributes(n), validNs, validNs);
    }

    private Entry make(Call call, long parent, byte[] name, int mode) throws FsException {
        lock.lock();
        try {
            Node directory = node(parent);
            if (directory.children.containsKey(text(name))) {
                throw error(Errno.EEXIST);
            }
            Node node = new Node(nextIno++, mode);
            node.uid = call.uid();
            node.gid = call.gid();
            nodes.put(node.ino, node);
            directory.children.put(text(name), node.ino);
            if ((mode & S_IFMT) == S_IFDIR) {
                node.nlink = 2;
                directory.nlink++;
            }
            return entry(node);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean grantsStand(Call call) {
        return grantsStand;
    }

    @Override
    public void replied(Call call) {}

    @Override
    public Entry lookup(Call call, long parent, byte[] name) throws FsException {
        before.operation("lookup", call, parent, null);
        lookups.incrementAndGet();
        call.grants(System.nanoTime());
        return entry(child(parent, name));
    }

    @Override
    public void forget(long ino, long count) {
        forgotten.addAndGet(count);
    }

    @Override
    public Attr getattr(Call call, long ino, long handle) throws FsException {
        before.operation("getattr", call, ino, null);
        getattrs.incrementAndGet();
        call.grants(System.nanoTime());
        return new Attr(attributes(node(ino)), validNs);
    }

    @Override
    public Attr setattr(Call call, long ino, Change change) throws FsException {
        before.operation("setattr", call, ino, null);
        Node n = node(ino);
        if (change.mode() != null) {
            n.mode = n.mode & S_IFMT | change.mode();
        }
        if (change.uid() != null) {
            n.uid = change.uid();
        }
        if (change.gid() != null) {
            n.gid = change.gid();
        }
        if (change.size() != null) {
            n.data = Arrays.copyOf(n.data, change.size().intValue());
        }
        if (change.mtimeNs() != null) {
            n.mtimeNs = change.mtimeNs() == Change.NOW_NS ? System.currentTimeMillis() * 1_000_000L : change.mtimeNs();
        }
        if (change.atimeNs() != null) {
            n.atimeNs = change.atimeNs() == Change.NOW_NS ? System.currentTimeMillis() * 1_000_000L : change.atimeNs();
        }
        return new Attr(attributes(n), validNs);
    }

    @Override
    public byte[] readlink(Call call, long ino) throws FsException {
        return node(ino).data;
    }

    @Override
    public Entry symlink(Call call, long parent, byte[] name, byte[] target) throws FsException {
        Entry entry = make(call, parent, name, S_IFLNK | 0777);
        node(entry.ino()).data = target;
        return entry(node(entry.ino()));
    }

    @Override
    public Entry mknod(Call call, long parent, byte[] name, int mode, int umask, int rdev) throws FsException {
        return make(call, parent, name, mode & ~umask);
    }

    @Override
    public Entry mkdir(Call call, long parent, byte[] name, int mode, int umask) throws FsException {
        before.operation("mkdir", call, parent, null);
        return make(call, parent, name, S_IFDIR | mode & ~umask & 07777);
    }

    @Override
    public void unlink(Call call, long parent, byte[] name) throws FsException {
        before.operation("unlink", call, parent, null);
        lock.lock();
        try {
            child(parent, name).nlink--;
            node(parent).children.remove(text(name));
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void rmdir(Call call, long parent, byte[] name) throws FsException {
        lock.lock();
        try {
            if (!child(parent, name).children.isEmpty()) {
                throw error(Errno.ENOTEMPTY);
            }
            node(parent).children.remove(text(name));
            node(parent).nlink--;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void rename(Call call, long parent, byte[] name, long newParent, byte[] newName, int flags) throws FsException {
        before.operation("rename", call, parent, null);
        lock.lock();
        try {
            Node moved = child(parent, name);
            if (flags == RENAME_NOREPLACE && node(newParent).children.containsKey(text(newName))) {
                throw error(Errno.EEXIST);
            }
            node(parent).children.remove(text(name));
            node(newParent).children.put(text(newName), moved.ino);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public Entry link(Call call, long ino, long newParent, byte[] newName) throws FsException {
        lock.lock();
        try {
            node(ino).nlink++;
            node(newParent).children.put(text(newName), ino);
            return entry(node(ino));
        } finally {
            lock.unlock();
        }
    }

    @Override
    public Opened open(Call call, long ino, int flags, boolean killPrivileges) throws FsException {
        before.operation("open", call, ino, null);
        if ((flags & 01000) != 0) {
            node(ino).data = new byte[0];
        }
        return new Opened(nextHandle(), 0);
    }

    private long nextHandle() {
        lock.lock();
        try {
            return nextHandle++;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public Created tmpfile(Call call, long parent, int mode, int umask, int flags) throws FsException {
        throw new FsException(Errno.EOPNOTSUPP);
    }

    @Override
    public Created create(Call call, long parent, byte[] name, int mode, int umask, int flags) throws FsException {
        before.operation("create", call, parent, null);
        return new Created(make(call, parent, name, S_IFREG | mode & ~umask & 07777), new Opened(nextHandle(), 0));
    }

    @Override
    public MemorySegment read(Call call, long ino, long handle, long offset, int size, int openFlags, MemorySegment scratch) throws FsException {
        before.operation("read", call, ino, scratch);
        byte[] data = node(ino).data;
        int length = (int) Math.max(0, Math.min(size, data.length - offset));
        // Behind the start, so that a reply has two parts; every other time at the start.
        long at = (offset / 4096) % 2 == 0 ? 8 : 0;
        MemorySegment.copy(data, (int) Math.min(offset, data.length), scratch, ValueLayout.JAVA_BYTE, at, length);
        return scratch.asSlice(at, length);
    }

    @Override
    public int write(Call call, long ino, long handle, long offset, MemorySegment data, int openFlags, boolean fromPageCache, boolean killPrivileges)
            throws FsException {
        before.operation("write", call, ino, data);
        lock.lock();
        try {
            Node n = node(ino);
            int length = (int) data.byteSize();
            if (offset + length > n.data.length) {
                n.data = Arrays.copyOf(n.data, (int) offset + length);
            }
            MemorySegment.copy(data, ValueLayout.JAVA_BYTE, 0, n.data, (int) offset, length);
            return length;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void flush(Call call, long ino, long handle, long lockOwner) throws FsException {
        before.operation("flush", call, ino, null);
    }

    @Override
    public void release(Call call, long ino, long handle) {}

    @Override
    public LockRequest.Conflict getlk(Call call, long ino, long handle, HeldLock wanted) {
        return null;
    }

    @Override
    public void lock(Call call, long ino, long handle, HeldLock wanted, boolean wait) throws FsException {
        before.operation("lock", call, ino, null);
    }

    @Override
    public void unlock(Call call, long ino, long handle, LockOwner owner, long start, long end) throws FsException {
        before.operation("unlock", call, ino, null);
    }

    @Override
    public void fsync(Call call, long ino, long handle, boolean dataOnly) throws FsException {
        before.operation("fsync", call, ino, null);
    }

    @Override
    public Opened opendir(Call call, long ino) {
        return new Opened(nextHandle(), 0);
    }

    @Override
    public void readdir(Call call, long ino, long handle, long cookie, boolean withAttributes, DirectorySink sink) throws FsException {
        List<Map.Entry<String, Long>> all = new ArrayList<>();
        all.add(Map.entry(".", ino));
        all.add(Map.entry("..", 1L));
        lock.lock();
        try {
            all.addAll(node(ino).children.entrySet().stream().map(e -> Map.entry(e.getKey(), e.getValue())).toList());
        } finally {
            lock.unlock();
        }
        for (int i = (int) cookie; i < all.size(); i++) {
            byte[] name = all.get(i).getKey().getBytes(StandardCharsets.UTF_8);
            if (!sink.hasRoomFor(name.length)) {
                return;
            }
            Node child = node(all.get(i).getValue());
            sink.add(name, child.ino, (child.mode & S_IFMT) >> 12, i + 1, withAttributes && i % 2 == 0 ? entry(child) : null);
        }
    }

    @Override
    public void releasedir(Call call, long ino, long handle) {}

    @Override
    public void fsyncdir(Call call, long ino, long handle, boolean dataOnly) {}

    @Override
    public FilesystemStatus statfs(Call call) {
        return new FilesystemStatus(4096, 1000, 900, 800, 700, 600, 255);
    }

    @Override
    public void setxattr(Call call, long ino, byte[] name, byte[] value, int flags) throws FsException {
        node(ino).xattrs.put(text(name), value);
    }

    @Override
    public byte[] getxattr(Call call, long ino, byte[] name) throws FsException {
        byte[] value = node(ino).xattrs.get(text(name));
        if (value == null) {
            throw error(Errno.ENODATA);
        }
        return value;
    }

    @Override
    public List<byte[]> listxattr(Call call, long ino) throws FsException {
        return node(ino).xattrs.keySet().stream().map(name -> name.getBytes(StandardCharsets.UTF_8)).toList();
    }

    @Override
    public void removexattr(Call call, long ino, byte[] name) throws FsException {
        if (node(ino).xattrs.remove(text(name)) == null) {
            throw error(Errno.ENODATA);
        }
    }

    @Override
    public long lseek(Call call, long ino, long handle, long offset, int whence) throws FsException {
        throw error(Errno.ENOSYS);
    }

    @Override
    public void fallocate(Call call, long ino, long handle, long offset, long length, int mode) throws FsException {
        throw error(Errno.EOPNOTSUPP);
    }
}
