package io.etcfs.testkit.sim;

import io.etcfs.core.fs.Attributes;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.lock.HeldLock;
import io.etcfs.core.lock.LockOwner;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;

/** A process on one machine that works in the filesystem, a random operation after the other. */
final class Program {
    private static final String[] NAMES = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
    private static final int FEW_NAMES = 4;
    private static final int MAX_OPEN = 3;
    private static final List<Op.Kind> USUAL = Arrays.stream(Op.Kind.values()).filter(k -> !k.extra()).toList();
    private static final int O_DSYNC = 010000;
    static final int UMASK = 022;

    private final World world;
    private final Machine machine;
    private final Random random;
    private final Random lockRandom;
    private final Random extraRandom;
    private final int number;
    private final Taste taste;
    /** The daemon it works on; it ends when that ends. */
    private final String process;
    private final SimKernel kernel;
    private final Map<Long, Long> open = new HashMap<>();
    private final Set<Long> appending = new HashSet<>();
    private final List<Long> directories = new ArrayList<>();
    private final List<Long> files = new ArrayList<>();
    private byte next;

    /** What a run's programs like to do: a weight for each kind of operation. */
    record Taste(Map<Op.Kind, Integer> weights, int names, int fileBytes, int pauseMs) {
        /** On one or two small files, for long enough to see what comes late. */
        static Taste slowly(Random random) {
            Map<Op.Kind, Integer> w = new java.util.EnumMap<>(Op.Kind.class);
            for (Op.Kind k : USUAL) {
                w.put(k, switch (k) {
                    case READ, WRITE -> 12;
                    case OPEN, LOOKUP -> 6;
                    case CREATE -> 4;
                    case FSYNC, TRUNCATE -> random.nextInt(3);
                    case UNLINK -> random.nextInt(2);
                    default -> 0;
                });
            }
            return new Taste(w, 1 + random.nextInt(2), random.nextBoolean() ? 4_096 : 9_000, 200 + random.nextInt(1_000));
        }

        /** Names of one directory come and go, and are looked for at once. */
        static Taste names(Random random) {
            Map<Op.Kind, Integer> w = new java.util.EnumMap<>(Op.Kind.class);
            for (Op.Kind k : USUAL) {
                w.put(k, switch (k) {
                    case CREATE, UNLINK, LOOKUP -> 8;
                    case RENAME, READDIR -> 5;
                    case LINK, CLOSE -> 2;
                    case FSYNC, STAT -> 1;
                    default -> 0;
                });
            }
            return new Taste(w, FEW_NAMES, 4_096, random.nextBoolean() ? 2 : 20);
        }

        /** Opens a file, reads it for a while, and closes it, for long enough to see what comes late. */
        static Taste opens(Random random) {
            Map<Op.Kind, Integer> w = new java.util.EnumMap<>(Op.Kind.class);
            for (Op.Kind k : USUAL) {
                w.put(k, switch (k) {
                    case OPEN -> 8;
                    case READ -> 6;
                    case CLOSE -> 4;
                    case STAT -> 1;
                    default -> 0;
                });
            }
            return new Taste(w, random.nextInt(4) == 0 ? 2 : 1, 4_096, 500 + random.nextInt(2_500));
        }

        /** Makes the files that others open so, changes and removes them. */
        Taste removing() {
            Map<Op.Kind, Integer> w = new java.util.EnumMap<>(Op.Kind.class);
            for (Op.Kind k : USUAL) {
                w.put(k, switch (k) {
                    case OPEN, CLOSE -> 4;
                    case WRITE, UNLINK -> 3;
                    case FSYNC, RENAME -> 1;
                    default -> 0;
                });
            }
            return new Taste(w, names, fileBytes, pauseMs);
        }

        /** The same few pages of a file or two, through the page cache. */
        static Taste pages(Random random) {
            Map<Op.Kind, Integer> w = new java.util.EnumMap<>(Op.Kind.class);
            for (Op.Kind k : USUAL) {
                w.put(k, switch (k) {
                    case READ -> 12;
                    case WRITE -> 6;
                    case OPEN -> 4;
                    case FSYNC, TRUNCATE -> random.nextInt(2);
                    default -> 0;
                });
            }
            return new Taste(w, 1, 4_096, random.nextBoolean() ? 20 : 100);
        }

