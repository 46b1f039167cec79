package io.etcfs.testkit.sim;

import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.etcfs.core.fs.Errno;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** What may be missing and what may not after daemons ended: each case that is explained has one beside it that must not be. */
class ExplanationTest {
    private final List<Op> ops = new ArrayList<>();
    private long calls;

    /** Called and returned, before what is added next is called. */
    private Op done(Op op) {
        op.called = ++calls;
        op.returned = ++calls;
        ops.add(op);
        return op;
    }

    private Op unanswered(Op op) {
        op.gone = true;
        return done(op);
    }

    private Op refused(Op op, Errno error) {
        op.error = error;
        return op;
    }

    private static Op make(Op.Kind kind, String process, String name, long ino) {
        Op op = new Op(kind, process, 1, name, 0, null, 0, 0, null);
        op.resultIno = ino;
        return op;
    }

    private static Op truncate(String process, long size) {
        return new Op(Op.Kind.TRUNCATE, process, 2, null, 0, null, 0, size, null);
    }

    private static Op write(String process, long offset, int length) {
        return new Op(Op.Kind.WRITE, process, 2, null, 0, null, offset, 0, filled(length, 9));
    }

    private static byte[] filled(int length, int value) {
        byte[] bytes = new byte[length];
        Arrays.fill(bytes, (byte) value);
        return bytes;
    }

    private static byte[] zeroed(byte[] bytes, int from, int to) {
        byte[] zeroed = bytes.clone();
        Arrays.fill(zeroed, from, to, (byte) 0);
        return zeroed;
    }

    private static Reference.Builder root(int nlink) {
        Reference.Builder b = new Reference.Builder();
        b.add(1, true, nlink, new byte[0]);
        return b;
    }

    private static Reference withFile(String name, long ino, byte[] bytes) {
        Reference.Builder b = root(2);
        b.add(ino, false, 1, bytes);
        b.name(1, name, ino);
        return b.build();
    }

    private static Reference withDirectory(String name, long ino) {
        Reference.Builder b = root(3);
        b.add(ino, true, 2, new byte[0]);
        b.name(1, name, ino);
        return b.build();
    }

    private String missing(Reference before, Set<String> ended, Reference stored) {
        return new Explanation(before, ops, ended, List.of(stored)).missing();
    }

    /** Under which of the names that were asked for an inode was made shows only later, where it was renamed. */
    @Test
    void aNumberIsOfAnyOfTheCreationsThatWereNotAnswered() {
        unanswered(make(Op.Kind.CREATE, "n1.1", "d", 0));
        unanswered(make(Op.Kind.CREATE, "n2.1", "b", 0));
        done(new Op(Op.Kind.RENAME, "n2.2", 1, "d", 1, "b", 0, 0, null));
        assertNull(missing(Reference.empty(), Set.of("n1.1", "n2.1"), withFile("b", 1027, new byte[0])));
    }

    @Test
    void aFileIsNotOfTheUnansweredCreationOfADirectory() {
        unanswered(make(Op.Kind.MKDIR, "n2.1", "b", 0));
        assertNotNull(missing(Reference.empty(), Set.of("n2.1"), withFile("b", 4, new byte[0])));
        unanswered(make(Op.Kind.CREATE, "n1.1", "b", 0));
        assertNull(missing(Reference.empty(), Set.of("n1.1", "n2.1"), withFile("b", 4, new byte[0])));
    }

    @Test
    void whatWasMadeIsNotReplacedByWhatMayHaveBeenMade() {
        done(make(Op.Kind.CREATE, "n1.1", "a", 2));
        unanswered(make(Op.Kind.CREATE, "n2.1", "b", 0));
        assertNotNull(missing(Reference.empty(), Set.of("n2.1"), withFile("b", 2, new byte[0])));
        assertNotNull(missing(Reference.empty(), Set.of("n2.1"), withFile("b", 1026, new byte[0])));
        assertNull(missing(Reference.empty(), Set.of("n2.1"), withFile("a", 2, new byte[0])));
    }

