package io.etcfs.fuse.protocol;

import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.fs.MustWait;
import io.etcfs.core.fs.Operations;
import io.etcfs.core.fs.Operations.Change;
import io.etcfs.core.fs.Operations.Created;
import io.etcfs.core.fs.Operations.Entry;
import io.etcfs.core.lock.HeldLock;
import io.etcfs.core.lock.LockOwner;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;

/**
 * Takes a request apart, asks {@link Operations} and writes the reply. Thread-safe; each thread has its own {@link Exchange}.
 *
 * <p>{@link FsException} becomes the reply's errno. Any other exception is a fault: it is logged here, once, with the request's number, and
 * answered EIO. An {@link Error} passes through and leaves the request without an answer.
 *
 * <p>INIT and INTERRUPT are the transport's and must not get here.
 */
public final class Dispatcher {
    private static final System.Logger LOG = System.getLogger("io.etcfs.fuse");

    private static final int GETATTR_FH = 1;
    private static final int OPEN_KILL_SUIDGID = 1;
    /** FUSE_READ_LOCKOWNER and FUSE_WRITE_LOCKOWNER: the kernel names an owner for direct I/O, and only there. */
    private static final int LOCKOWNER = 1 << 1;
    private static final int WRITE_CACHE = 1;
    private static final int WRITE_KILL_SUIDGID = 1 << 2;
    private static final int FSYNC_FDATASYNC = 1;
    private static final int SETXATTR_ACL_KILL_SGID = 1;
    /** struct fuse_setxattr_in, and without FUSE_SETXATTR_EXT. */
    private static final int SETXATTR_IN_BYTES = 16;
    private static final int SETXATTR_IN_BYTES_BEFORE = 8;

    private static final int FATTR_MODE = 1;
    private static final int FATTR_UID = 1 << 1;
    private static final int FATTR_GID = 1 << 2;
    private static final int FATTR_SIZE = 1 << 3;
    private static final int FATTR_ATIME = 1 << 4;
    private static final int FATTR_MTIME = 1 << 5;
    private static final int FATTR_FH = 1 << 6;
    private static final int FATTR_ATIME_NOW = 1 << 7;
    private static final int FATTR_MTIME_NOW = 1 << 8;
    private static final int FATTR_CTIME = 1 << 10;
    private static final int FATTR_KILL_SUIDGID = 1 << 11;

    private static final long LK_START = 16;
    private static final long LK_END = 24;
    private static final long LK_TYPE = 32;
    private static final long LK_PID = 36;
    private static final long LK_FLAGS = 40;
    private static final int LK_FLOCK = 1;
    private static final int F_RDLCK = 0;
    private static final int F_WRLCK = 1;
    private static final int F_UNLCK = 2;

    private static final long NS_PER_S = 1_000_000_000L;
    private static final long MAX_TIME_S = Long.MAX_VALUE / NS_PER_S - 1;

    private final Operations operations;
    private final int setxattrInBytes;

    public Dispatcher(Operations operations, Negotiation negotiation) {
        this.operations = operations;
        this.setxattrInBytes = negotiation.has(InitFlags.SETXATTR_EXT) ? SETXATTR_IN_BYTES : SETXATTR_IN_BYTES_BEFORE;
    }

    /**
     * Leaves the reply in the exchange.
     *
     * @throws MustWait {@code call.mayWait()} is false and the answer needs it; the exchange can be dispatched again
     */
    public void dispatch(Exchange exchange, Call call) {
        exchange.clear();
        Opcode opcode = exchange.opcode();
        try {
            if (opcode == null) {
                exchange.fail(Errno.ENOSYS);
            } else {
                answer(opcode, exchange, call);
            }
        } catch (FsException e) {
            exchange.fail(e.errno());
        } catch (MustWait e) {
            if (!call.mayWait()) {
                throw e;
            }
            fault(opcode, exchange, e);
        } catch (RuntimeException e) {
            fault(opcode, exchange, e);
        }
    }

    /**
     * To be called when the reply is about to be given to the kernel, as late as can be: if it was made too long ago it says the same, and the kernel may not
     * believe it for longer than it takes to use it once. May be called again until the kernel has it.
     */
    public void replying(Exchange exchange, Call call) {
        if (call.hasGrants() && exchange.error() == 0 && !operations.grantsStand(call)) {
            Replies.withoutValidity(exchange.opcode(), exchange.memory(), exchange.body(), exchange.replyBytes() - Exchange.OUT_HEADER_BYTES);
        }
    }

    /** The reply to the call was written, or will not be. To be called after each dispatch, also one that threw. */
    public void replied(Call call) {
        if (call.hasGrants()) {
            try {
                operations.replied(call);
            } catch (RuntimeException e) {
                LOG.log(System.Logger.Level.ERROR, "after the reply to request " + call.unique(), e);
            }
        }
    }

