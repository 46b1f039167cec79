package io.etcfs.fuse.protocol;

import io.etcfs.core.fs.Attributes;
import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.Operations;
import io.etcfs.core.lock.HeldLock;
import io.etcfs.core.lock.LockOwner;
import io.etcfs.core.lock.LockRequest;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/** Writes down each call as a line, and answers what it was told to (an exception is thrown) or, by default, something with distinct values. */
final class RecordedOperations {
    static final Attributes ATTRIBUTES = new Attributes(0x0102030405060708L, 0x11121314, 0x21222324, 0x31323334, 0x41424344, 0x5152535455565758L,
            0x6162636465666768L, 0x71727374L * 1_000_000_000L + 0x01020304, 0x75767778L * 1_000_000_000L + 0x05060708,
            0x797a7b7cL * 1_000_000_000L + 0x090a0b0c, 0x10111213L * 1_000_000_000L + 0x14151617, 0x0abcde12);
    static final Operations.Entry ENTRY = new Operations.Entry(0x8182838485868788L, 0x9192939495969798L, ATTRIBUTES, 3_000_000_004L, 5_000_000_006L);
    static final Operations.Opened OPENED = new Operations.Opened(0xa1a2a3a4a5a6a7a8L, 0xb1b2b3b4);

    final List<String> calls = new ArrayList<>();
    final List<Call> callers = new ArrayList<>();
    Object answer;
    /** The answer is null. */
    boolean nothing;

    Operations operations() {
        return (Operations) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {Operations.class}, this::invoke);
    }

    private Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
        if (method.getName().equals("grantsStand")) {
            return false;
        }
        StringBuilder line = new StringBuilder(method.getName());
        for (Object argument : arguments) {
            if (argument instanceof Call call) {
                callers.add(call);
            } else if (!(argument instanceof Operations.DirectorySink)) {
                line.append(' ').append(show(argument));
            }
        }
        calls.add(line.toString());
        if (answer instanceof Throwable thrown) {
            throw thrown;
        }
        if (method.getName().equals("readdir")) {
            list((Operations.DirectorySink) arguments[arguments.length - 1], (boolean) arguments[arguments.length - 2]);
            return null;
        }
        if (answer != null || nothing) {
            return answer;
        }
        Class<?> type = method.getReturnType();
        if (type == Operations.Entry.class) {
            return ENTRY;
        } else if (type == Operations.Attr.class) {
            return new Operations.Attr(ATTRIBUTES, 3_000_000_004L);
        } else if (type == Operations.Opened.class) {
            return OPENED;
        } else if (type == Operations.Created.class) {
            return new Operations.Created(ENTRY, OPENED);
        } else if (type == LockRequest.Conflict.class) {
            return new LockRequest.Conflict(0x0908070605040302L, 0x1918171615141312L, true, 0x21222324, true);
        } else if (type == Operations.FilesystemStatus.class) {
            return new Operations.FilesystemStatus(0x01020304, 0x1112131415161718L, 0x2122232425262728L, 0x3132333435363738L, 0x4142434445464748L,
                    0x5152535455565758L, 0x61626364);
        } else if (type == byte[].class) {
            return "bytes".getBytes(StandardCharsets.UTF_8);
        } else if (type == List.class) {
            return List.of("user.a".getBytes(StandardCharsets.UTF_8), "user.bc".getBytes(StandardCharsets.UTF_8));
        } else if (type == int.class) {
            return 0x01020304;
        } else if (type == long.class) {
            return 0x0102030405060708L;
        } else if (type == MemorySegment.class) {
            MemorySegment scratch = (MemorySegment) arguments[arguments.length - 1];
            scratch.setString(3, "read");
            return scratch.asSlice(3, 4);
        }
        return null;
    }

    private static void list(Operations.DirectorySink sink, boolean withAttributes) {
        sink.add(new byte[] {'.'}, 0x0102030405060708L, 4, 1, withAttributes ? ENTRY : null);
        sink.add("eight888".getBytes(StandardCharsets.UTF_8), 0x1112131415161718L, 8, 0x2122232425262728L, withAttributes ? ENTRY : null);
        if (sink.hasRoomFor(16)) {
            sink.add("no attributes 16".getBytes(StandardCharsets.UTF_8), 0x3132333435363738L, 10, 3, null);
        }
    }

    private static String show(Object argument) {
        if (argument instanceof byte[] bytes) {
            return '"' + new String(bytes, StandardCharsets.UTF_8) + '"';
        } else if (argument instanceof Long number) {
            return "0x" + Long.toHexString(number);
        } else if (argument instanceof Integer number) {
            return "0x" + Integer.toHexString(number);
        } else if (argument instanceof MemorySegment memory) {
            return memory.byteSize() > 64 ? "[" + memory.byteSize() + " bytes]"
                    : "[" + HexFormat.of().formatHex(memory.toArray(ValueLayout.JAVA_BYTE)) + "]";
        } else if (argument instanceof HeldLock l) {
            return show(l.owner()) + " " + Long.toHexString(l.start()) + "-" + Long.toHexString(l.end()) + (l.exclusive() ? " w " : " r ") + Integer.toHexString(l.pid());
        } else if (argument instanceof LockOwner o) {
            return (o.flock() ? "flock:" : "fcntl:") + Long.toHexString(o.id());
        } else if (argument instanceof Operations.Change c) {
            return "mode=" + showNullable(c.mode()) + " uid=" + showNullable(c.uid()) + " gid=" + showNullable(c.gid()) + " size=" + showNullable(c.size())
                    + " atime=" + c.atimeNs() + " mtime=" + c.mtimeNs() + " ctime=" + c.ctimeNs() + " handle=" + show(c.handle()) + " kill=" + c.killPrivileges();
        }
        return String.valueOf(argument);
    }

    private static String showNullable(Object argument) {
        return argument == null ? "-" : show(argument);
    }
}
