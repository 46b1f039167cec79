package io.etcfs.fuse.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.fs.MustWait;
import io.etcfs.core.fs.Operations;
import java.nio.charset.StandardCharsets;
import java.util.EnumSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;

/** Literal request bytes, little-endian, and what becomes of them; literal reply bytes. */
class DispatcherTest {
    private static final String UNIQUE = "0807060504030201";
    private static final String OK = "10000000 00000000" + UNIQUE;
    private static final String NODE = "0x1112131415161718";
    /** struct fuse_attr. */
    private static final String ATTRIBUTES = "0807060504030201 5857565554535251 6867666564636261 7473727100000000 7877767500000000 7c7b7a7900000000"
            + "04030201 08070605 0c0b0a09 14131211 44434241 24232221 34333231 12debc0a 00100000 00000000";
    /** struct fuse_entry_out. */
    private static final String ENTRY = "8887868584838281 9897969594939291 0300000000000000 0500000000000000 04000000 06000000" + ATTRIBUTES;
    private static final String ENTRY_REPLY = "90000000 00000000" + UNIQUE + ENTRY;
    private static final String ATTR_REPLY = "78000000 00000000" + UNIQUE + "0300000000000000 04000000 00000000" + ATTRIBUTES;
    private static final String OPENED = "a8a7a6a5a4a3a2a1 b4b3b2b1 00000000";

    private static final Set<Opcode> TESTED = EnumSet.of(Opcode.INIT, Opcode.INTERRUPT);

    private static String error(Errno errno) {
        return "10000000 " + HexFormat.of().toHexDigits(Integer.reverseBytes(-errno.number())) + UNIQUE;
    }

    private static void check(Opcode opcode, String body, String expectedCall, String expectedReply) {
        TESTED.add(opcode);
        RecordedOperations operations = new RecordedOperations();
        String reply = new Message(opcode.number(), body).dispatch(operations);
        assertEquals(expectedCall == null ? List.of() : List.of(expectedCall.split("\n")), operations.calls, opcode.name());
        assertEquals(expectedReply.replace(" ", ""), reply, opcode.name());
        for (Call call : operations.callers) {
            assertEquals(0x0102030405060708L, call.unique());
            assertEquals(0x21222324, call.uid());
            assertEquals(0x31323334, call.gid());
            assertEquals(0x41424344, call.pid());
        }
    }

    @AfterAll
    static void everyOpcodeWasTested() {
        assertEquals(EnumSet.allOf(Opcode.class), TESTED);
    }

    @Test
    void names() {
        check(Opcode.LOOKUP, "'name' 00", "lookup " + NODE + " \"name\"", ENTRY_REPLY);
        check(Opcode.FORGET, "5857565554535251", "forget " + NODE + " 0x5152535455565758", "");
        check(Opcode.BATCH_FORGET, "02000000 00000000 0101010101010101 0202020202020202 0303030303030303 0404040404040404",
                "forget 0x101010101010101 0x202020202020202\nforget 0x303030303030303 0x404040404040404", "");
        check(Opcode.SYMLINK, "'name' 00 'the/target' 00", "symlink " + NODE + " \"name\" \"the/target\"", ENTRY_REPLY);
        check(Opcode.MKNOD, "54535251 64636261 74737271 00000000 'name' 00", "mknod " + NODE + " \"name\" 0x51525354 0x71727374 0x61626364", ENTRY_REPLY);
        check(Opcode.MKDIR, "54535251 64636261 'name' 00", "mkdir " + NODE + " \"name\" 0x51525354 0x61626364", ENTRY_REPLY);
        check(Opcode.UNLINK, "'name' 00", "unlink " + NODE + " \"name\"", OK);
        check(Opcode.RMDIR, "'name' 00", "rmdir " + NODE + " \"name\"", OK);
        check(Opcode.RENAME, "5857565554535251 'old' 00 'newer' 00", "rename " + NODE + " \"old\" 0x5152535455565758 \"newer\" 0x0", OK);
        check(Opcode.RENAME2, "5857565554535251 02000000 00000000 'old' 00 'newer' 00", "rename " + NODE + " \"old\" 0x5152535455565758 \"newer\" 0x2", OK);
        check(Opcode.LINK, "5857565554535251 'name' 00", "link 0x5152535455565758 " + NODE + " \"name\"", ENTRY_REPLY);
        check(Opcode.READLINK, "", "readlink " + NODE, "15000000 00000000" + UNIQUE + "'bytes'".replace("'bytes'", "6279746573"));
        check(Opcode.CREATE, "54535251 64636261 74737271 00000000 'name' 00", "create " + NODE + " \"name\" 0x61626364 0x71727374 0x51525354",
                "a0000000 00000000" + UNIQUE + ENTRY + OPENED);
        check(Opcode.TMPFILE, "54535251 64636261 74737271 00000000 '/' 00", "tmpfile " + NODE + " 0x61626364 0x71727374 0x51525354",
                "a0000000 00000000" + UNIQUE + ENTRY + OPENED);
    }