    /** The rest of the block where the file ended was made zero in place, by the write behind it, and then neither the truncation nor the write was published. */
    @Test
    void aLostTruncationLeavesZerosToTheEndOfItsBlock() {
        byte[] bytes = filled(9000, 7);
        done(truncate("n1.1", 1513));
        done(write("n1.1", 5486, 2706));
        Reference before = withFile("a", 2, bytes);
        assertNull(missing(before, Set.of("n1.1"), before));
        assertNull(missing(before, Set.of("n1.1"), withFile("a", 2, zeroed(bytes, 1513, 4096))));
        assertNotNull(missing(before, Set.of("n1.1"), withFile("a", 2, zeroed(bytes, 1512, 4096))), "before the end");
        assertNotNull(missing(before, Set.of("n1.1"), withFile("a", 2, zeroed(bytes, 1513, 4097))), "in the next block");
        assertNotNull(missing(before, Set.of(), withFile("a", 2, zeroed(bytes, 1513, 4096))), "nobody ended");
    }

    @Test
    void aLostTruncationWithNothingWrittenBehindItLeavesNothing() {
        byte[] bytes = filled(9000, 7);
        Reference before = withFile("a", 2, bytes);
        done(truncate("n1.1", 6000));
        assertNotNull(missing(before, Set.of("n1.1"), withFile("a", 2, zeroed(bytes, 6000, 8192))));
        done(write("n1.1", 0, 4096));
        assertNotNull(missing(before, Set.of("n1.1"), withFile("a", 2, zeroed(bytes, 6000, 8192))), "written in another block");
        done(write("n1.1", 4096, 1));
        assertNull(missing(before, Set.of("n1.1"), withFile("a", 2, zeroed(bytes, 6000, 8192))));
    }

    @Test
    void nothingThatFsyncWasCalledAfterIsLost() {
        byte[] bytes = filled(3000, 7);
        Reference before = withFile("a", 2, bytes);
        done(truncate("n1.1", 1513));
        done(write("n1.1", 5486, 10));
        done(new Op(Op.Kind.FSYNC, "n1.1", 2, null, 0, null, 0, 0, null));
        assertNotNull(missing(before, Set.of("n1.1"), before));
        assertNotNull(missing(before, Set.of("n1.1"), withFile("a", 2, zeroed(bytes, 1513, 3000))));
    }

    /** Two programs of one daemon: what one asked before the other made what is lost it may have been told after. */
    @Test
    void whoWaitedForWhatIsLostHasSeenIt() {
        Op waiting = refused(make(Op.Kind.CREATE, "n2.2", "d", 0), Errno.EEXIST);
        waiting.called = ++calls;
        ops.add(waiting);
        done(make(Op.Kind.MKDIR, "n2.2", "d", 2050));
        waiting.returned = ++calls;
        done(make(Op.Kind.MKDIR, "n1.5", "d", 3074));
        assertNull(missing(Reference.empty(), Set.of("n2.2"), withDirectory("d", 3074)));
    }

    @Test
    void whatWasToldBeforeAnythingIsLostHolds() {
        done(refused(make(Op.Kind.CREATE, "n2.2", "d", 0), Errno.EEXIST));
        done(make(Op.Kind.MKDIR, "n2.2", "d", 2050));
        done(make(Op.Kind.MKDIR, "n1.5", "d", 3074));
        assertNotNull(missing(Reference.empty(), Set.of("n2.2"), withDirectory("d", 3074)));
    }

