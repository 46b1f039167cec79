package io.etcfs.testkit.sim;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.fs.Errno;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** An operation of a program, when it was called and returned, and what it answered. */
final class Op {
    enum Kind {
        LOOKUP, READDIR, STAT, READ, OPEN, CLOSE, FSYNC, CREATE, MKDIR, LINK, UNLINK, RMDIR, RENAME, WRITE, APPEND, TRUNCATE, PUNCH,
        /** What a permission check goes by beside the mode: the access ACL, or that there is none. */
        ACCESS,
        /** O_TMPFILE. */
        TMPFILE,
        CHMOD,
        /** {@link #acl} null: removes it. */
        SET_ACL, SET_DEFAULT_ACL;

        /** Of those, only runs with {@link World#extras} have some. */
        boolean extra() {
            return ordinal() >= ACCESS.ordinal();
        }
    }

    final Kind kind;
    /** Of the daemon that was asked: {@code n1.2} is the second of node n1. */
    final String process;
    /** The directory, or the file. */
    final long ino;
    final String name;
    final long ino2;
    final String name2;
    final long offset;
    final long length;
    byte[] data;

    /** Numbers that grow with time; {@code returned} is {@link Long#MAX_VALUE} until it has. */
    long called;
    long returned = Long.MAX_VALUE;
    Errno error;
    /** Not all was written. */
    boolean cut;
    /** The daemon went before it answered. */
    boolean gone;
    long resultIno;
    long resultSize;
    int resultNlink;
    /** The permission bits that CHMOD sets and STAT shows. */
    int mode;
    SimAcl acl;
    /** Of a READDIR: the names at hashes above {@link #offset} up to {@code listedTo}. */
    Map<String, Long> listing;
    long listedTo;
    /** Somebody changed the file's size meanwhile. */
    boolean sizeChanged;
    /** The kernel cut what was read at an end of the file that it knew to be out of date. */
    boolean byOldSize;
    /** The kernel was cutting the page at an end that it had been told before: what is there may be zeros. */
    boolean cutBefore;
    /** Some of what was read may be of a WRITE that this machine's kernel had not heard the answer of: it has the bytes in its pages before they are anywhere else. */
    boolean ofUnanswered;
    /** Of a READ of pages whose session had ended: what it shows may be from any time since then, not only since it was called; 0: it is not one. */
    long shownFrom;
    List<Op> writesMeanwhile = List.of();
    List<Op> holesMeanwhile = List.of();
    /** What it may have left of what it wrote does not change any more for whoever is called from then on: another node has its domain, or the daemon has ended it. */
    long settledFrom = Long.MAX_VALUE;
    /**
     * Another process of the machine was changing what this looked at, and the kernel had not heard the answer: what it remembers from before and what the daemon
     * says already may both be seen, as on a local filesystem between a change and the dentry's.
     */
    boolean changedHereMeanwhile;

    Op(Kind kind, String process, long ino, String name, long ino2, String name2, long offset, long length, byte[] data) {
        this.kind = kind;
        this.process = process;
        this.ino = ino;
        this.name = name;
        this.ino2 = ino2;
        this.name2 = name2;
        this.offset = offset;
        this.length = length;
        this.data = data;
    }

    /** A hole is made piece by piece, here as on a local filesystem: who reads meanwhile can see some of it. */
    boolean punchedMeanwhile(long at) {
        for (Op p : holesMeanwhile) {
            if (at >= p.offset && at < p.offset + p.length) {
                return true;
            }
        }
        return false;
    }

    boolean writtenHereMeanwhile(long at, byte value) {
        for (Op w : writesMeanwhile) {
            if (at >= w.offset && at < w.end() && w.data[(int) (at - w.offset)] == value) {
                return true;
            }
        }
        return false;
    }

    /** Of a READ with an answer: the same, block by block. */
    List<Op> blocks() {
        List<Op> all = new ArrayList<>();
        for (long from = offset; from < offset + length; ) {
            long to = Math.min(offset + length, (from / BlockDevice.BLOCK_BYTES + 1) * BlockDevice.BLOCK_BYTES);
            byte[] part = Arrays.copyOfRange(data, (int) Math.min(data.length, from - offset), (int) Math.min(data.length, to - offset));
            Op block = new Op(kind, process, ino, null, 0, null, from, to - from, part);
            block.called = called;
            block.returned = returned;
            block.sizeChanged = sizeChanged;
            block.byOldSize = byOldSize;
            block.cutBefore = cutBefore;
            block.ofUnanswered = ofUnanswered;
            block.shownFrom = shownFrom;
            block.writesMeanwhile = writesMeanwhile;
            block.holesMeanwhile = holesMeanwhile;
            all.add(block);
            from = to;
        }
        return all;
    }

    /** The earliest time that it can count at. */
    long countsFrom() {
        return shownFrom == 0 ? called : Math.min(called, shownFrom);
    }