    @Test
    void attributes() {
        check(Opcode.GETATTR, "00000000 00000000 5857565554535251", "getattr " + NODE + " 0xffffffffffffffff", ATTR_REPLY);
        check(Opcode.GETATTR, "01000000 00000000 5857565554535251", "getattr " + NODE + " 0x5152535455565758", ATTR_REPLY);
        check(Opcode.STATX, "01000000 00000000 5857565554535251 00000000 ff0f0000", "getattr " + NODE + " 0x5152535455565758",
                "30010000 00000000" + UNIQUE + "0300000000000000 04000000 00000000 0000000000000000 0000000000000000"
                        + "ff0f0000 00100000 0000000000000000 44434241 24232221 34333231 1413 0000 0807060504030201 5857565554535251 6867666564636261"
                        + "0000000000000000 7473727100000000 04030201 00000000 1312111000000000 17161514 00000000 7c7b7a7900000000 0c0b0a09 00000000"
                        + "7877767500000000 08070605 00000000 de0c0000 12ab0000 00000000 00000000" + "00".repeat(112));
        String fields = "5857565554535251 6867666564636261 0000000000000000"
                + "0100000000000000 0200000000000000 0300000000000000 04000000 05000000 06000000 ff8f0000 00000000 74737271 84838281 00000000";
        check(Opcode.SETATTR, "00000000 00000000" + fields,
                "setattr " + NODE + " mode=- uid=- gid=- size=- atime=null mtime=null ctime=null handle=0xffffffffffffffff kill=false", ATTR_REPLY);
        check(Opcode.SETATTR, "7f0e0000 00000000" + fields, "setattr " + NODE + " mode=0xfff uid=0x71727374 gid=0x81828384 size=0x6162636465666768"
                + " atime=1000000004 mtime=2000000005 ctime=3000000006 handle=0x5152535455565758 kill=true", ATTR_REPLY);
        check(Opcode.SETATTR, "b0010000 00000000" + fields, "setattr " + NODE + " mode=- uid=- gid=- size=- atime=" + Operations.Change.NOW_NS + " mtime="
                + Operations.Change.NOW_NS + " ctime=null handle=0xffffffffffffffff kill=false", ATTR_REPLY);
        check(Opcode.STATFS, "", "statfs", "60000000 00000000" + UNIQUE + "1817161514131211 2827262524232221 3837363534333231 4847464544434241"
                + "5857565554535251 04030201 64636261 04030201" + "00".repeat(28));
    }

    @Test
    void timesBeforeTheEpochAndBeyondTheRange() {
        String none = "0000000000000000";
        String body = "20000000 00000000" + none.repeat(3) + none + "feffffffffffffff" + none + "00000000 07000000 00000000" + "00000000".repeat(5);
        check(Opcode.SETATTR, body, "setattr " + NODE + " mode=- uid=- gid=- size=- atime=null mtime=-1999999993 ctime=null"
                + " handle=0xffffffffffffffff kill=false", ATTR_REPLY);
        check(Opcode.SETATTR, body.replace("feffffffffffffff", "ffffffffffffff7f"), "setattr " + NODE
                + " mode=- uid=- gid=- size=- atime=null mtime=9223372035000000007 ctime=null handle=0xffffffffffffffff kill=false", ATTR_REPLY);
        RecordedOperations operations = new RecordedOperations();
        var a = RecordedOperations.ATTRIBUTES;
        operations.answer = new Operations.Attr(new io.etcfs.core.fs.Attributes(1, 0, 0, 0, 0, 0, 0, -1_999_999_993L, 0, 0, 0, a.rdev()), -5);
        String reply = new Message(Opcode.GETATTR.number(), "00000000 00000000 " + none).dispatch(operations);
        assertEquals("0000000000000000" + "00000000", reply.substring(32, 56));
        assertEquals("feffffffffffffff", reply.substring(2 * (32 + 24), 2 * (32 + 32)));
        assertEquals("07000000", reply.substring(2 * (32 + 48), 2 * (32 + 52)));
    }