    /** Which of two that overlap was made first shows only in what is left. */
    @Test
    void ofTwoChangesThatOverlapEitherMayBeLost() {
        Op remove = new Op(Op.Kind.UNLINK, "n1.2", 1, "d", 0, null, 0, 0, null);
        remove.called = ++calls;
        ops.add(remove);
        done(make(Op.Kind.CREATE, "n1.2", "d", 2));
        remove.returned = ++calls;
        assertNull(missing(Reference.empty(), Set.of("n1.2"), withFile("d", 2, new byte[0])));
        assertNull(missing(Reference.empty(), Set.of("n1.2"), Reference.empty()));
        assertNotNull(missing(Reference.empty(), Set.of(), withFile("d", 2, new byte[0])));
    }

    @Test
    void nothingIsLostWithoutWhatCameAfterIt() {
        done(make(Op.Kind.CREATE, "n1.2", "d", 2));
        done(make(Op.Kind.CREATE, "n1.2", "e", 3));
        assertNotNull(missing(Reference.empty(), Set.of("n1.2"), withFile("e", 3, new byte[0])));
        assertNull(missing(Reference.empty(), Set.of("n1.2"), withFile("d", 2, new byte[0])));
    }

    /** The kernel has the bytes of a write in its pages before the write is made: who reads them there has seen what others overwrite before. */
    @Test
    void aReaderMaySeeAWriteOfItsMachineBeforeItIsMade() {
        Reference before = withFile("a", 2, filled(100, 7));
        Op mine = write("n1.1", 0, 100);
        mine.called = ++calls;
        ops.add(mine);
        Op read = new Op(Op.Kind.READ, "n1.1", 2, null, 0, null, 0, 100, null);
        read.data = filled(100, 9);
        done(read);
        done(new Op(Op.Kind.WRITE, "n2.1", 2, null, 0, null, 0, 0, filled(50, 5)));
        mine.returned = ++calls;
        assertNotNull(missing(before, Set.of(), withFile("a", 2, filled(100, 9))), "not from such a page");
        read.ofUnanswered = true;
        assertNull(missing(before, Set.of(), withFile("a", 2, filled(100, 9))));
        read.data = filled(100, 5);
        assertNotNull(missing(before, Set.of(), withFile("a", 2, filled(100, 9))), "another machine's");
    }

    /** Pages that came under a session are as old as its end: another node has had the file since, and the daemon has not heard of it. */
    @Test
    void aReadOfPagesMayBeAsOldAsTheEndOfTheirSession() {
        Reference before = withFile("a", 2, filled(100, 7));
        Reference after = withFile("a", 2, filled(100, 9));
        done(new Op(Op.Kind.FSYNC, "n1.1", 2, null, 0, null, 0, 0, null));
        long ended = calls + 1;
        done(write("n2.1", 0, 100));
        long since = calls + 1;
        Op read = new Op(Op.Kind.READ, "n1.1", 2, null, 0, null, 0, 100, null);
        read.data = filled(100, 7);
        done(read);
        assertNotNull(missing(before, Set.of(), after), "under the session");
        read.shownFrom = ended;
        assertNull(missing(before, Set.of(), after));
        read.shownFrom = since;
        assertNotNull(missing(before, Set.of(), after), "the session ended later");
        read.shownFrom = ended;
        read.data = zeroed(filled(100, 7), 50, 100);
        assertNotNull(missing(before, Set.of(), after), "what was there at no time");
        read.data = filled(100, 7);
        Op next = new Op(Op.Kind.READ, "n1.1", 2, null, 0, null, 0, 100, null);
        next.data = filled(100, 7);
        done(next);
        assertNotNull(missing(before, Set.of(), after), "the next one is of a page under a session");
    }

    private Op link(String process, String name) {
        return new Op(Op.Kind.LINK, process, 2, null, 1, name, 0, 0, null);
    }