        static Taste draw(Random random) {
            Map<Op.Kind, Integer> w = new java.util.EnumMap<>(Op.Kind.class);
            for (Op.Kind k : USUAL) {
                int usual = switch (k) {
                    case LOOKUP, CREATE, WRITE, READ, OPEN -> 6;
                    case STAT, UNLINK, RENAME, FSYNC, CLOSE -> 3;
                    default -> 2;
                };
                w.put(k, random.nextInt(5) == 0 ? 0 : random.nextInt(usual * 3));
            }
            w.put(Op.Kind.CREATE, 1 + w.get(Op.Kind.CREATE));
            w.put(Op.Kind.LOOKUP, 1 + w.get(Op.Kind.LOOKUP));
            if (random.nextInt(6) == 0) {
                // Blocks come and go.
                for (Op.Kind k : USUAL) {
                    w.put(k, switch (k) {
                        case CREATE, OPEN, UNLINK, READ -> 4;
                        case WRITE -> 12;
                        case TRUNCATE -> 8;
                        case LOOKUP, FSYNC, CLOSE -> 1;
                        default -> 0;
                    });
                }
                return new Taste(w, 2, 9_000, 2);
            }
            if (random.nextInt(3) == 0) {
                // All on one or two small files, to look at what others do to them.
                for (Op.Kind k : List.of(Op.Kind.MKDIR, Op.Kind.RMDIR, Op.Kind.LINK, Op.Kind.RENAME, Op.Kind.UNLINK)) {
                    w.put(k, random.nextInt(3) == 0 ? 1 : 0);
                }
                for (Op.Kind k : List.of(Op.Kind.READ, Op.Kind.WRITE, Op.Kind.STAT, Op.Kind.LOOKUP, Op.Kind.OPEN)) {
                    w.put(k, 4 + random.nextInt(10));
                }
                w.put(Op.Kind.CLOSE, 1);
                return new Taste(w, 1 + random.nextInt(2), random.nextBoolean() ? 4_096 : 9_000, random.nextBoolean() ? 2 : 60);
            }
            return new Taste(w, FEW_NAMES, random.nextBoolean() ? 9_000 : 40_000, random.nextBoolean() ? 2 : 60);
        }
    }

    Program(World world, Machine machine, int number, Random random, Taste taste) {
        this.world = world;
        this.machine = machine;
        this.number = number;
        this.random = random;
        this.taste = taste;
        this.process = machine.process();
        this.kernel = machine.kernel;
        this.lockRandom = world.lockRandom(number);
        this.extraRandom = world.extraRandom(number);
        this.next = (byte) (number * 40 + random.nextInt(40));
    }

    /** What programs ask for when they make something. */
    static int modeOf(Op.Kind kind) {
        return kind == Op.Kind.MKDIR ? 0777 : 0666;
    }

    Set<Long> inUse() {
        Set<Long> all = new HashSet<>(open.keySet());
        all.addAll(directories);
        all.addAll(files);
        return all;
    }

    private boolean over() {
        return machine.kernel != kernel || !machine.up();
    }

    void run(int operations) {
        try {
            directories.add(1L);
            for (int i = 0; i < operations && !over(); i++) {
                step();
                if (world.locking && lockRandom.nextInt(2) == 0 && !over()) {
                    lockStep();
                }
                if (world.extras && extraRandom.nextInt(2) == 0 && !over()) {
                    extraStep();
                }
                if (random.nextInt(3) == 0) {
                    world.scheduler.sleep(random.nextLong(taste.pauseMs * 1_000_000L));
                }
            }
            for (long ino : List.copyOf(open.keySet())) {
                close(ino);
            }
        } catch (SimKernel.Gone e) {
            // The daemon went; another program may work on the next.
        } finally {
            world.locks.forget(this);
        }
    }