    @Test
    void files() {
        check(Opcode.OPEN, "54535251 01000000", "open " + NODE + " 0x51525354 true", "20000000 00000000" + UNIQUE + OPENED);
        check(Opcode.OPEN, "54535251 00000000", "open " + NODE + " 0x51525354 false", "20000000 00000000" + UNIQUE + OPENED);
        check(Opcode.READ, "5857565554535251 6867666564636261 00080000 02000000 7877767574737271 84838281 00000000",
                "read " + NODE + " 0x5152535455565758 0x6162636465666768 0x800 0xc1828384 [10240 bytes]", "14000000 00000000" + UNIQUE + "72656164");
        check(Opcode.WRITE, "5857565554535251 6867666564636261 05000000 00000000 7877767574737271 84838281 00000000 a1a2a3a4a5",
                "write " + NODE + " 0x5152535455565758 0x6162636465666768 [a1a2a3a4a5] 0x81828384 false false",
                "18000000 00000000" + UNIQUE + "04030201 00000000");
        check(Opcode.WRITE, "5857565554535251 6867666564636261 05000000 01000000 7877767574737271 84838281 00000000 a1a2a3a4a5",
                "write " + NODE + " 0x5152535455565758 0x6162636465666768 [a1a2a3a4a5] 0x81828384 true false",
                "18000000 00000000" + UNIQUE + "04030201 00000000");
        check(Opcode.WRITE, "5857565554535251 6867666564636261 05000000 06000000 7877767574737271 84838281 00000000 a1a2a3a4a5",
                "write " + NODE + " 0x5152535455565758 0x6162636465666768 [a1a2a3a4a5] 0xc1828384 false true",
                "18000000 00000000" + UNIQUE + "04030201 00000000");
        check(Opcode.FLUSH, "5857565554535251 00000000 00000000 6867666564636261", "flush " + NODE + " 0x5152535455565758 0x6162636465666768", OK);
        check(Opcode.RELEASE, "5857565554535251 64636261 00000000 7877767574737271", "release " + NODE + " 0x5152535455565758", OK);
        check(Opcode.FSYNC, "5857565554535251 00000000 00000000", "fsync " + NODE + " 0x5152535455565758 false", OK);
        check(Opcode.FSYNC, "5857565554535251 01000000 00000000", "fsync " + NODE + " 0x5152535455565758 true", OK);
        check(Opcode.LSEEK, "5857565554535251 6867666564636261 03000000 00000000", "lseek " + NODE + " 0x5152535455565758 0x6162636465666768 0x3",
                "18000000 00000000" + UNIQUE + UNIQUE);
        check(Opcode.FALLOCATE, "5857565554535251 6867666564636261 7877767574737271 84838281 00000000",
                "fallocate " + NODE + " 0x5152535455565758 0x6162636465666768 0x7172737475767778 0x81828384", OK);
    }