    @Test
    void aFileThatWasMadeWithoutANameGetsOneAndNoSecondOnceThatIsGone() {
        done(make(Op.Kind.TMPFILE, "n1.1", null, 2));
        assertNull(missing(Reference.empty(), Set.of(), Reference.empty()));
        done(link("n1.1", "a"));
        assertNull(missing(Reference.empty(), Set.of(), withFile("a", 2, new byte[0])));
        assertNotNull(missing(Reference.empty(), Set.of(), Reference.empty()), "freed as an orphan");
        done(new Op(Op.Kind.UNLINK, "n2.1", 1, "a", 0, null, 0, 0, null));
        done(refused(link("n1.1", "b"), Errno.ENOENT));
        assertNull(missing(Reference.empty(), Set.of(), Reference.empty()));
        done(link("n1.1", "c"));
        assertNotNull(missing(Reference.empty(), Set.of(), withFile("c", 2, new byte[0])));
    }

    private Op access(String process, SimAcl acl) {
        Op op = new Op(Op.Kind.ACCESS, process, 2, null, 0, null, 0, 0, null);
        op.acl = acl;
        return op;
    }

    @Test
    void anAclIsWhatWasSetLastOrInherited() {
        SimAcl given = new SimAcl(7, 6, 5, 6, 4);
        Op set = new Op(Op.Kind.SET_DEFAULT_ACL, "n1.1", 1, null, 0, null, 0, 0, null);
        set.acl = given;
        done(set);
        done(make(Op.Kind.CREATE, "n2.1", "a", 2));
        Op shown = done(access("n1.1", null));
        Reference.Builder b = new Reference.Builder();
        b.add(1, true, 2, 0755, null, given, new byte[0]);
        b.add(2, false, 1, 0664, new SimAcl(6, 6, 5, 6, 4), null, new byte[0]);
        b.name(1, "a", 2);
        Reference stored = b.build();
        assertNotNull(missing(Reference.empty(), Set.of(), stored), "not inherited");
        shown.acl = new SimAcl(6, 6, 5, 6, 4);
        assertNull(missing(Reference.empty(), Set.of(), stored));
        Op chmod = new Op(Op.Kind.CHMOD, "n2.1", 2, null, 0, null, 0, 0, null);
        chmod.mode = 0640;
        done(chmod);
        Op after = done(access("n1.1", new SimAcl(6, 6, 5, 6, 4)));
        Reference.Builder c = new Reference.Builder();
        c.add(1, true, 2, 0755, null, given, new byte[0]);
        c.add(2, false, 1, 0640, new SimAcl(6, 6, 5, 4, 0), null, new byte[0]);
        c.name(1, "a", 2);
        assertNotNull(missing(Reference.empty(), Set.of(), c.build()), "the mask of before the chmod");
        after.acl = new SimAcl(6, 6, 5, 4, 0);
        assertNull(missing(Reference.empty(), Set.of(), c.build()));
    }

    /** A read of two blocks on n1, the first from before two writes of that machine and the second from after them. */
    private Op readAcrossTwoWrites(String writer) {
        Op read = new Op(Op.Kind.READ, "n1.1", 2, null, 0, null, 4000, 200, null);
        read.data = filled(200, 7);
        Arrays.fill(read.data, 96, 200, (byte) 9);
        read.called = ++calls;
        ops.add(read);
        done(write(writer, 0, 4096));
        done(write(writer, 4096, 4096));
        read.returned = ++calls;
        return read;
    }

    @Test
    void aReadIsOneOfBlocksWhereItsMachineWritesMeanwhile() {
        Reference before = withFile("a", 2, filled(8192, 7));
        Op read = readAcrossTwoWrites("n1.1");
        Reference after = withFile("a", 2, filled(8192, 9));
        assertNull(missing(before, Set.of(), after));
        Arrays.fill(read.data, 50, 96, (byte) 9);
        assertNotNull(missing(before, Set.of(), after), "half of a block");
    }

    @Test
    void aReadBesideAnotherMachinesWritesIsOne() {
        Reference before = withFile("a", 2, filled(8192, 7));
        readAcrossTwoWrites("n2.1");
        assertNotNull(missing(before, Set.of(), withFile("a", 2, filled(8192, 9))));
    }
}