    private static void fault(Opcode opcode, Exchange exchange, RuntimeException e) {
        LOG.log(System.Logger.Level.ERROR, "request " + exchange.unique() + " " + opcode + " of node " + exchange.nodeId() + " failed", e);
        if (opcode != Opcode.FORGET && opcode != Opcode.BATCH_FORGET) {
            exchange.fail(Errno.EIO);
        }
    }

    private void answer(Opcode opcode, Exchange x, Call call) throws FsException {
        switch (opcode) {
            case LOOKUP -> entry(x, operations.lookup(call, x.nodeId(), name(x, 0)));
            case FORGET -> operations.forget(x.nodeId(), u64(x, 0));
            case BATCH_FORGET -> batchForget(x);
            case GETATTR -> x.succeed(Replies.attr(x.memory(), body(x), getattr(x, call)));
            case STATX -> x.succeed(Replies.statx(x.memory(), body(x), getattr(x, call)));
            case SETATTR -> x.succeed(Replies.attr(x.memory(), body(x), operations.setattr(call, x.nodeId(), change(x))));
            case READLINK -> bytes(x, operations.readlink(call, x.nodeId()));
            case SYMLINK -> symlink(x, call);
            case MKNOD -> entry(x, operations.mknod(call, x.nodeId(), name(x, 16), u32(x, 0), u32(x, 8), u32(x, 4)));
            case MKDIR -> entry(x, operations.mkdir(call, x.nodeId(), name(x, 8), u32(x, 0), u32(x, 4)));
            case UNLINK -> {
                operations.unlink(call, x.nodeId(), name(x, 0));
                x.succeed(0);
            }
            case RMDIR -> {
                operations.rmdir(call, x.nodeId(), name(x, 0));
                x.succeed(0);
            }
            case RENAME -> rename(x, call, 8, 0);
            case RENAME2 -> rename(x, call, 16, u32(x, 8));
            case LINK -> entry(x, operations.link(call, u64(x, 0), x.nodeId(), name(x, 8)));
            case OPEN -> x.succeed(Replies.opened(x.memory(), body(x),
                    operations.open(call, x.nodeId(), u32(x, 0), (u32(x, 4) & OPEN_KILL_SUIDGID) != 0)));
            case CREATE -> created(x, operations.create(call, x.nodeId(), name(x, 16), u32(x, 4), u32(x, 8), u32(x, 0)));
            case TMPFILE -> created(x, operations.tmpfile(call, x.nodeId(), u32(x, 4), u32(x, 8), u32(x, 0)));
            case READ -> read(x, call);
            case WRITE -> write(x, call);
            case STATFS -> x.succeed(Replies.statfs(x.memory(), body(x), operations.statfs(call)));
            case FLUSH -> {
                operations.flush(call, x.nodeId(), u64(x, 0), u64(x, 16));
                x.succeed(0);
            }
            case RELEASE -> {
                operations.release(call, x.nodeId(), u64(x, 0));
                x.succeed(0);
            }
            case FSYNC -> {
                operations.fsync(call, x.nodeId(), u64(x, 0), (u32(x, 8) & FSYNC_FDATASYNC) != 0);
                x.succeed(0);
            }
            case OPENDIR -> x.succeed(Replies.opened(x.memory(), body(x), operations.opendir(call, x.nodeId())));
            case READDIR -> readdir(x, call, false);
            case READDIRPLUS -> readdir(x, call, true);
            case RELEASEDIR -> {
                operations.releasedir(call, x.nodeId(), u64(x, 0));
                x.succeed(0);
            }
            case FSYNCDIR -> {
                operations.fsyncdir(call, x.nodeId(), u64(x, 0), (u32(x, 8) & FSYNC_FDATASYNC) != 0);
                x.succeed(0);
            }
            case SETXATTR -> setxattr(x, call);
            case GETXATTR -> getxattr(x, call);
            case LISTXATTR -> listxattr(x, call);
            case REMOVEXATTR -> {
                operations.removexattr(call, x.nodeId(), name(x, 0));
                x.succeed(0);
            }
            case LSEEK -> {
                Wire.u64(x.memory(), body(x), operations.lseek(call, x.nodeId(), u64(x, 0), u64(x, 8), u32(x, 16)));
                x.succeed(8);
            }
            case FALLOCATE -> {
                operations.fallocate(call, x.nodeId(), u64(x, 0), u64(x, 8), u64(x, 16), u32(x, 24));
                x.succeed(0);
            }
            case DESTROY -> x.succeed(0);
            case NOTIFY_REPLY -> { }
            case GETLK -> x.succeed(Replies.lock(x.memory(), body(x), operations.getlk(call, x.nodeId(), u64(x, 0), lock(x))));
            case SETLK -> setlk(x, call, false);
            case SETLKW -> setlk(x, call, true);
            // ACCESS does not come with default_permissions. The kernel copies ranges itself.
            case ACCESS, BMAP, IOCTL, POLL, COPY_FILE_RANGE, COPY_FILE_RANGE_64, SETUPMAPPING, REMOVEMAPPING, SYNCFS ->
                    x.fail(Errno.ENOSYS);
            case INIT, INTERRUPT -> throw new IllegalStateException(opcode + " is not an operation");
        }
    }