    @Test
    void directories() {
        check(Opcode.OPENDIR, "54535251 00000000", "opendir " + NODE, "20000000 00000000" + UNIQUE + OPENED);
        String dot = UNIQUE + "0100000000000000 01000000 04000000 2e 00000000000000";
        String eight = "1817161514131211 2827262524232221 08000000 08000000" + "6569676874383838";
        String sixteen = "3837363534333231 0300000000000000 10000000 0a000000" + "6e6f20617474726962757465732031 36".replace(" ", "");
        String arguments = "5857565554535251 6867666564636261 %s 00000000 0000000000000000 00000000 00000000";
        check(Opcode.READDIR, arguments.formatted("00020000"), "readdir " + NODE + " 0x5152535455565758 0x6162636465666768 false",
                "78000000 00000000" + UNIQUE + dot + eight + sixteen);
        check(Opcode.READDIR, arguments.formatted("67000000"), "readdir " + NODE + " 0x5152535455565758 0x6162636465666768 false",
                "50000000 00000000" + UNIQUE + dot + eight);
        check(Opcode.READDIRPLUS, arguments.formatted("00020000"), "readdir " + NODE + " 0x5152535455565758 0x6162636465666768 true",
                "f8010000 00000000" + UNIQUE + "00".repeat(128) + dot + ENTRY + eight + "00".repeat(128) + sixteen);
        check(Opcode.READDIRPLUS, arguments.formatted("e7010000"), "readdir " + NODE + " 0x5152535455565758 0x6162636465666768 true",
                "50010000 00000000" + UNIQUE + "00".repeat(128) + dot + ENTRY + eight);
        check(Opcode.RELEASEDIR, "5857565554535251 64636261 00000000 7877767574737271", "releasedir " + NODE + " 0x5152535455565758", OK);
        check(Opcode.FSYNCDIR, "5857565554535251 01000000 00000000", "fsyncdir " + NODE + " 0x5152535455565758 true", OK);
    }

    @Test
    void entriesThatDoNotFitAreAFault() {
        String reply = new Message(Opcode.READDIR.number(), "5857565554535251 6867666564636261 30000000 00000000 0000000000000000 00000000 00000000")
                .dispatch(new RecordedOperations());
        assertEquals(error(Errno.EIO).replace(" ", ""), reply);
    }

    @Test
    void extendedAttributes() {
        check(Opcode.SETXATTR, "05000000 02000000 00000000 00000000 'user.n' 00 a1a200a4a5", "setxattr " + NODE + " \"user.n\" \"\ufffd\ufffd\0\ufffd\ufffd\" 0x2", OK);
        check(Opcode.SETXATTR, "03000000 01000000 01000000 00000000 'user.n' 00 'abc'", "setxattr " + NODE + " \"user.n\" \"abc\" 0x40000001", OK);
        RecordedOperations older = new RecordedOperations();
        new Message(Opcode.SETXATTR.number(), "03000000 01000000 'user.n' 00 'abc'").dispatch(older, true, 0);
        assertEquals(List.of("setxattr " + NODE + " \"user.n\" \"abc\" 0x1"), older.calls);
        check(Opcode.GETXATTR, "05000000 00000000 'user.n' 00", "getxattr " + NODE + " \"user.n\"", "15000000 00000000" + UNIQUE + "6279746573");
        check(Opcode.GETXATTR, "04000000 00000000 'user.n' 00", "getxattr " + NODE + " \"user.n\"", error(Errno.ERANGE));
        check(Opcode.GETXATTR, "00000000 00000000 'user.n' 00", "getxattr " + NODE + " \"user.n\"", "18000000 00000000" + UNIQUE + "05000000 00000000");
        check(Opcode.LISTXATTR, "0f000000 00000000", "listxattr " + NODE, "1f000000 00000000" + UNIQUE + "757365722e6100 757365722e626300");
        check(Opcode.LISTXATTR, "0e000000 00000000", "listxattr " + NODE, error(Errno.ERANGE));
        check(Opcode.LISTXATTR, "00000000 00000000", "listxattr " + NODE, "18000000 00000000" + UNIQUE + "0f000000 00000000");
        check(Opcode.REMOVEXATTR, "'user.n' 00", "removexattr " + NODE + " \"user.n\"", OK);
    }