    boolean overlaps(Op other) {
        return called < other.returned && other.called < returned;
    }

    /** On the same machine, whatever daemon it has. */
    boolean besides(Op other) {
        return other != this && process.substring(0, process.indexOf('.')).equals(other.process.substring(0, other.process.indexOf('.'))) && overlaps(other);
    }

    /** Whether it changes what a {@link Kind#LOOKUP} or {@link Kind#STAT} shows. Which inode a removed name was of is not known here. */
    boolean mayChange(Op look) {
        if (look.kind == Kind.LOOKUP) {
            return changes() && (ino == look.ino && look.name.equals(name) || ino2 == look.ino && look.name.equals(name2));
        }
        return changes() && (ino == look.ino || ino2 == look.ino || kind == Kind.UNLINK || kind == Kind.RMDIR || kind == Kind.RENAME);
    }

    /** So many bytes of the data were written: there was no room for the others, if there are any. */
    void written(int bytes) {
        cut = bytes < data.length;
        data = Arrays.copyOf(data, bytes);
    }

    boolean refused(Errno... some) {
        for (Errno e : some) {
            if (e == error) {
                return true;
            }
        }
        return false;
    }

    /** It may have been carried out, in full, or not. */
    boolean unknown() {
        return gone || returned == Long.MAX_VALUE || error == Errno.EIO || error == Errno.ETIMEDOUT || error == Errno.EINTR;
    }

    boolean changes() {
        return switch (kind) {
            // What has no name is gone after a crash in any case, and what gives it one is an operation of its own.
            case LOOKUP, READDIR, STAT, READ, FSYNC, OPEN, CLOSE, ACCESS, TMPFILE -> false;
            case CHMOD, SET_ACL, SET_DEFAULT_ACL, CREATE, MKDIR, LINK, UNLINK, RMDIR, RENAME, WRITE, APPEND, TRUNCATE, PUNCH -> true;
        };
    }

    /** Known to have changed something. */
    boolean changed() {
        return changes() && !unknown() && error == null;
    }

    /** Changes bytes in a range. */
    boolean writes() {
        return kind == Kind.WRITE || kind == Kind.APPEND || kind == Kind.PUNCH;
    }

    /** Of what a WRITE or PUNCH writes. */
    long end() {
        return offset + (kind == Kind.PUNCH ? length : data.length);
    }

    boolean makes() {
        return kind == Kind.CREATE || kind == Kind.MKDIR;
    }

    boolean changesSize() {
        return kind == Kind.WRITE || kind == Kind.APPEND || kind == Kind.TRUNCATE;
    }

    @Override
    public String toString() {
        StringBuilder s = new StringBuilder(process).append(' ').append(kind).append(' ').append(ino);
        if (name != null) {
            s.append('/').append(name);
        }
        if (ino2 != 0) {
            s.append(" -> ").append(ino2).append('/').append(name2);
        }
        if (kind == Kind.READ || kind == Kind.WRITE || kind == Kind.PUNCH || kind == Kind.APPEND) {
            s.append(" [").append(offset).append(", +").append(data == null || kind == Kind.READ ? length : data.length).append(')');
        } else if (kind == Kind.TRUNCATE) {
            s.append(" to ").append(length);
        } else if (kind == Kind.CHMOD) {
            s.append(" to ").append(Integer.toOctalString(mode));
        } else if (kind == Kind.SET_ACL || kind == Kind.SET_DEFAULT_ACL) {
            s.append(" to ").append(acl);
        }
        s.append(" = ");
        if (gone || returned == Long.MAX_VALUE) {
            return s.append("no answer").toString();
        }
        if (error != null) {
            return s.append(error).toString();
        }
        return switch (kind) {
            case ACCESS -> s.append(acl).toString();
            case LOOKUP, CREATE, MKDIR, TMPFILE -> s.append(resultIno).toString();
            case READDIR -> s.append(listing).toString();
            case STAT -> s.append(resultSize).append(" bytes, nlink ").append(resultNlink).append(", mode ").append(Integer.toOctalString(mode)).toString();
            case READ -> s.append(data.length).append(" bytes ").append(runs(data)).toString();
            case WRITE, APPEND -> s.append("ok ").append(runs(data)).toString();
            default -> s.append("ok").toString();
        };
    }

    /** Equal bytes as one: {@code 0x12, 7x100}. */
    private static String runs(byte[] bytes) {
        StringBuilder s = new StringBuilder("(");
        for (int i = 0; i < bytes.length; ) {
            int j = i;
            while (j < bytes.length && bytes[j] == bytes[i]) {
                j++;
            }
            s.append(i == 0 ? "" : ", ").append(bytes[i] & 0xff).append('x').append(j - i);
            i = j;
        }
        return s.append(')').toString();
    }
}