    private void batchForget(Exchange x) {
        int count = u32(x, 0);
        for (int i = 0; i < count; i++) {
            operations.forget(u64(x, 8 + 16L * i), u64(x, 16 + 16L * i));
        }
    }

    /** GETATTR and STATX start alike: flags, reserved, handle. */
    private Operations.Attr getattr(Exchange x, Call call) throws FsException {
        return operations.getattr(call, x.nodeId(), (u32(x, 0) & GETATTR_FH) != 0 ? u64(x, 8) : -1);
    }

    /** struct fuse_setattr_in. */
    private static Change change(Exchange x) {
        int valid = u32(x, 0);
        // The kernel adds the file type to the mode of a chmod.
        Integer mode = (valid & FATTR_MODE) != 0 ? u32(x, 68) & 07777 : null;
        Integer uid = (valid & FATTR_UID) != 0 ? u32(x, 76) : null;
        Integer gid = (valid & FATTR_GID) != 0 ? u32(x, 80) : null;
        Long size = (valid & FATTR_SIZE) != 0 ? u64(x, 16) : null;
        Long atime = time(x, valid, FATTR_ATIME, FATTR_ATIME_NOW, 32, 56);
        Long mtime = time(x, valid, FATTR_MTIME, FATTR_MTIME_NOW, 40, 60);
        Long ctime = time(x, valid, FATTR_CTIME, 0, 48, 64);
        long handle = (valid & FATTR_FH) != 0 ? u64(x, 8) : -1;
        return new Change(mode, uid, gid, size, atime, mtime, ctime, handle, (valid & FATTR_KILL_SUIDGID) != 0);
    }

    /** Times that do not fit into 64 bits of ns (the years 1678 to 2262) become the nearest that does. */
    private static Long time(Exchange x, int valid, int isSet, int isNow, long secondsAt, long nanosAt) {
        if ((valid & isNow) != 0) {
            return Change.NOW_NS;
        }
        if ((valid & isSet) == 0) {
            return null;
        }
        long seconds = Math.clamp(u64(x, secondsAt), -MAX_TIME_S, MAX_TIME_S);
        return seconds * NS_PER_S + u32(x, nanosAt);
    }

    private void symlink(Exchange x, Call call) throws FsException {
        byte[] name = name(x, 0);
        entry(x, operations.symlink(call, x.nodeId(), name, name(x, name.length + 1L)));
    }

    private void rename(Exchange x, Call call, int arguments, int flags) throws FsException {
        byte[] name = name(x, arguments);
        operations.rename(call, x.nodeId(), name, u64(x, 0), name(x, arguments + name.length + 1L), flags);
        x.succeed(0);
    }

    private static void created(Exchange x, Created created) {
        int length = Replies.entry(x.memory(), body(x), created.entry());
        x.succeed(length + Replies.opened(x.memory(), body(x) + length, created.opened()));
    }

    private void read(Exchange x, Call call) throws FsException {
        int size = u32(x, 16);
        MemorySegment scratch = x.memory().asSlice(body(x), (long) size + Exchange.READ_SLACK_BYTES);
        x.succeed(operations.read(call, x.nodeId(), u64(x, 0), u64(x, 8), size, openFlags(x, u32(x, 20)), scratch));
    }

    /** READ and WRITE have them in the same place. */
    private static int openFlags(Exchange x, int requestFlags) {
        boolean direct = (requestFlags & LOCKOWNER) != 0 && (requestFlags & WRITE_CACHE) == 0;
        return u32(x, 32) & ~Operations.AROUND_CACHE | (direct ? Operations.AROUND_CACHE : 0);
    }

    private void write(Exchange x, Call call) throws FsException {
        int writeFlags = u32(x, 20);
        MemorySegment data = x.memory().asSlice(x.request() + Exchange.WRITE_DATA_OFFSET, Integer.toUnsignedLong(u32(x, 16)));
        int written = operations.write(call, x.nodeId(), u64(x, 0), u64(x, 8), data, openFlags(x, writeFlags), (writeFlags & WRITE_CACHE) != 0,
                (writeFlags & WRITE_KILL_SUIDGID) != 0);
        Wire.u32(x.memory(), body(x), written);
        Wire.u32(x.memory(), body(x) + 4, 0);
        x.succeed(8);
    }