    /** struct fuse_lk_in. */
    @Test
    void fileLocks() {
        String read = "5857565554535251 6867666564636261 0102030405060700 1112131415161718 00000000 74737271 00000000 00000000";
        String write = "5857565554535251 6867666564636261 0000000000000000 ffffffffffffff7f 01000000 74737271 01000000 00000000";
        String none = "5857565554535251 6867666564636261 0a00000000000000 0a00000000000000 02000000 00000000 00000000 00000000";
        String readLock = "fcntl:6162636465666768 7060504030201-1817161514131211 r 71727374";
        String writeLock = "flock:6162636465666768 0-7fffffffffffffff w 71727374";
        String handle = " 0x5152535455565758 ";
        check(Opcode.SETLK, read, "lock " + NODE + handle + readLock + " false", OK);
        check(Opcode.SETLKW, read, "lock " + NODE + handle + readLock + " true", OK);
        check(Opcode.SETLK, write, "lock " + NODE + handle + writeLock + " false", OK);
        check(Opcode.SETLKW, write, "lock " + NODE + handle + writeLock + " true", OK);
        for (Opcode opcode : List.of(Opcode.SETLK, Opcode.SETLKW)) {
            check(opcode, none, "unlock " + NODE + handle + "fcntl:6162636465666768 0xa 0xa", OK);
        }
        check(Opcode.GETLK, read, "getlk " + NODE + handle + readLock,
                "28000000 00000000" + UNIQUE + "0203040506070809 1213141516171819 01000000 24232221");
        for (String bad : List.of(read.replace("00000000 74737271", "03000000 74737271"), read.replace("0102030405060700", "0102030405060788"),
                read.replace("0102030405060700 1112131415161718", "0200000000000000 0100000000000000"))) {
            check(Opcode.SETLKW, bad, null, error(Errno.EINVAL));
            check(Opcode.GETLK, bad, null, error(Errno.EINVAL));
        }
        check(Opcode.GETLK, none, null, error(Errno.EINVAL));
        check(Opcode.SETLK, none.replace("0a00000000000000 0a", "0b00000000000000 0a"), null, error(Errno.EINVAL));
    }

    @Test
    void nothingInTheWayOfALock() {
        RecordedOperations operations = new RecordedOperations();
        operations.nothing = true;
        String read = "5857565554535251 6867666564636261 0100000000000000 0200000000000000 00000000 74737271 00000000 00000000";
        assertEquals("2800000000000000" + UNIQUE + "00".repeat(16) + "02000000" + "00000000", new Message(Opcode.GETLK.number(), read).dispatch(operations));
    }

    @Test
    void whatIsNotOffered() {
        for (Opcode opcode : EnumSet.of(Opcode.ACCESS, Opcode.BMAP, Opcode.IOCTL, Opcode.POLL,
                Opcode.COPY_FILE_RANGE, Opcode.COPY_FILE_RANGE_64, Opcode.SETUPMAPPING, Opcode.REMOVEMAPPING, Opcode.SYNCFS)) {
            check(opcode, "00".repeat(48), null, error(Errno.ENOSYS));
        }
        check(Opcode.DESTROY, "", null, OK);
        check(Opcode.NOTIFY_REPLY, "00".repeat(40), null, "");
        assertEquals(error(Errno.ENOSYS).replace(" ", ""), new Message(4711, "").dispatch(new RecordedOperations()));
        assertEquals(error(Errno.ENOSYS).replace(" ", ""), new Message(7, "").dispatch(new RecordedOperations()));
    }

    @Test
    void aNameThatIsNotThereCanBeRemembered() {
        RecordedOperations operations = new RecordedOperations();
        operations.answer = new Operations.Entry(77, 88, null, 3_000_000_004L, 5);
        assertEquals("9000000000000000" + UNIQUE + "00".repeat(16) + "0300000000000000" + "00".repeat(8) + "04000000" + "00".repeat(92),
                new Message(Opcode.LOOKUP.number(), "'name' 00").dispatch(operations));
    }

    /** {@link RecordedOperations} says that no grant stands any more. */
    private static String tooOld(Opcode opcode, String body) {
        Message message = new Message(opcode.number(), body);
        RecordedOperations operations = new RecordedOperations();
        message.dispatch(operations);
        Call call = operations.callers.getFirst();
        String asMade = message.reply();
        new Dispatcher(operations.operations(), new Negotiation(45, InitFlags.DEFAULT, 0, 0, 0, 0, 0, 1, false)).replying(message.exchange, call);
        assertEquals(asMade, message.reply(), "it grants nothing");
        call.grants(0);
        new Dispatcher(operations.operations(), new Negotiation(45, InitFlags.DEFAULT, 0, 0, 0, 0, 0, 1, false)).replying(message.exchange, call);
        return message.reply();
    }

