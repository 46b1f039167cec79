package io.etcfs.testkit.cluster;

import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.fs.Operations;
import io.etcfs.core.lock.HeldLock;
import io.etcfs.core.lock.LockOwner;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Every operation of a node that can fail, by name, each on files of its own in one directory, so that they can be asked for in any order or all at once. What
 * they need is made by {@link #prepare}, through another node if one likes; {@link #look} has this node know of it, as its kernel would.
 */
final class EachOperation {
    static final String DIRECTORY = "/each";
    private static final int O_RDWR = 2;
    private static final int O_TRUNC = 01000;
    private static final int O_DIRECT = 040000;
    private static final int O_DSYNC = 010000;
    private static final int O_APPEND = 02000;
    private static final int BLOCK = 4096;
    private static final int PUNCH_KEEP_SIZE = 3;
    private static final int SEEK_DATA = 3;

    interface Body {
        void run(Call call) throws FsException;
    }

    private final ClusterNode node;
    private final Arena memory = Arena.ofShared();
    private final Map<String, Long> inodes = new ConcurrentHashMap<>();
    private final Map<String, Long> handles = new ConcurrentHashMap<>();
    private long directory;

    EachOperation(ClusterNode node) {
        this.node = node;
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static Call call() {
        return new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
    }

    /** A file of 4 blocks for each operation, with a small and a large extended attribute; directories where one is needed. */
    static void prepare(ClusterNode maker) throws FsException {
        TestClient client = new TestClient(maker);
        client.mkdir(DIRECTORY);
        long dir = maker.lookup(call(), 1, bytes(DIRECTORY.substring(1))).ino();
        for (String name : new EachOperation(maker).all().keySet()) {
            client.write(DIRECTORY + "/" + name, 0, new byte[4 * BLOCK], 0);
            client.mkdir(DIRECTORY + "/" + name + "-dir");
            Operations.Entry e = maker.lookup(call(), dir, bytes(name));
            maker.setxattr(call(), e.ino(), bytes("user.small"), bytes("value"), 0);
            maker.forget(e.ino(), 1);
        }
        Operations.Entry e = maker.lookup(call(), dir, bytes("getxattr of a large one"));
        maker.setxattr(call(), e.ino(), bytes("user.large"), new byte[40_000], 0);
        maker.forget(e.ino(), 1);
        maker.forget(maker.symlink(call(), dir, bytes("symbolic"), bytes("target")).ino(), 1);
        maker.forget(dir, 1);
    }

    /** Has looked all names up and opened all files; nothing is given back. */
    void look() throws FsException {
        directory = node.lookup(call(), 1, bytes(DIRECTORY.substring(1))).ino();
        for (String name : all().keySet()) {
            look(name);
            look(name + "-dir");
            handles.put(name, node.open(call(), inodes.get(name), O_RDWR, false).handle());
            handles.put(name + "-dir", node.opendir(call(), inodes.get(name + "-dir")).handle());
        }
        look("symbolic");
    }

    private void look(String name) throws FsException {
        inodes.put(name, node.lookup(call(), directory, bytes(name)).ino());
    }

    private long ino(String name) {
        return inodes.get(name);
    }

    private long handle(String name) {
        return handles.get(name);
    }

    private MemorySegment data(int size) {
        return memory.allocate(size, BLOCK).fill((byte) 'x');
    }

    private static Operations.Change size(long size) {
        return new Operations.Change(null, null, null, size, null, null, null, -1, false);
    }

    private static Operations.Change mode(int mode) {
        return new Operations.Change(mode, null, null, null, null, null, null, -1, false);
    }

    private static HeldLock lock(long owner) {
        return new HeldLock(new LockOwner(false, owner), 0, 10, true, 1);
    }

    /** In the order of {@link Operations}; each name begins with the method's. */
    Map<String, Body> all() {
        Map<String, Body> all = new LinkedHashMap<>();
        all.put("lookup", c -> node.lookup(c, directory, bytes("lookup")));
        all.put("lookup of a missing name", c -> {
            if (node.lookup(c, directory, bytes("missing")).attributes() != null) {
                throw new AssertionError("found");
            }
        });
        all.put("getattr", c -> node.getattr(c, ino("getattr"), -1));
        all.put("getattr by handle", c -> node.getattr(c, ino("getattr by handle"), handle("getattr by handle")));
        all.put("setattr mode", c -> node.setattr(c, ino("setattr mode"), mode(0600)));
        all.put("setattr smaller", c -> node.setattr(c, ino("setattr smaller"), size(5)));
        all.put("setattr larger", c -> node.setattr(c, ino("setattr larger"), size(1 << 20)));
        all.put("readlink", c -> node.readlink(c, ino("symbolic")));
        all.put("symlink", c -> node.symlink(c, directory, bytes("new symlink"), bytes("target")));
        all.put("mknod", c -> node.mknod(c, directory, bytes("new node"), 0010600, 0, 0));
        all.put("mkdir", c -> node.mkdir(c, directory, bytes("new directory"), 0700, 0));
        all.put("unlink", c -> node.unlink(c, directory, bytes("unlink")));
        all.put("rmdir", c -> node.rmdir(c, directory, bytes("rmdir-dir")));
        all.put("rename", c -> node.rename(c, directory, bytes("rename"), directory, bytes("renamed"), 0));
        all.put("rename over", c -> node.rename(c, directory, bytes("rename over"), directory, bytes("rename to elsewhere"), 0));
        all.put("rename to elsewhere", c -> node.rename(c, directory, bytes("rename to elsewhere-dir"), ino("rename-dir"), bytes("moved"), 0));
        all.put("rename with whiteout", c -> node.rename(c, directory, bytes("rename with whiteout"), directory, bytes("old"), Operations.RENAME_WHITEOUT));
        all.put("link", c -> node.link(c, ino("link"), directory, bytes("new link")));
        all.put("open", c -> node.open(c, ino("open"), O_RDWR, false));
        all.put("open with O_TRUNC", c -> node.open(c, ino("open with O_TRUNC"), O_RDWR | O_TRUNC, false));
        all.put("tmpfile", c -> node.tmpfile(c, directory, 0600, 0, O_RDWR));
        all.put("create", c -> node.create(c, directory, bytes("new file"), 0600, 0, O_RDWR));
        all.put("create of a file that is there", c -> node.create(c, directory, bytes("create of a file that is there"), 0600, 0, O_RDWR));
        all.put("read", c -> node.read(c, ino("read"), handle("read"), 0, BLOCK, O_RDWR, data(BLOCK + 8192)));
        write(all, "write of a part of a block", 5, 100, 0);
        write(all, "write of a whole block", 0, BLOCK, 0);
        write(all, "write of whole blocks, O_DIRECT", 0, 2 * BLOCK, O_DIRECT);
        write(all, "write of whole blocks, O_DSYNC", 0, 2 * BLOCK, O_DSYNC);
        write(all, "write of new blocks", 10 * BLOCK, 2 * BLOCK, 0);
        write(all, "write of new blocks, O_DIRECT", 10 * BLOCK, 2 * BLOCK, O_DIRECT);
        write(all, "write at the end", 0, 2 * BLOCK, O_APPEND);
        all.put("write of a mapped page", c -> node.write(c, ino("write of a mapped page"), handle("write of a mapped page"), 0, data(BLOCK), O_RDWR, true, false));
        all.put("flush", c -> node.flush(c, ino("flush"), handle("flush"), 1));
        all.put("getlk", c -> node.getlk(c, ino("getlk"), handle("getlk"), lock(2)));
        all.put("lock", c -> node.lock(c, ino("lock"), handle("lock"), lock(3), false));
        all.put("unlock", c -> node.unlock(c, ino("unlock"), handle("unlock"), new LockOwner(false, 4), 0, Long.MAX_VALUE));
        all.put("fsync", c -> node.fsync(c, ino("fsync"), handle("fsync"), false));
        all.put("opendir", c -> node.opendir(c, ino("opendir-dir")));
        all.put("readdir", c -> node.readdir(c, directory, 0, 0, false, new Nothing()));
        all.put("fsyncdir", c -> node.fsyncdir(c, directory, 0, false));
        all.put("statfs", c -> node.statfs(c));
        all.put("setxattr", c -> node.setxattr(c, ino("setxattr"), bytes("user.new"), bytes("value"), 0));
        all.put("setxattr of a large one", c -> node.setxattr(c, ino("setxattr of a large one"), bytes("user.new"), new byte[30_000], 0));
        all.put("getxattr", c -> node.getxattr(c, ino("getxattr"), bytes("user.small")));
        all.put("getxattr of a large one", c -> node.getxattr(c, ino("getxattr of a large one"), bytes("user.large")));
        all.put("listxattr", c -> node.listxattr(c, ino("listxattr")));
        all.put("removexattr", c -> node.removexattr(c, ino("removexattr"), bytes("user.small")));
        all.put("lseek", c -> node.lseek(c, ino("lseek"), handle("lseek"), 0, SEEK_DATA));
        all.put("fallocate", c -> node.fallocate(c, ino("fallocate"), handle("fallocate"), 20 * BLOCK, BLOCK, 0));
        all.put("fallocate that punches a hole", c -> node.fallocate(c, ino("fallocate that punches a hole"), handle("fallocate that punches a hole"), 0, BLOCK, PUNCH_KEEP_SIZE));
        return all;
    }

    private void write(Map<String, Body> all, String name, long offset, int size, int flags) {
        all.put(name, c -> {
            int written = node.write(c, ino(name), handle(name), offset, data(size), O_RDWR | flags, false, false);
            if (written != size) {
                throw new AssertionError(written + " bytes of " + size);
            }
        });
    }

    /** All at once, each by a thread of its own: what each answered, null for success. */
    Map<String, Errno> runAll() throws InterruptedException {
        Map<String, Errno> answers = new ConcurrentHashMap<>();
        Map<String, Throwable> faults = new ConcurrentHashMap<>();
        Map<String, Thread> threads = new LinkedHashMap<>();
        Map<String, String> succeeded = new ConcurrentHashMap<>();
        all().forEach((name, body) -> threads.put(name, Thread.ofVirtual().start(() -> {
            try {
                body.run(call());
                succeeded.put(name, "");
            } catch (FsException e) {
                answers.put(name, e.errno());
            } catch (Throwable e) {
                faults.put(name, e);
            }
        })));
        for (Thread t : threads.values()) {
            t.join();
        }
        if (!faults.isEmpty()) {
            Map.Entry<String, Throwable> first = faults.entrySet().iterator().next();
            throw new AssertionError(faults.keySet() + " failed, " + first.getKey() + " with " + first.getValue(), first.getValue());
        }
        Map<String, Errno> all = new TreeMap<>(answers);
        succeeded.keySet().forEach(name -> all.put(name, null));
        return all;
    }

    private static final class Nothing implements Operations.DirectorySink {
        @Override
        public boolean hasRoomFor(int nameLength) {
            return true;
        }

        @Override
        public void add(byte[] name, long ino, int type, long cookie, Operations.Entry entry) {}
    }
}