    /** A lock or an unlock. They are in no order with other operations: what they promise is checked by {@link LockBook}. */
    private void lockStep() {
        if (open.isEmpty()) {
            return;
        }
        List<Long> some = openFiles();
        long ino = some.get(lockRandom.nextInt(some.size()));
        boolean flock = lockRandom.nextInt(4) == 0;
        int from = flock ? 0 : lockRandom.nextInt(6);
        long to = flock ? Long.MAX_VALUE : from + lockRandom.nextInt(6 - from);
        HeldLock lock = new HeldLock(new LockOwner(flock, number), from, to, lockRandom.nextBoolean(), number);
        boolean unlock = lockRandom.nextInt(3) == 0;
        boolean wait = lockRandom.nextInt(3) == 0;
        long patienceNs = lockRandom.nextLong(flock ? 2_000_000_000L : 60_000_000_000L);
        world.locks.forget(this, ino, lock);
        long session = world.locks.session(machine.name);
        String what = process + (unlock ? " UNLOCK " : wait ? " LOCKS " : " LOCK ") + ino + (flock ? " flock" : " [" + from + ", " + to + "]") + (lock.exclusive() ? " w" : " r") + " = ";
        try {
            if (unlock) {
                kernel.unlock(ino, open.get(ino), lock);
            } else {
                kernel.lock(ino, open.get(ino), lock, wait, patienceNs);
            }
            world.tell(what + "ok");
            String wrong = unlock ? null : world.locks.granted(this, machine.name, session, ino, lock);
            if (wrong != null) {
                world.brokenBy(wrong);
            }
        } catch (FsException e) {
            world.tell(what + e.errno());
        }
    }

    /** Something with files without a name, or ACLs. */
    private void extraStep() {
        long dir = directories.get(extraRandom.nextInt(directories.size()));
        long any = files.isEmpty() || extraRandom.nextInt(3) == 0 ? dir : files.get(extraRandom.nextInt(files.size()));
        switch (extraRandom.nextInt(12)) {
            case 0, 1 -> tmpfile(dir);
            case 2, 3 -> {
                if (!files.isEmpty()) {
                    // The latest: it may have no name yet.
                    long ino = files.getLast();
                    String name = NAMES[extraRandom.nextInt(names())];
                    done(op(Op.Kind.LINK, ino, null, dir, name, 0, 0, null), () -> kernel.link(ino, dir, name));
                }
            }
            case 4 -> {
                Op op = op(Op.Kind.CHMOD, any, null, 0, null, 0, 0, null);
                op.mode = extraRandom.nextInt(01000);
                done(op, () -> kernel.chmod(any, op.mode));
            }
            case 5, 6 -> setAcl(Op.Kind.SET_ACL, any, SimAcl.ACCESS);
            case 7 -> setAcl(Op.Kind.SET_DEFAULT_ACL, dir, SimAcl.DEFAULT);
            case 8 -> {
                // Long enough for attributes to be granted again after somebody else had the directory.
                world.scheduler.sleep(extraRandom.nextLong(3_500_000_000L));
                lookAndAccess(dir, NAMES[extraRandom.nextInt(names())]);
            }
            case 9 -> lookAndAccess(dir, NAMES[extraRandom.nextInt(names())]);
            default -> access(any);
        }
    }

    private void lookAndAccess(long dir, String name) {
        long ino = lookup(dir, name);
        if (ino != 0 && !over()) {
            access(ino);
        }
    }

    private void access(long ino) {
        Op op = op(Op.Kind.ACCESS, ino, null, 0, null, 0, 0, null);
        done(op, () -> op.acl = kernel.access(ino));
    }

    private void setAcl(Op.Kind kind, long ino, byte[] which) {
        Op op = op(kind, ino, null, 0, null, 0, 0, null);
        op.acl = extraRandom.nextInt(4) == 0 ? null : SimAcl.draw(extraRandom);
        done(op, () -> kernel.setAcl(ino, which, op.acl));
    }

    private void tmpfile(long dir) {
        if (open.size() >= MAX_OPEN) {
            return;
        }
        Op op = op(Op.Kind.TMPFILE, dir, null, 0, null, 0, 0, null);
        long[] handle = {0};
        if (done(op, () -> {
            SimKernel.Made made = kernel.tmpfile(dir);
            op.resultIno = made.ino();
            handle[0] = made.handle();
        })) {
            files.add(op.resultIno);
            open.put(op.resultIno, handle[0]);
        }
    }

