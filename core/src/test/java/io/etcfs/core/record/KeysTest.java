package io.etcfs.core.record;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.store.Key;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class KeysTest {
    private final Keys keys = new Keys("fs-1");

    /** The schema in literal bytes: these must not change as long as the format version does not. */
    @Test
    void keysAreTheOnesOfTheFormat() {
        byte[] name = "a b".getBytes(StandardCharsets.UTF_8);
        assertKey("", keys.prefix());
        assertKey("super", keys.superblock());
        assertKey("dirent:0000000000000001/7fffffffffffffff/a b", keys.dirent(1, Long.MAX_VALUE, name));
        assertKey("dirent:0000000000000001/", keys.direntsOf(1));
        assertKey("dirent:0000000000000001/00000000000000ab/", keys.direntFrom(1, 0xab));
        assertKey("inode:0000000000000001/0000000000000002", keys.inode(1, 2));
        assertKey("inode:0000000000000001/", keys.inodesOf(1));
        assertKey("extents:0000000000000002/0000000000000003", keys.extents(2, 3));
        assertKey("extents:0000000000000002/", keys.extentsOf(2));
        assertKey("xattr:0000000000000002/a b", keys.xattr(2, name));
        assertKey("xattr:0000000000000002/", keys.xattrsOf(2));
        assertKey("inode_alloc_counter", keys.inodeAllocCounter());
        assertKey("arena_alloc_log", keys.arenaAllocLog());
        assertKey("arena:n1/0000000000000004", keys.arena("n1", 4));
        assertKey("arena:n1/", keys.arenasOf("n1"));
        assertKey("arena:", keys.arenas());
        assertKey("free_arena:0000000000000004", keys.freeArena(4));
        assertKey("free_arena:", keys.freeArenas());
        assertKey("blocks:0000000000000004/000000000000003f", keys.blocks(4, 63));
        assertKey("blocks:0000000000000004/", keys.blocksOf(4));
        assertKey("unfree:0000000000000004/n1/0000000000000005", keys.unfree(4, "n1", 5));
        assertKey("unfree:0000000000000004/", keys.unfreeOf(4));
        assertKey("unfree:", keys.unfrees());
        assertKey("remainder:0000000000000001/0000000000000002", keys.remainder(1, 2));
        assertKey("remainder:0000000000000001/", keys.remaindersOf(1));
        assertKey("membership:n1", keys.membership("n1"));
        assertKey("membership:", keys.memberships());
        assertKey("session:n1", keys.session("n1"));
        assertKey("session:", keys.sessions());
        assertKey("gen:n1", keys.generation("n1"));
        assertKey("gen:", keys.generations());
        assertKey("batch:n1", keys.batch("n1"));
        assertKey("departed:n1", keys.departed("n1"));
        assertKey("departed:", keys.departures());
        assertKey("fence_pending:n1", keys.fencePending("n1"));
        assertKey("fence_pending:", keys.fencesPending());
        assertKey("fence_claim:n1", keys.fenceClaim("n1"));
        assertKey("fence_done:n1", keys.fenceDone("n1"));
        assertKey("fence_done:", keys.fencesDone());
        assertKey("lock:0000000000000001/x/n1", keys.lockExclusive(1, "n1"));
        assertKey("lock:0000000000000001/s/n1", keys.lockShared(1, "n1"));
        assertKey("lock:0000000000000001/", keys.locksOf(1));
        assertKey("lock:0000000000000001/x/", keys.exclusiveLocksOf(1));
        assertKey("lock:0000000000000001/s/", keys.sharedLocksOf(1));
        assertKey("lock:", keys.locks());
        assertKey("want:0000000000000001/n1", keys.want(1, "n1"));
        assertKey("want:0000000000000001/", keys.wantsOf(1));
        assertKey("want:", keys.wants());
        assertKey("owner:0000000000000001", keys.owner(1));
        assertKey("owner:", keys.owners());
        assertKey("open:0000000000000001/0000000000000002/n1", keys.open(1, 2, "n1"));
        assertKey("open:0000000000000001/", keys.opensOf(1));
        assertKey("open:0000000000000001/0000000000000002/", keys.opensOf(1, 2));
        assertKey("opened:n1/0000000000000001/0000000000000002", keys.opened("n1", 1, 2));
        assertKey("opened:n1/", keys.openedBy("n1"));
        assertKey("orphan:0000000000000002", keys.orphan(2));
        assertKey("orphan:", keys.orphans());
        assertKey("flock:0000000000000002/n1", keys.fileLocks(2, "n1"));
        assertKey("flock:0000000000000002/", keys.fileLocksOf(2));
        assertKey("flock:", keys.fileLocks());
    }

    private static void assertKey(String expected, Key key) {
        assertEquals(Key.of("etcfs/fs-1/" + expected), key);
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void readsBackWhatItWrote(long seed) {
        Random random = new Random(seed);
        for (int step = 0; step < 2_000; step++) {
            long a = number(random);
            long b = number(random);
            String node = nodeName(random);
            byte[] name = entryName(random);
            int segment = random.nextInt() & Integer.MAX_VALUE;
            assertEquals(new Keys.DirentKey(a, b, name), keys.parseDirent(keys.dirent(a, b, name)));
            assertEquals(new Keys.InodeKey(a, b), keys.parseInode(keys.inode(a, b)));
            assertEquals(new Keys.InodeKey(a, b), keys.parseRemainder(keys.remainder(a, b)));
            assertEquals(new Keys.ExtentsKey(a, b), keys.parseExtents(keys.extents(a, b)));
            assertEquals(new Keys.XattrKey(a, name), keys.parseXattr(keys.xattr(a, name)));
            assertEquals(new Keys.ArenaKey(node, a), keys.parseArena(keys.arena(node, a)));
            assertEquals(a, keys.parseFreeArena(keys.freeArena(a)));
            assertEquals(new Keys.BlocksKey(a, segment), keys.parseBlocks(keys.blocks(a, segment)));
            assertEquals(new Keys.UnfreeKey(a, node, b), keys.parseUnfree(keys.unfree(a, node, b)));
            assertEquals(new Keys.LockKey(a, true, node), keys.parseLock(keys.lockExclusive(a, node)));
            assertEquals(new Keys.LockKey(a, false, node), keys.parseLock(keys.lockShared(a, node)));
            assertEquals(new Keys.WantKey(a, node), keys.parseWant(keys.want(a, node)));
            assertEquals(a, keys.parseOwner(keys.owner(a)));
            assertEquals(new Keys.OpenKey(a, b, node), keys.parseOpen(keys.open(a, b, node)));
            assertEquals(new Keys.OpenKey(a, b, node), keys.parseOpened(keys.opened(node, a, b)));
            assertEquals(a, keys.parseOrphan(keys.orphan(a)));
            assertEquals(new Keys.FileLocksKey(a, node), keys.parseFileLocks(keys.fileLocks(a, node)));
            for (Key key : List.of(keys.membership(node), keys.session(node), keys.generation(node), keys.batch(node), keys.departed(node),
                    keys.fencePending(node), keys.fenceClaim(node), keys.fenceDone(node))) {
                assertEquals(new Keys.NodeKey(node), keys.parseNode(key));
            }
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void keysSortAsTheirNumbersAndNames(long seed) {
        Random random = new Random(seed);
        for (int step = 0; step < 5_000; step++) {
            long dir = number(random);
            long otherDir = random.nextBoolean() ? dir : number(random);
            long hash = number(random);
            long otherHash = random.nextBoolean() ? hash : number(random);
            byte[] name = entryName(random);
            byte[] otherName = entryName(random);
            int expected = Long.compareUnsigned(dir, otherDir);
            if (expected == 0) {
                expected = Long.compareUnsigned(hash, otherHash);
            }
            if (expected == 0) {
                expected = Arrays.compareUnsigned(name, otherName);
            }
            Key key = keys.dirent(dir, hash, name);
            assertEquals(Integer.signum(expected), Integer.signum(key.compareTo(keys.dirent(otherDir, otherHash, otherName))));
            // Resuming at a hash passes over all smaller ones and none of its own.
            assertEquals(Long.compareUnsigned(hash, otherHash) >= 0, key.compareTo(keys.direntFrom(dir, otherHash)) > 0);
            assertTrue(key.compareTo(keys.direntsOf(dir)) > 0 && key.compareTo(keys.direntsOf(dir).prefixEnd()) < 0);
        }
    }

    /** A range by prefix has the keys of what was asked for and no other. */
    @Test
    void noPrefixReachesIntoAnother() {
        List<Key> prefixes = new ArrayList<>();
        for (Keys fs : List.of(keys, new Keys("fs-1.x"), new Keys("fs-"), new Keys("FS-1"))) {
            prefixes.addAll(List.of(fs.arenas(), fs.freeArenas(), fs.unfrees(), fs.memberships(), fs.sessions(), fs.generations(), fs.locks(),
                    fs.wants(), fs.owners(), fs.orphans(), fs.direntsOf(1), fs.direntsOf(0x10), fs.inodesOf(1), fs.extentsOf(1), fs.xattrsOf(1),
                    fs.blocksOf(1), fs.remaindersOf(1), fs.opensOf(1), fs.openedBy("n"), fs.openedBy("n1"), fs.openedBy("n-1")));
        }
        for (Key a : prefixes) {
            for (Key b : prefixes) {
                assertEquals(a == b, b.startsWith(a), a + " and " + b);
            }
        }
        assertFalse(keys.arena("n1", 1).startsWith(keys.arenasOf("n")));
        assertTrue(keys.lockShared(1, "n").startsWith(keys.sharedLocksOf(1)));
        assertFalse(keys.lockShared(1, "n").startsWith(keys.exclusiveLocksOf(1)));
    }

    @Test
    void namesTheKeyThatIsDamaged() {
        for (String key : List.of("", "/", "0000000000000001", "000000000000001/x/n", "0000000000000001/x", "0000000000000001/x/",
                "0000000000000001/y/n", "0000000000000001/xx/n", "000000000000000A/x/n", "0000000000000001/x/n/", "0000000000000001/x/-n",
                "0000000000000001/x/n\u00e9", "00000000000000001/x/n", "0000000000000001/x/" + "n".repeat(64))) {
            assertRefused("lock:" + key, keys::parseLock);
        }
        for (String key : List.of("0000000000000001/0000000000000001/", "0000000000000001/0000000000000001", "0000000000000001/0000000000000001/a/b",
                "0000000000000001/0000000000000001/a\0b")) {
            assertRefused("dirent:" + key, keys::parseDirent);
        }
        assertRefused("inode:0000000000000001/0000000000000001/", keys::parseInode);
        assertRefused("inode:0000000000000001/000000000000000", keys::parseInode);
        assertRefused("blocks:0000000000000001/0000000080000000", keys::parseBlocks);
        assertRefused("blocks:0000000000000001/8000000000000000", keys::parseBlocks);
        assertRefused("xattr:0000000000000001/", keys::parseXattr);
        assertRefused("owner:n1", keys::parseOwner);
        assertRefused("session:", keys::parseNode);
        assertRefused("session:a/b", keys::parseNode);
        assertRefused("super", keys::parseNode);
        assertRefused("opened:n/0000000000000001/0000000000000001", keys::parseOpen);
        assertThrows(IllegalArgumentException.class, () -> keys.parseInode(new Keys("fs-2").inode(1, 2)));
    }

    private static void assertRefused(String key, Function<Key, ?> parser) {
        String whole = "etcfs/fs-1/" + key;
        String message = assertThrows(IllegalArgumentException.class, () -> parser.apply(Key.of(whole)), whole).getMessage();
        assertTrue(message.contains(whole), message);
    }

    @Test
    void refusesNamesThatCouldBeMistaken() {
        for (String name : List.of("", ".", "-a", "_a", "a/b", "a b", "a:b", "\u00e4", "a\n", "a\0", "a".repeat(64))) {
            assertThrows(IllegalArgumentException.class, () -> Keys.requireNodeName(name), name);
            assertThrows(IllegalArgumentException.class, () -> Keys.requireFilesystemName(name), name);
            assertThrows(IllegalArgumentException.class, () -> new Keys(name), name);
            assertThrows(IllegalArgumentException.class, () -> keys.session(name), name);
        }
        for (String name : List.of("a", "0", "Z", "ip-10-0-0-1.eu-west-1.compute.internal", "a_b", "a".repeat(63))) {
            assertEquals(name, Keys.requireNodeName(name));
            assertEquals(name, Keys.requireFilesystemName(name));
        }
        assertThrows(IllegalArgumentException.class, () -> keys.dirent(1, 1, new byte[0]));
        assertThrows(IllegalArgumentException.class, () -> keys.dirent(1, 1, new byte[] {'a', '/'}));
        assertThrows(IllegalArgumentException.class, () -> keys.dirent(1, 1, new byte[] {0}));
        assertThrows(IllegalArgumentException.class, () -> keys.xattr(1, new byte[0]));
        assertThrows(IllegalArgumentException.class, () -> keys.blocks(1, -1));
    }

    private static long number(Random random) {
        return switch (random.nextInt(4)) {
            case 0 -> random.nextInt(20);
            case 1 -> -1 - random.nextInt(20);
            case 2 -> 1L << random.nextInt(64);
            default -> random.nextLong();
        };
    }

    private static byte[] entryName(Random random) {
        byte[] name = new byte[1 + random.nextInt(random.nextBoolean() ? 3 : 255)];
        for (int i = 0; i < name.length; i++) {
            do {
                name[i] = (byte) (random.nextInt(4) == 0 ? 0xff : random.nextInt(256));
            } while (name[i] == 0 || name[i] == '/');
        }
        return name;
    }

    private static String nodeName(Random random) {
        String first = "abzAZ019";
        String more = first + ".-_";
        StringBuilder name = new StringBuilder().append(first.charAt(random.nextInt(first.length())));
        for (int i = random.nextInt(63); i > 0; i--) {
            name.append(more.charAt(random.nextInt(more.length())));
        }
        return name.toString();
    }
}
