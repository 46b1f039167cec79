package io.etcfs.testkit.cluster;

import io.etcfs.core.fs.Attributes;
import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.fs.Operations;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Paths on one node, asked for as a kernel without caches would: a lookup for each name, and each lookup given back. */
public final class TestClient {
    private static final int O_RDWR = 2;

    private final Operations fs;

    public TestClient(Operations fs) {
        this.fs = fs;
    }

    private static Call call() {
        return new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
    }

    private interface Body<R> {
        R run(long ino) throws FsException;
    }

    private static byte[] bytes(String name) {
        return name.getBytes(StandardCharsets.UTF_8);
    }

    private <R> R with(String path, Body<R> body) throws FsException {
        long ino = 1;
        List<Long> looked = new ArrayList<>();
        try {
            for (String name : path.split("/")) {
                if (name.isEmpty()) {
                    continue;
                }
                Operations.Entry e = fs.lookup(call(), ino, bytes(name));
                if (e.attributes() == null) {
                    throw new FsException(Errno.ENOENT);
                }
                ino = e.ino();
                looked.add(ino);
            }
            return body.run(ino);
        } finally {
            looked.forEach(i -> fs.forget(i, 1));
        }
    }

    private static String parent(String path) {
        return path.substring(0, Math.max(0, path.lastIndexOf('/')));
    }

    private static byte[] name(String path) {
        return bytes(path.substring(path.lastIndexOf('/') + 1));
    }

    public Attributes stat(String path) throws FsException {
        return with(path, ino -> fs.getattr(call(), ino, -1).attributes());
    }

    public void mkdir(String path) throws FsException {
        with(parent(path), dir -> {
            fs.forget(fs.mkdir(call(), dir, name(path), 0755, 0).ino(), 1);
            return null;
        });
    }

    public void unlink(String path) throws FsException {
        with(parent(path), dir -> {
            fs.unlink(call(), dir, name(path));
            return null;
        });
    }

    public void rmdir(String path) throws FsException {
        with(parent(path), dir -> {
            fs.rmdir(call(), dir, name(path));
            return null;
        });
    }

    public void rename(String from, String to) throws FsException {
        with(parent(from), a -> with(parent(to), b -> {
            fs.rename(call(), a, name(from), b, name(to), 0);
            return null;
        }));
    }

    public void link(String from, String to) throws FsException {
        with(from, ino -> with(parent(to), b -> {
            fs.forget(fs.link(call(), ino, b, name(to)).ino(), 1);
            return null;
        }));
    }

    /** Creates the file if need be and writes at an offset. */
    public void write(String path, long offset, byte[] data, int flags) throws FsException {
        with(parent(path), dir -> {
            Operations.Created c = fs.create(call(), dir, name(path), 0644, 0, O_RDWR | flags);
            long ino = c.entry().ino();
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment m = arena.allocate(Math.max(1, data.length), 4096);
                MemorySegment.copy(data, 0, m, ValueLayout.JAVA_BYTE, 0, data.length);
                fs.write(call(), ino, c.opened().handle(), offset, m.asSlice(0, data.length), O_RDWR | flags, false, false);
            } finally {
                fs.release(call(), ino, c.opened().handle());
                fs.forget(ino, 1);
            }
            return null;
        });
    }

    public byte[] read(String path) throws FsException {
        return with(path, ino -> {
            Operations.Opened o = fs.open(call(), ino, 0, false);
            try (Arena arena = Arena.ofConfined()) {
                int size = (int) fs.getattr(call(), ino, o.handle()).attributes().size();
                MemorySegment scratch = arena.allocate(size + 8192L, 4096);
                return fs.read(call(), ino, o.handle(), 0, size, 0, scratch).toArray(ValueLayout.JAVA_BYTE);
            } finally {
                fs.release(call(), ino, o.handle());
            }
        });
    }

    /** As many of the bytes as there are. */
    public byte[] read(String path, long offset, int size) throws FsException {
        return with(path, ino -> {
            Operations.Opened o = fs.open(call(), ino, 0, false);
            try (Arena arena = Arena.ofConfined()) {
                return fs.read(call(), ino, o.handle(), offset, size, 0, arena.allocate(size + 8192L, 4096)).toArray(ValueLayout.JAVA_BYTE);
            } finally {
                fs.release(call(), ino, o.handle());
            }
        });
    }

    public void truncate(String path, long size) throws FsException {
        with(path, ino -> fs.setattr(call(), ino, new Operations.Change(null, null, null, size, null, null, null, -1, false)));
    }

    public void fallocate(String path, long offset, long length, int mode) throws FsException {
        with(path, ino -> {
            fs.fallocate(call(), ino, -1, offset, length, mode);
            return null;
        });
    }

    public void fsync(String path) throws FsException {
        with(path, ino -> {
            fs.fsync(call(), ino, -1, false);
            return null;
        });
    }

    public List<String> list(String path) throws FsException {
        return with(path, ino -> {
            List<String> names = new ArrayList<>();
            long[] end = {0};
            long from = -1;
            while (end[0] != from) {
                from = end[0];
                fs.readdir(call(), ino, 0, from, false, new Operations.DirectorySink() {
                    @Override
                    public boolean hasRoomFor(int nameLength) {
                        return true;
                    }

                    @Override
                    public void add(byte[] name, long i, int type, long cookie, Operations.Entry entry) {
                        String n = new String(name, StandardCharsets.UTF_8);
                        end[0] = cookie;
                        if (!n.equals(".") && !n.equals("..")) {
                            names.add(n);
                        }
                    }
                });
            }
            names.sort(null);
            return names;
        });
    }

    public long freeBlocks() throws FsException {
        return fs.statfs(call()).freeBlocks();
    }
}