    private interface Body {
        void run() throws FsException;
    }

    private Op op(Op.Kind kind, long ino, String name, long ino2, String name2, long offset, long length, byte[] data) {
        return new Op(kind, process, ino, name, ino2, name2, offset, length, data);
    }

    private boolean done(Op op, Body body) {
        world.called(op);
        try {
            body.run();
            world.returned(op);
            return true;
        } catch (FsException e) {
            op.error = e.errno();
            world.returned(op);
            return false;
        } catch (SimKernel.Gone e) {
            op.gone = true;
            world.returned(op);
            throw e;
        }
    }

    private Op.Kind kind() {
        Op.Kind kind = drawn();
        while (world.onFewFiles() && !possible(kind)) {
            kind = drawn();
        }
        return kind;
    }

    private boolean possible(Op.Kind kind) {
        return switch (kind) {
            case OPEN -> open.isEmpty() || world.workload() == Workload.OPENS && open.size() < MAX_OPEN;
            case CLOSE, READ, WRITE, APPEND, FSYNC -> !open.isEmpty();
            default -> true;
        };
    }

    private Op.Kind drawn() {
        int sum = taste.weights.values().stream().mapToInt(i -> i).sum();
        int at = random.nextInt(sum);
        for (Map.Entry<Op.Kind, Integer> e : taste.weights.entrySet()) {
            at -= e.getValue();
            if (at < 0) {
                return e.getKey();
            }
        }
        throw new IllegalStateException();
    }

    /** As many as make directories large, where that is what is played. */
    private int names() {
        return world.manyNames() && world.workload() == Workload.MIXED ? taste.names + NAMES.length - FEW_NAMES : taste.names;
    }

    private <T> T any(List<T> some) {
        return some.get(random.nextInt(some.size()));
    }

    private void step() {
        long dir = any(directories);
        String name = NAMES[random.nextInt(names())];
        switch (kind()) {
            case LOOKUP -> lookup(dir, name);
            case READDIR -> {
                boolean withAttributes = world.manyNames() && extraRandom.nextBoolean();
                long from = 0;
                boolean more = true;
                while (more) {
                    long offset = from;
                    Op op = op(Op.Kind.READDIR, dir, null, 0, null, offset, 0, null);
                    more = done(op, () -> {
                        SimKernel.Listing l = kernel.readdir(dir, offset, withAttributes);
                        op.listing = l.names();
                        op.listedTo = l.end() == offset ? Long.MAX_VALUE : l.end();
                    }) && op.listedTo != Long.MAX_VALUE;
                    from = op.listedTo;
                }
            }
            case STAT -> {
                long ino = files.isEmpty() || random.nextInt(3) == 0 ? dir : any(files);
                Op op = op(Op.Kind.STAT, ino, null, 0, null, 0, 0, null);
                done(op, () -> {
                    Attributes a = kernel.stat(ino);
                    op.resultSize = a.size();
                    op.resultNlink = a.nlink();
                    op.mode = a.mode() & 0777;
                });
            }
            case CREATE -> create(dir, name);
            case MKDIR -> {
                Op op = op(Op.Kind.MKDIR, dir, name, 0, null, 0, 0, null);
                if (done(op, () -> op.resultIno = kernel.mkdir(dir, name))) {
                    directories.add(op.resultIno);
                }
            }
            case LINK -> {
                if (!files.isEmpty()) {
                    long ino = any(files);
                    done(op(Op.Kind.LINK, ino, null, dir, name, 0, 0, null), () -> kernel.link(ino, dir, name));
                }
            }
            case UNLINK -> {
                long[] removed = {0};
                if (done(op(Op.Kind.UNLINK, dir, name, 0, null, 0, 0, null), () -> removed[0] = kernel.remove(dir, name, false))) {
                    forget(removed[0]);
                }
            }
            case RMDIR -> done(op(Op.Kind.RMDIR, dir, name, 0, null, 0, 0, null), () -> kernel.remove(dir, name, true));
            case RENAME -> {
                long to = any(directories);
                String toName = NAMES[random.nextInt(names())];
                if (dir != to || !name.equals(toName)) {
                    done(op(Op.Kind.RENAME, dir, name, to, toName, 0, 0, null), () -> kernel.rename(dir, name, to, toName));
                }
            }
            case OPEN -> {
                if (world.onFewFiles()) {
                    openAsNeeded(dir, name);
                } else if (!files.isEmpty()) {
                    open(any(files));
                }
            }
            case CLOSE -> {
                if (!open.isEmpty()) {
                    close(any(openFiles()));
                }
            }
            case FSYNC -> {
                if (!open.isEmpty()) {
                    long ino = any(openFiles());
                    done(op(Op.Kind.FSYNC, ino, null, 0, null, 0, 0, null), () -> kernel.fsync(ino, open.get(ino)));
                }
            }
            case READ -> read();
            case WRITE -> write();
            case APPEND -> append();
            case TRUNCATE -> {
                if (!files.isEmpty()) {
                    long ino = any(files);
                    long size = random.nextInt(taste.fileBytes);
                    done(op(Op.Kind.TRUNCATE, ino, null, 0, null, 0, size, null), () -> kernel.truncate(ino, size));
                }
            }
            case ACCESS, TMPFILE, CHMOD, SET_ACL, SET_DEFAULT_ACL -> throw new IllegalStateException("in extraStep only");
            case PUNCH -> {
                if (!open.isEmpty()) {
                    long ino = any(openFiles());
                    long offset = random.nextInt(taste.fileBytes);
                    long length = 1 + random.nextInt(10_000);
                    done(op(Op.Kind.PUNCH, ino, null, 0, null, offset, length, null), () -> kernel.punch(ino, open.get(ino), offset, length));
                }
            }
        }
        if (random.nextInt(30) == 0) {
            world.shrink(machine);
        }
    }