    @Test
    void aReplyThatIsTooOldSaysTheSameAndGrantsNothing() {
        String never = "0000000000000000";
        String entry = "8887868584838281 9897969594939291" + never.repeat(3) + ATTRIBUTES;
        String attr = never + "00000000 00000000" + ATTRIBUTES;
        String entryReply = ("90000000 00000000" + UNIQUE + entry).replace(" ", "");
        assertEquals(entryReply, tooOld(Opcode.LOOKUP, "'name' 00"));
        assertEquals(entryReply, tooOld(Opcode.SYMLINK, "'name' 00 'the/target' 00"));
        assertEquals(entryReply, tooOld(Opcode.MKNOD, "54535251 64636261 74737271 00000000 'name' 00"));
        assertEquals(entryReply, tooOld(Opcode.MKDIR, "54535251 64636261 'name' 00"));
        assertEquals(entryReply, tooOld(Opcode.LINK, "5857565554535251 'name' 00"));
        assertEquals(("a0000000 00000000" + UNIQUE + entry + OPENED).replace(" ", ""), tooOld(Opcode.CREATE, "54535251 64636261 74737271 00000000 'name' 00"));
        assertEquals(("78000000 00000000" + UNIQUE + attr).replace(" ", ""), tooOld(Opcode.GETATTR, "00000000 00000000 5857565554535251"));
        assertEquals(("78000000 00000000" + UNIQUE + attr).replace(" ", ""), tooOld(Opcode.SETATTR, "00000000 00000000" + never.repeat(11)));
        assertEquals("0".repeat(24), tooOld(Opcode.STATX, "01000000 00000000 5857565554535251 00000000 ff0f0000").substring(32, 56));
        assertEquals(("f8010000 00000000" + UNIQUE + "00".repeat(128) + UNIQUE + "0100000000000000 01000000 04000000 2e 00000000000000" + entry
                        + "1817161514131211 2827262524232221 08000000 08000000 6569676874383838" + "00".repeat(128) + "3837363534333231 0300000000000000 10000000 0a000000"
                        + "6e6f2061747472696275746573203136").replace(" ", ""),
                tooOld(Opcode.READDIRPLUS, "5857565554535251 6867666564636261 00020000 00000000 0000000000000000 00000000 00000000"));
    }

    @Test
    void aReplyIsFoundAgainWhereItWasMade() {
        Message message = new Message(Opcode.LOOKUP.number(), "'name' 00");
        message.dispatch(new RecordedOperations());
        Exchange again = new Exchange(message.memory);
        again.pointAtReplied(0, message.exchange.reply(), message.exchange.body(), 128);
        assertEquals(List.of(144, 0, Opcode.LOOKUP), List.of(again.replyBytes(), again.error(), again.opcode()));
        message.exchange.fail(Errno.ENOENT);
        again.pointAtReplied(0, message.exchange.reply(), message.exchange.body(), 0);
        assertEquals(List.of(16, 2), List.of(again.replyBytes(), again.error()));
    }

    @Test
    void refusalsFaultsAndErrors() {
        RecordedOperations operations = new RecordedOperations();
        for (Errno errno : Errno.values()) {
            operations.answer = new FsException(errno);
            assertEquals(error(errno).replace(" ", ""), new Message(Opcode.UNLINK.number(), "'name' 00").dispatch(operations));
        }
        operations.answer = new IllegalStateException("meant to happen");
        assertEquals(error(Errno.EIO).replace(" ", ""), new Message(Opcode.UNLINK.number(), "'name' 00").dispatch(operations));
        assertEquals("", new Message(Opcode.FORGET.number(), "5857565554535251").dispatch(operations));
        operations.answer = new AssertionError("meant to happen");
        assertSame(operations.answer, assertThrows(AssertionError.class, () -> new Message(Opcode.UNLINK.number(), "'name' 00").dispatch(operations)));
    }

