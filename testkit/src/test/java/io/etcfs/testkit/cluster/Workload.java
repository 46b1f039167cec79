package io.etcfs.testkit.cluster;

import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.fs.Operations;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** Calls of every sort on a few names, most of which fail with what a local filesystem would say, too. Files stay open over the removal of their names. */
final class Workload {
    private static final int O_SYNC = 04000000;

    private final ClusterNode node;
    private final TestClient client;
    private final Random random;
    private final Map<Long, Long> open = new HashMap<>();

    Workload(ClusterNode node, Random random) {
        this.node = node;
        this.client = new TestClient(node);
        this.random = random;
    }

    private static Call call() {
        return new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
    }

    private String directory() {
        String top = "/" + "abc".charAt(random.nextInt(3));
        return random.nextInt(3) == 0 ? top + "/d" + random.nextInt(3) : top;
    }

    private String file() {
        return directory() + "/f" + random.nextInt(6);
    }

    void run(int steps) {
        for (int i = 0; i < steps; i++) {
            try {
                step();
                if (random.nextInt(3) == 0) {
                    // A revision of its own for a few calls.
                    node.sync(10_000_000_000L);
                }
            } catch (FsException e) {
                if (e.errno() == Errno.EIO || e.errno() == Errno.ETIMEDOUT) {
                    throw new AssertionError(e.errno() + " at step " + i, e);
                }
            }
        }
        List.copyOf(open.keySet()).forEach(this::close);
    }

    private void step() throws FsException {
        switch (random.nextInt(18)) {
            case 0, 1, 2 -> client.write(file(), random.nextInt(4) == 0 ? random.nextInt(1 << 20) : 0, bytes(1 + random.nextInt(random.nextBoolean() ? 5_000 : 200_000)), random.nextInt(5) == 0 ? O_SYNC : 0);
            case 3 -> client.truncate(file(), random.nextInt(300_000));
            case 4, 5 -> client.unlink(file());
            case 6 -> client.rename(file(), file());
            case 7 -> client.link(file(), file());
            case 8 -> client.mkdir(directory() + "/d" + random.nextInt(3));
            case 9 -> client.rmdir(directory() + "/d" + random.nextInt(3));
            case 10 -> client.rename(directory() + "/d" + random.nextInt(3), directory() + "/d" + random.nextInt(3));
            case 11 -> exchange();
            case 12 -> client.fallocate(file(), random.nextInt(100_000), 1 + random.nextInt(300_000), random.nextInt(2) == 0 ? 3 : random.nextInt(2));
            case 13 -> attribute();
            case 14 -> client.list(directory());
            case 15 -> open();
            case 16 -> open.keySet().stream().findFirst().ifPresent(this::close);
            default -> client.read(file());
        }
    }

    private byte[] bytes(int length) {
        byte[] bytes = new byte[length];
        random.nextBytes(bytes);
        return bytes;
    }

    private interface OnInode {
        void run(long ino) throws FsException;
    }

    /** Looks a path up, and gives the lookups back but the last if {@code keep}. */
    private void with(String path, boolean keep, OnInode body) throws FsException {
        List<Long> looked = new ArrayList<>();
        long ino = 1;
        try {
            for (String name : path.substring(1).split("/")) {
                Operations.Entry e = node.lookup(call(), ino, name.getBytes());
                if (e.attributes() == null) {
                    throw new FsException(Errno.ENOENT);
                }
                ino = e.ino();
                looked.add(ino);
            }
            body.run(ino);
        } finally {
            looked.forEach(i -> node.forget(i, 1));
        }
    }

    private void exchange() throws FsException {
        String from = random.nextBoolean() ? file() : directory() + "/d" + random.nextInt(3);
        String to = random.nextBoolean() ? file() : directory() + "/d" + random.nextInt(3);
        with(from.substring(0, from.lastIndexOf('/')), false, a -> with(to.substring(0, to.lastIndexOf('/')), false,
                b -> node.rename(call(), a, from.substring(from.lastIndexOf('/') + 1).getBytes(), b, to.substring(to.lastIndexOf('/') + 1).getBytes(), Operations.RENAME_EXCHANGE)));
    }

    private void attribute() throws FsException {
        byte[] name = ("user." + random.nextInt(2)).getBytes();
        with(random.nextBoolean() ? file() : directory(), false, ino -> {
            if (random.nextInt(3) == 0) {
                node.removexattr(call(), ino, name);
            } else {
                node.setxattr(call(), ino, name, bytes(random.nextBoolean() ? 20 : 5_000), 0);
            }
        });
    }

    private void open() throws FsException {
        with(file(), true, ino -> {
            if (!open.containsKey(ino)) {
                open.put(ino, node.open(call(), ino, 2, false).handle());
            }
        });
    }

    private void close(long ino) {
        node.release(call(), ino, open.remove(ino));
    }
}
