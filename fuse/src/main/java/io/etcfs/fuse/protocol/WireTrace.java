package io.etcfs.fuse.protocol;

import io.etcfs.core.fs.Errno;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;

/**
 * One line for each message, for logger {@code io.etcfs.fuse} at DEBUG, or, with the system property {@code io.etcfs.fuse.trace}, at INFO.
 *
 * <pre>
 * rx 42 LOOKUP n1 "name" p812 u0 g0     request 42 of node 1 from thread 812, user 0, group 0
 * rx 44 READ n5 h3 4096+131072 p812 ... handle 3, offset 4096, length 131072
 * rx 46 SETLKW n5 h3 w 0-9 of p812 ...  handle 3, write lock (r: read lock, un: none) of bytes 0 to 9 for owner f (hexadecimal); flock: of flock(2)
 * tx 42 ENOENT                          its answer
 * tx 44 OK 131072                       bytes behind the header
 * wt 44                                 it could not be answered at once: it waits
 * </pre>
 */
public final class WireTrace {
    private static final System.Logger LOG = System.getLogger("io.etcfs.fuse");

    private final System.Logger.Level level;

    private WireTrace(System.Logger.Level level) {
        this.level = level;
    }

    /** As configured now; null: not wanted. */
    public static WireTrace ifEnabled() {
        if (LOG.isLoggable(System.Logger.Level.DEBUG)) {
            return new WireTrace(System.Logger.Level.DEBUG);
        }
        return Boolean.getBoolean("io.etcfs.fuse.trace") ? new WireTrace(System.Logger.Level.INFO) : null;
    }

    public void received(Exchange exchange) {
        LOG.log(level, describeRequest(exchange));
    }

    public void waits(Exchange exchange) {
        LOG.log(level, "wt " + exchange.unique());
    }

    public void replied(Exchange exchange) {
        if (exchange.replyBytes() > 0) {
            LOG.log(level, describeReply(exchange));
        }
    }

    static String describeRequest(Exchange x) {
        StringBuilder line = new StringBuilder("rx ").append(x.unique()).append(' ');
        Opcode opcode = x.opcode();
        line.append(opcode == null ? "opcode " + x.opcodeNumber() : opcode.name()).append(" n").append(x.nodeId());
        MemorySegment memory = x.memory();
        long body = x.request() + Exchange.IN_HEADER_BYTES;
        switch (opcode) {
            case LOOKUP, UNLINK, RMDIR, REMOVEXATTR, SYMLINK -> name(line, x, 0);
            case MKDIR, LINK, GETXATTR -> name(line, x, 8);
            case MKNOD, CREATE -> name(line, x, 16);
            case RENAME -> renamed(line, x, 8);
            case RENAME2 -> renamed(line, x, 16);
            case READ, READDIR, READDIRPLUS, WRITE -> line.append(" h").append(Wire.u64(memory, body)).append(' ').append(Wire.u64(memory, body + 8))
                    .append('+').append(Integer.toUnsignedString(Wire.u32(memory, body + 16)));
            case OPEN, OPENDIR -> line.append(" 0x").append(Integer.toHexString(Wire.u32(memory, body)));
            case SETATTR -> line.append(" valid 0x").append(Integer.toHexString(Wire.u32(memory, body)));
            case RELEASE, RELEASEDIR, FLUSH, FSYNC, FSYNCDIR, LSEEK, FALLOCATE -> line.append(" h").append(Wire.u64(memory, body));
            case GETLK, SETLK, SETLKW -> lock(line, memory, body);
            case FORGET -> line.append(" x").append(Wire.u64(memory, body));
            case BATCH_FORGET -> line.append(" of ").append(Wire.u32(memory, body));
            case INTERRUPT -> line.append(" of ").append(Wire.u64(memory, body));
            case null, default -> { }
        }
        return line.append(" p").append(x.pid()).append(" u").append(x.uid()).append(" g").append(x.gid()).toString();
    }

    private static void lock(StringBuilder line, MemorySegment memory, long body) {
        line.append(" h").append(Wire.u64(memory, body)).append((Wire.u32(memory, body + 40) & 1) != 0 ? " flock " : " ")
                .append(switch (Wire.u32(memory, body + 32)) {
                    case 0 -> "r ";
                    case 1 -> "w ";
                    default -> "un ";
                }).append(Wire.u64(memory, body + 16)).append('-').append(Wire.u64(memory, body + 24)).append(" o").append(Long.toHexString(Wire.u64(memory, body + 8)));
    }

    static String describeReply(Exchange x) {
        String line = "tx " + x.unique() + " ";
        if (x.error() != 0) {
            return line + name(x.error());
        }
        long bytes = x.replyBytes() - Exchange.OUT_HEADER_BYTES + (x.data() == null ? 0 : x.data().byteSize());
        return line + "OK" + (bytes == 0 ? "" : " " + bytes);
    }

    private static String name(int errno) {
        for (Errno known : Errno.values()) {
            if (known.number() == errno) {
                return known.name();
            }
        }
        return "errno " + errno;
    }

    private static byte[] name(StringBuilder line, Exchange x, int offset) {
        byte[] name = Wire.string(x.memory(), x.request() + Exchange.IN_HEADER_BYTES + offset, x.request() + x.length());
        line.append(" \"").append(new String(name, StandardCharsets.UTF_8)).append('"');
        return name;
    }

    private static void renamed(StringBuilder line, Exchange x, int arguments) {
        byte[] name = name(line, x, arguments);
        line.append(" to n").append(Wire.u64(x.memory(), x.request() + Exchange.IN_HEADER_BYTES));
        name(line, x, arguments + name.length + 1);
    }
}