    @Test
    void canBeDispatchedAgainAfterMustWait() {
        RecordedOperations operations = new RecordedOperations();
        operations.answer = MustWait.INSTANCE;
        Message message = new Message(Opcode.UNLINK.number(), "'name' 00");
        assertThrows(MustWait.class, () -> message.dispatch(operations, false));
        assertEquals(0, message.exchange.replyBytes());
        operations.answer = null;
        assertEquals(OK.replace(" ", ""), message.dispatch(operations, true));
        assertEquals(List.of(false, true), operations.callers.stream().map(Call::mayWait).toList());
        operations.answer = MustWait.INSTANCE;
        assertEquals(error(Errno.EIO).replace(" ", ""), message.dispatch(operations, true), "must not wait for ever");
    }

    @Test
    void readReplyStartsInPlaceOrIsSentApart() {
        String body = "5857565554535251 6867666564636261 00080000 02000000 7877767574737271 84838281 00000000";
        RecordedOperations operations = new RecordedOperations();
        Message apart = new Message(Opcode.READ.number(), body);
        apart.dispatch(operations);
        assertEquals(16, apart.exchange.replyBytes());
        assertEquals(4, apart.exchange.data().byteSize());
        Message inPlace = new Message(Opcode.READ.number(), body);
        operations.answer = inPlace.memory.asSlice(8192, 5);
        inPlace.dispatch(operations);
        assertEquals(21, inPlace.exchange.replyBytes());
        Message heap = new Message(Opcode.READ.number(), body);
        operations.answer = java.lang.foreign.MemorySegment.ofArray("heap".getBytes(StandardCharsets.UTF_8));
        assertEquals("1400000000000000" + UNIQUE + "68656170", heap.dispatch(operations));
        Message atEnd = new Message(Opcode.READ.number(), body);
        operations.answer = atEnd.memory.asSlice(9000, 0);
        assertEquals(OK.replace(" ", ""), atEnd.dispatch(operations));
    }

    @Test
    void roomThatARequestNeeds() {
        String read = "5857565554535251 6867666564636261 00000100 00000000 0000000000000000 00000000 00000000";
        assertEquals(0x10000 + 8192, Exchange.bodyCapacityNeeded(new Message(Opcode.READ.number(), read).memory, 0));
        assertEquals(0x10000, Exchange.bodyCapacityNeeded(new Message(Opcode.READDIRPLUS.number(), read).memory, 0));
        assertEquals(0x10000, Exchange.bodyCapacityNeeded(new Message(Opcode.LISTXATTR.number(), "00000100 00000000").memory, 0));
        assertEquals(4096, Exchange.bodyCapacityNeeded(new Message(4711, "").memory, 0));
    }

    @Test
    void traceShowsOneLineAMessage() {
        Message rename = new Message(Opcode.RENAME2.number(), "0900000000000000 01000000 00000000 'old' 00 'new' 00");
        assertEquals("rx 72623859790382856 RENAME2 n1230066625199609624 \"old\" to n9 \"new\" p1094861636 u555885348 g825373492",
                WireTrace.describeRequest(rename.exchange));
        rename.dispatch(new RecordedOperations());
        assertEquals("tx 72623859790382856 OK", WireTrace.describeReply(rename.exchange));
        rename.exchange.fail(Errno.ENOENT);
        assertEquals("tx 72623859790382856 ENOENT", WireTrace.describeReply(rename.exchange));
        Message read = new Message(Opcode.READ.number(), "0300000000000000 0010000000000000 00080000 00000000 0000000000000000 00000000 00000000");
        assertTrue(WireTrace.describeRequest(read.exchange).contains(" READ n1230066625199609624 h3 4096+2048 p"));
        read.dispatch(new RecordedOperations());
        assertEquals("tx 72623859790382856 OK 4", WireTrace.describeReply(read.exchange));
        Message lock = new Message(Opcode.SETLKW.number(), "0300000000000000 0f00000000000000 0000000000000000 0900000000000000 01000000 74737271 01000000 00000000");
        assertTrue(WireTrace.describeRequest(lock.exchange).contains(" SETLKW n1230066625199609624 h3 flock w 0-9 of p"));
        assertTrue(WireTrace.describeRequest(new Message(4711, "").exchange).contains("opcode 4711"));
    }
}