    /** struct fuse_lk_in. An unlock has no wanted lock. */
    private void setlk(Exchange x, Call call, boolean wait) throws FsException {
        if (u32(x, LK_TYPE) == F_UNLCK) {
            requireRange(x);
            operations.unlock(call, x.nodeId(), u64(x, 0), lockOwner(x), u64(x, LK_START), u64(x, LK_END));
        } else {
            operations.lock(call, x.nodeId(), u64(x, 0), lock(x), wait);
        }
        x.succeed(0);
    }

    private static HeldLock lock(Exchange x) throws FsException {
        int type = u32(x, LK_TYPE);
        if (type != F_RDLCK && type != F_WRLCK) {
            throw new FsException(Errno.EINVAL);
        }
        requireRange(x);
        return new HeldLock(lockOwner(x), u64(x, LK_START), u64(x, LK_END), type == F_WRLCK, u32(x, LK_PID));
    }

    private static void requireRange(Exchange x) throws FsException {
        if (u64(x, LK_START) < 0 || u64(x, LK_END) < u64(x, LK_START)) {
            throw new FsException(Errno.EINVAL);
        }
    }

    private static LockOwner lockOwner(Exchange x) {
        return new LockOwner((u32(x, LK_FLAGS) & LK_FLOCK) != 0, u64(x, 8));
    }

    private void readdir(Exchange x, Call call, boolean withAttributes) throws FsException {
        DirectoryReply reply = new DirectoryReply(x.memory(), body(x), Math.min(u32(x, 16), x.bodyCapacity()), withAttributes);
        operations.readdir(call, x.nodeId(), u64(x, 0), u64(x, 8), withAttributes, reply);
        x.succeed(reply.length());
    }

    private void setxattr(Exchange x, Call call) throws FsException {
        byte[] name = name(x, setxattrInBytes);
        byte[] value = Wire.bytes(x.memory(), argument(x, setxattrInBytes + name.length + 1L), u32(x, 0));
        boolean killSetGid = setxattrInBytes == SETXATTR_IN_BYTES && (u32(x, 8) & SETXATTR_ACL_KILL_SGID) != 0;
        operations.setxattr(call, x.nodeId(), name, value, u32(x, 4) & ~Operations.SET_XATTR_KILL_SET_GID | (killSetGid ? Operations.SET_XATTR_KILL_SET_GID : 0));
        x.succeed(0);
    }

    private void getxattr(Exchange x, Call call) throws FsException {
        byte[] value = operations.getxattr(call, x.nodeId(), name(x, 8));
        if (attributeFits(x, value.length)) {
            bytes(x, value);
        }
    }

    private void listxattr(Exchange x, Call call) throws FsException {
        List<byte[]> names = operations.listxattr(call, x.nodeId());
        int length = 0;
        for (byte[] name : names) {
            length += name.length + 1;
        }
        if (attributeFits(x, length)) {
            long at = body(x);
            for (byte[] name : names) {
                Wire.bytes(x.memory(), at, name);
                x.memory().set(ValueLayout.JAVA_BYTE, at + name.length, (byte) 0);
                at += name.length + 1;
            }
            x.succeed(length);
        }
    }

    /** Answers a request for the size only, and one with too small a buffer. */
    private static boolean attributeFits(Exchange x, int length) throws FsException {
        int size = u32(x, 0);
        if (size == 0) {
            Wire.u32(x.memory(), body(x), length);
            Wire.u32(x.memory(), body(x) + 4, 0);
            x.succeed(8);
            return false;
        }
        if (Integer.compareUnsigned(length, size) > 0) {
            throw new FsException(Errno.ERANGE);
        }
        return true;
    }

    private static void entry(Exchange x, Entry entry) {
        x.succeed(Replies.entry(x.memory(), body(x), entry));
    }

    private static void bytes(Exchange x, byte[] value) {
        if (value.length > x.bodyCapacity()) {
            throw new IllegalStateException(value.length + " bytes do not fit into a reply");
        }
        Wire.bytes(x.memory(), body(x), value);
        x.succeed(value.length);
    }

    private static long argument(Exchange x, long offset) {
        return x.request() + Exchange.IN_HEADER_BYTES + offset;
    }

    private static int u32(Exchange x, long offset) {
        return Wire.u32(x.memory(), argument(x, offset));
    }

    private static long u64(Exchange x, long offset) {
        return Wire.u64(x.memory(), argument(x, offset));
    }

    private static byte[] name(Exchange x, long offset) {
        return Wire.string(x.memory(), argument(x, offset), x.request() + x.length());
    }

    private static long body(Exchange x) {
        return x.body();
    }
}