    private List<Long> openFiles() {
        List<Long> all = new ArrayList<>(open.keySet());
        all.sort(null);
        return all;
    }

    /** 0: there is no such name, or it is not known. */
    private long lookup(long dir, String name) {
        Op op = op(Op.Kind.LOOKUP, dir, name, 0, null, 0, 0, null);
        done(op, () -> {
            op.resultIno = kernel.lookup(dir, name);
            if (op.resultIno == 0) {
                throw new FsException(Errno.ENOENT);
            }
        });
        if (op.resultIno != 0 && !files.contains(op.resultIno) && !directories.contains(op.resultIno)) {
            if (kernel.isDirectory(op.resultIno)) {
                directories.add(op.resultIno);
            } else {
                files.add(op.resultIno);
            }
        }
        return op.resultIno;
    }

    private void create(long dir, String name) {
        Op op = op(Op.Kind.CREATE, dir, name, 0, null, 0, 0, null);
        long[] handle = {0};
        if (done(op, () -> {
            SimKernel.Made made = kernel.create(dir, name);
            op.resultIno = made.ino();
            handle[0] = made.handle();
        })) {
            files.add(op.resultIno);
            open.put(op.resultIno, handle[0]);
        }
    }

    /** By number one that it knows, or by name, as with O_CREAT. */
    private void openAsNeeded(long dir, String name) {
        List<Long> closed = files.stream().filter(ino -> !open.containsKey(ino)).toList();
        if (!closed.isEmpty() && random.nextBoolean()) {
            open(any(closed));
            return;
        }
        long ino = lookup(dir, name);
        if (over()) {
            return;
        }
        if (ino == 0) {
            create(dir, name);
        } else {
            open(ino);
        }
    }

    /** It does not use the file any more, unless it has it open; the kernel lets go of it if nobody else does. */
    private void forget(long ino) {
        if (world.workload() == Workload.OPENS && !open.containsKey(ino)) {
            files.remove(ino);
            world.evict(machine, ino);
        }
    }

    private void open(long ino) {
        if (open.containsKey(ino) || open.size() >= MAX_OPEN) {
            return;
        }
        boolean append = random.nextInt(4) == 0 && world.workload() != Workload.PAGES;
        Op op = op(Op.Kind.OPEN, ino, null, 0, null, 0, 0, null);
        long[] handle = {0};
        if (done(op, () -> handle[0] = kernel.open(ino, append ? SimKernel.O_APPEND : 0))) {
            open.put(ino, handle[0]);
            if (append) {
                appending.add(ino);
            }
        } else if (op.refused(Errno.ESTALE)) {
            forget(ino);
        }
    }

    private void close(long ino) {
        long handle = open.remove(ino);
        appending.remove(ino);
        world.locks.forget(this, ino);
        done(op(Op.Kind.CLOSE, ino, null, 0, null, 0, 0, null), () -> kernel.close(ino, handle, number));
        if (world.workload() == Workload.OPENS && random.nextInt(3) == 0) {
            forget(ino);
        }
    }

    /** Some reads and writes go around the page cache, where that is not what is played. */
    private boolean direct(int oneIn) {
        return world.workload() != Workload.PAGES && random.nextInt(oneIn) == 0;
    }

    private void read() {
        if (open.isEmpty()) {
            return;
        }
        long ino = any(openFiles());
        long offset = random.nextInt(taste.fileBytes);
        boolean direct = appending.contains(ino) || direct(4);
        int length = direct ? 1 + random.nextInt(20_000) : 1 + random.nextInt((int) (SimKernel.PAGE - offset % SimKernel.PAGE));
        Op op = op(Op.Kind.READ, ino, null, 0, null, offset, length, null);
        done(op, () -> {
            if (direct) {
                op.data = kernel.readDirect(ino, open.get(ino), offset, length);
            } else {
                SimKernel.Got got = kernel.read(ino, open.get(ino), offset, length);
                op.data = got.bytes();
                op.byOldSize = got.byOldSize();
                op.cutBefore = got.cut();
                op.ofUnanswered = got.unanswered();
                op.shownFrom = got.shownFrom();
            }
        });
    }

    private byte[] fresh(int length) {
        byte[] data = new byte[length];
        if (++next == 0) {
            next++;
        }
        Arrays.fill(data, next);
        return data;
    }

    private void write() {
        if (open.isEmpty()) {
            return;
        }
        long ino = any(openFiles());
        if (appending.contains(ino)) {
            append();
            return;
        }
        long offset = random.nextInt(4) == 0 ? random.nextInt(taste.fileBytes / 4096 + 1) * 4096L : random.nextInt(taste.fileBytes);
        int length = world.workload() != Workload.PAGES && random.nextInt(4) == 0 ? 4096 * (1 + random.nextInt(3)) : 1 + random.nextInt(world.workload() == Workload.PAGES ? 2_000 : 9_000);
        if (direct(3)) {
            long at = offset;
            Op op = op(Op.Kind.WRITE, ino, null, 0, null, at, 0, fresh(length));
            int flags = 040000 | (random.nextInt(3) == 0 ? O_DSYNC : 0);
            done(op, () -> op.written(kernel.writeDirect(ino, open.get(ino), at, op.data, flags)));
            return;
        }
        long end = offset + length;
        while (offset < end && !over()) {
            long at = offset;
            byte[] data = fresh((int) (end - at));
            Op op = op(Op.Kind.WRITE, ino, null, 0, null, at, 0, data);
            if (!done(op, () -> op.written(kernel.write(ino, open.get(ino), at, data, n -> op.data = Arrays.copyOf(data, n))))) {
                return;
            }
            offset += op.data.length;
        }
    }

    private void append() {
        List<Long> some = new ArrayList<>(appending);
        if (some.isEmpty()) {
            return;
        }
        some.sort(null);
        long ino = any(some);
        if (kernel.end(ino) > taste.fileBytes) {
            return;
        }
        Op op = op(Op.Kind.APPEND, ino, null, 0, null, 0, 0, fresh(1 + random.nextInt(3_000)));
        done(op, () -> op.written(kernel.writeDirect(ino, open.get(ino), kernel.end(ino), op.data, SimKernel.O_APPEND)));
    }
}
