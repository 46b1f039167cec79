package io.etcfs.core.record;

import io.etcfs.core.store.Key;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * The key schema of one filesystem: every key EtcFS uses in etcd is made here, and read back here.
 *
 * <p>All keys are below {@link #prefix()}, {@code etcfs/<filesystem>/}. Numbers are 16 lower-case hexadecimal digits of the unsigned
 * value, so that the order of the bytes is the order of the numbers. Names of entries and extended attributes are raw bytes and always come
 * last. Names of nodes never contain a {@code /}. A method whose name ends in {@code Of}, {@code By} or a plural returns a
 * prefix that ends in a separator: the range {@code [p, p.prefixEnd())} has exactly the keys of what was asked for.
 *
 * <p>The parsers take only keys of this filesystem and of their own kind, and throw {@link IllegalArgumentException} with the key in the
 * message for anything that the methods of this class could not have made.
 */
public final class Keys {
    private static final int MAX_NAME = 63;
    private static final int DIGITS = 16;
    private static final byte[] HEX = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);

    private final Key prefix;
    private final Key superblock;
    private final Key inodeAllocCounter;
    private final Key arenaAllocLog;
    private final byte[] dirent;
    private final byte[] inode;
    private final byte[] extents;
    private final byte[] xattr;
    private final byte[] arena;
    private final byte[] freeArena;
    private final byte[] arenaWant;
    private final byte[] blocks;
    private final byte[] unfree;
    private final byte[] remainder;
    private final byte[] membership;
    private final byte[] session;
    private final byte[] generation;
    private final byte[] batch;
    private final byte[] departed;
    private final byte[] fencePending;
    private final byte[] fenceClaim;
    private final byte[] fenceDone;
    private final byte[] registered;
    private final byte[] lock;
    private final byte[] want;
    private final byte[] owner;
    private final byte[] open;
    private final byte[] opened;
    private final byte[] orphan;
    private final byte[] fileLocks;

    public Keys(String filesystemName) {
        prefix = Key.of("etcfs/" + requireFilesystemName(filesystemName) + "/");
        superblock = prefix.plus("super");
        inodeAllocCounter = prefix.plus("inode_alloc_counter");
        arenaAllocLog = prefix.plus("arena_alloc_log");
        dirent = kind("dirent:");
        inode = kind("inode:");
        extents = kind("extents:");
        xattr = kind("xattr:");
        arena = kind("arena:");
        freeArena = kind("free_arena:");
        arenaWant = kind("arena_want:");
        blocks = kind("blocks:");
        unfree = kind("unfree:");
        remainder = kind("remainder:");
        membership = kind("membership:");
        session = kind("session:");
        generation = kind("gen:");
        batch = kind("batch:");
        departed = kind("departed:");
        fencePending = kind("fence_pending:");
        fenceClaim = kind("fence_claim:");
        fenceDone = kind("fence_done:");
        registered = kind("registered:");
        lock = kind("lock:");
        want = kind("want:");
        owner = kind("owner:");
        open = kind("open:");
        opened = kind("opened:");
        orphan = kind("orphan:");
        fileLocks = kind("flock:");
    }

    private byte[] kind(String kind) {
        return prefix.plus(kind).bytes();
    }

    /** Returns a name that can be a node's: a letter or digit, then up to 62 letters, digits, dots, underscores and hyphens, all ASCII. */
    public static String requireNodeName(String name) {
        return requireName("node", name);
    }

    /** Returns a name that can be a filesystem's; the rule is the one for nodes. */
    public static String requireFilesystemName(String name) {
        return requireName("filesystem", name);
    }

    private static String requireName(String what, String name) {
        if (!isName(name)) {
            throw new IllegalArgumentException("not a " + what + " name ([a-zA-Z0-9][a-zA-Z0-9._-]{0,62}): " + name);
        }
        return name;
    }

    private static boolean isName(String name) {
        if (name.isEmpty() || name.length() > MAX_NAME) {
            return false;
        }
        for (int i = 0; i < name.length(); i++) {
            char c = name.charAt(i);
            boolean alphanumeric = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9';
            if (!alphanumeric && (i == 0 || c != '.' && c != '_' && c != '-')) {
                return false;
            }
        }
        return true;
    }

    public Key prefix() {
        return prefix;
    }

    public Key superblock() {
        return superblock;
    }

    // Namespace

    /** @param name an entry's name: not empty, no {@code /} and no zero byte */
    public Key dirent(long dir, long hash, byte[] name) {
        if (!isEntryName(name)) {
            throw new IllegalArgumentException("not the name of an entry: " + new String(name, StandardCharsets.UTF_8));
        }
        return write(dirent, 2 * DIGITS + 2 + name.length).number(dir).slash().number(hash).slash().bytes(name).key();
    }

    public Key dirents() {
        return Key.of(dirent);
    }

    public Key direntsOf(long dir) {
        return write(dirent, DIGITS + 1).number(dir).slash().key();
    }

    /** Below every entry of the directory whose name has this hash, above all with a smaller one. */
    public Key direntFrom(long dir, long hash) {
        return write(dirent, 2 * DIGITS + 2).number(dir).slash().number(hash).slash().key();
    }

    public Key inode(long home, long ino) {
        return numbers(inode, home, ino);
    }

    public Key inodesOf(long home) {
        return below(inode, home);
    }

    public Key extents(long ino, long range) {
        return numbers(extents, ino, range);
    }

    public Key extentsOf(long ino) {
        return below(extents, ino);
    }

    /** @param name an attribute's full name with its namespace: not empty */
    public Key xattr(long ino, byte[] name) {
        if (name.length == 0) {
            throw new IllegalArgumentException("an extended attribute without a name");
        }
        return write(xattr, DIGITS + 1 + name.length).number(ino).slash().bytes(name).key();
    }

    public Key xattrsOf(long ino) {
        return below(xattr, ino);
    }

    public Key inodeAllocCounter() {
        return inodeAllocCounter;
    }

    public Key remainder(long home, long ino) {
        return numbers(remainder, home, ino);
    }

    public Key remaindersOf(long home) {
        return below(remainder, home);
    }

    // Space

    public Key arenaAllocLog() {
        return arenaAllocLog;
    }

    public Key arena(String node, long id) {
        return write(arena, MAX_NAME + 1 + DIGITS).node(node).slash().number(id).key();
    }

    public Key arenasOf(String node) {
        return write(arena, MAX_NAME + 1).node(node).slash().key();
    }

    public Key arenas() {
        return Key.of(arena);
    }

    public Key freeArena(long id) {
        return number(freeArena, id);
    }

    public Key freeArenas() {
        return Key.of(freeArena);
    }

    /** What a node that finds no room asks of another. */
    public Key arenaWant(String node) {
        return node(arenaWant, node);
    }

    public Key arenaWants() {
        return Key.of(arenaWant);
    }

    public Key blocks(long arena, int segment) {
        if (segment < 0) {
            throw new IllegalArgumentException("segment " + segment);
        }
        return numbers(blocks, arena, segment);
    }

    public Key blocksOf(long arena) {
        return below(blocks, arena);
    }

    public Key unfree(long arena, String node, long seq) {
        return write(unfree, 2 * DIGITS + 2 + MAX_NAME).number(arena).slash().node(node).slash().number(seq).key();
    }

    public Key unfreeOf(long arena) {
        return below(unfree, arena);
    }

    public Key unfrees() {
        return Key.of(unfree);
    }

    // Nodes

    public Key membership(String node) {
        return node(membership, node);
    }

    public Key memberships() {
        return Key.of(membership);
    }

    public Key session(String node) {
        return node(session, node);
    }

    public Key sessions() {
        return Key.of(session);
    }

    public Key generation(String node) {
        return node(generation, node);
    }

    public Key generations() {
        return Key.of(generation);
    }

    public Key batch(String node) {
        return node(batch, node);
    }

    public Key departed(String node) {
        return node(departed, node);
    }

    public Key departures() {
        return Key.of(departed);
    }

    /** The intent to fence a node; its create revision is the intent's identity. */
    public Key fencePending(String node) {
        return node(fencePending, node);
    }

    public Key fencesPending() {
        return Key.of(fencePending);
    }

    /** Which controller carries the intent out; leased. */
    public Key fenceClaim(String node) {
        return node(fenceClaim, node);
    }

    public Key fenceDone(String node) {
        return node(fenceDone, node);
    }

    public Key fencesDone() {
        return Key.of(fenceDone);
    }

    /** Under which sessions of the node the device may still accept writes. */
    public Key registered(String node) {
        return node(registered, node);
    }

    // Tokens

    public Key lockExclusive(long res, String node) {
        return write(lock, DIGITS + 3 + MAX_NAME).number(res).slash().letter('x').slash().node(node).key();
    }

    public Key lockShared(long res, String node) {
        return write(lock, DIGITS + 3 + MAX_NAME).number(res).slash().letter('s').slash().node(node).key();
    }

    public Key locksOf(long res) {
        return below(lock, res);
    }

    public Key exclusiveLocksOf(long res) {
        return write(lock, DIGITS + 3).number(res).slash().letter('x').slash().key();
    }

    public Key sharedLocksOf(long res) {
        return write(lock, DIGITS + 3).number(res).slash().letter('s').slash().key();
    }

    public Key locks() {
        return Key.of(lock);
    }

    public Key want(long res, String node) {
        return write(want, DIGITS + 1 + MAX_NAME).number(res).slash().node(node).key();
    }

    public Key wantsOf(long res) {
        return below(want, res);
    }

    public Key wants() {
        return Key.of(want);
    }

    public Key owner(long res) {
        return number(owner, res);
    }

    public Key owners() {
        return Key.of(owner);
    }

    // Open files

    public Key open(long home, long ino, String node) {
        return write(open, 2 * DIGITS + 2 + MAX_NAME).number(home).slash().number(ino).slash().node(node).key();
    }

    public Key opensOf(long home) {
        return below(open, home);
    }

    public Key opensOf(long home, long ino) {
        return write(open, 2 * DIGITS + 2).number(home).slash().number(ino).slash().key();
    }

    public Key opened(String node, long home, long ino) {
        return write(opened, 2 * DIGITS + 2 + MAX_NAME).node(node).slash().number(home).slash().number(ino).key();
    }

    public Key openedBy(String node) {
        return write(opened, MAX_NAME + 1).node(node).slash().key();
    }

    public Key orphan(long ino) {
        return number(orphan, ino);
    }

    public Key orphans() {
        return Key.of(orphan);
    }

    // File locks of processes

    public Key fileLocks(long ino, String node) {
        return write(fileLocks, DIGITS + 1 + MAX_NAME).number(ino).slash().node(node).key();
    }

    public Key fileLocksOf(long ino) {
        return below(fileLocks, ino);
    }

    public Key fileLocks() {
        return Key.of(fileLocks);
    }

    // Reading keys back

    /** An entry's key. The array is the record's own. */
    public record DirentKey(long dir, long hash, byte[] name) {
        @Override
        public boolean equals(Object other) {
            return other instanceof DirentKey k && dir == k.dir && hash == k.hash && Arrays.equals(name, k.name);
        }

        @Override
        public int hashCode() {
            return 31 * (31 * Long.hashCode(dir) + Long.hashCode(hash)) + Arrays.hashCode(name);
        }

        @Override
        public String toString() {
            return "DirentKey[dir=" + dir + ", hash=" + hash + ", name=" + new String(name, StandardCharsets.UTF_8) + "]";
        }
    }

    /** The key of an inode, or of its remainder. */
    public record InodeKey(long home, long ino) {}

    public record ExtentsKey(long ino, long range) {}

    /** The key of a large extended attribute. The array is the record's own. */
    public record XattrKey(long ino, byte[] name) {
        @Override
        public boolean equals(Object other) {
            return other instanceof XattrKey k && ino == k.ino && Arrays.equals(name, k.name);
        }

        @Override
        public int hashCode() {
            return 31 * Long.hashCode(ino) + Arrays.hashCode(name);
        }

        @Override
        public String toString() {
            return "XattrKey[ino=" + ino + ", name=" + new String(name, StandardCharsets.UTF_8) + "]";
        }
    }

    public record ArenaKey(String node, long id) {}

    public record BlocksKey(long arena, int segment) {}

    public record UnfreeKey(long arena, String node, long seq) {}

    public record LockKey(long res, boolean exclusive, String node) {}

    public record WantKey(long res, String node) {}

    /** An open file of a node: the key by inode and the one by node say the same. */
    public record OpenKey(long home, long ino, String node) {}

    public record FileLocksKey(long ino, String node) {}

    public record NodeKey(String node) {}

    public DirentKey parseDirent(Key key) {
        Reader r = new Reader(key, dirent);
        long dir = r.number();
        r.slash();
        long hash = r.number();
        r.slash();
        byte[] name = r.rest();
        if (!isEntryName(name)) {
            throw r.damaged();
        }
        return new DirentKey(dir, hash, name);
    }

    public InodeKey parseInode(Key key) {
        return inodeKey(new Reader(key, inode));
    }

    public InodeKey parseRemainder(Key key) {
        return inodeKey(new Reader(key, remainder));
    }

    private static InodeKey inodeKey(Reader r) {
        long home = r.number();
        r.slash();
        long ino = r.number();
        r.end();
        return new InodeKey(home, ino);
    }

    public ExtentsKey parseExtents(Key key) {
        Reader r = new Reader(key, extents);
        long ino = r.number();
        r.slash();
        long range = r.number();
        r.end();
        return new ExtentsKey(ino, range);
    }

    public XattrKey parseXattr(Key key) {
        Reader r = new Reader(key, xattr);
        long ino = r.number();
        r.slash();
        byte[] name = r.rest();
        if (name.length == 0) {
            throw r.damaged();
        }
        return new XattrKey(ino, name);
    }

    public ArenaKey parseArena(Key key) {
        Reader r = new Reader(key, arena);
        String node = r.node();
        r.slash();
        long id = r.number();
        r.end();
        return new ArenaKey(node, id);
    }

    /** The arena's number. */
    public long parseFreeArena(Key key) {
        return onlyNumber(new Reader(key, freeArena));
    }

    public BlocksKey parseBlocks(Key key) {
        Reader r = new Reader(key, blocks);
        long arena = r.number();
        r.slash();
        long segment = r.number();
        r.end();
        if (segment < 0 || segment > Integer.MAX_VALUE) {
            throw r.damaged();
        }
        return new BlocksKey(arena, (int) segment);
    }

    public UnfreeKey parseUnfree(Key key) {
        Reader r = new Reader(key, unfree);
        long arena = r.number();
        r.slash();
        String node = r.node();
        r.slash();
        long seq = r.number();
        r.end();
        return new UnfreeKey(arena, node, seq);
    }

    public LockKey parseLock(Key key) {
        Reader r = new Reader(key, lock);
        long res = r.number();
        r.slash();
        int mode = r.next();
        if (mode != 'x' && mode != 's') {
            throw r.damaged();
        }
        r.slash();
        String node = r.node();
        r.end();
        return new LockKey(res, mode == 'x', node);
    }

    public WantKey parseWant(Key key) {
        Reader r = new Reader(key, want);
        long res = r.number();
        r.slash();
        String node = r.node();
        r.end();
        return new WantKey(res, node);
    }

    /** The resource's number. */
    public long parseOwner(Key key) {
        return onlyNumber(new Reader(key, owner));
    }

    public OpenKey parseOpen(Key key) {
        Reader r = new Reader(key, open);
        long home = r.number();
        r.slash();
        long ino = r.number();
        r.slash();
        String node = r.node();
        r.end();
        return new OpenKey(home, ino, node);
    }

    public OpenKey parseOpened(Key key) {
        Reader r = new Reader(key, opened);
        String node = r.node();
        r.slash();
        long home = r.number();
        r.slash();
        long ino = r.number();
        r.end();
        return new OpenKey(home, ino, node);
    }

    /** The inode's number. */
    public long parseOrphan(Key key) {
        return onlyNumber(new Reader(key, orphan));
    }

    public FileLocksKey parseFileLocks(Key key) {
        Reader r = new Reader(key, fileLocks);
        long ino = r.number();
        r.slash();
        String node = r.node();
        r.end();
        return new FileLocksKey(ino, node);
    }

    /** The node of a {@code membership:}, {@code session:}, {@code gen:}, {@code batch:}, {@code departed:}, {@code registered:} or {@code fence_...:} key. */
    public NodeKey parseNode(Key key) {
        for (byte[] head : new byte[][] {membership, session, generation, batch, departed, fencePending, fenceClaim, fenceDone, registered, arenaWant}) {
            if (startsWith(key.bytes(), head)) {
                Reader r = new Reader(key, head);
                String node = r.node();
                r.end();
                return new NodeKey(node);
            }
        }
        throw damaged(key);
    }

    private static long onlyNumber(Reader r) {
        long number = r.number();
        r.end();
        return number;
    }

    private static boolean isEntryName(byte[] name) {
        for (byte b : name) {
            if (b == '/' || b == 0) {
                return false;
            }
        }
        return name.length > 0;
    }

    private static Key number(byte[] head, long number) {
        return write(head, DIGITS).number(number).key();
    }

    private static Key numbers(byte[] head, long first, long second) {
        return write(head, 2 * DIGITS + 1).number(first).slash().number(second).key();
    }

    private static Key below(byte[] head, long number) {
        return write(head, DIGITS + 1).number(number).slash().key();
    }

    private static Key node(byte[] head, String node) {
        return write(head, MAX_NAME).node(node).key();
    }

    private static boolean startsWith(byte[] bytes, byte[] head) {
        return bytes.length >= head.length && Arrays.equals(bytes, 0, head.length, head, 0, head.length);
    }

    private static IllegalArgumentException damaged(Key key) {
        return new IllegalArgumentException("not a key that EtcFS makes, or of another kind: " + key);
    }

    private static Writer write(byte[] head, int room) {
        return new Writer(head, room);
    }

    private static final class Writer {
        private final byte[] bytes;
        private int length;

        Writer(byte[] head, int room) {
            bytes = Arrays.copyOf(head, head.length + room);
            length = head.length;
        }

        Writer number(long number) {
            for (int shift = 60; shift >= 0; shift -= 4) {
                bytes[length++] = HEX[(int) (number >>> shift) & 0xf];
            }
            return this;
        }

        Writer slash() {
            return letter('/');
        }

        Writer letter(char c) {
            bytes[length++] = (byte) c;
            return this;
        }

        Writer node(String node) {
            return bytes(requireNodeName(node).getBytes(StandardCharsets.US_ASCII));
        }

        Writer bytes(byte[] more) {
            System.arraycopy(more, 0, bytes, length, more.length);
            length += more.length;
            return this;
        }

        Key key() {
            return Key.of(length == bytes.length ? bytes : Arrays.copyOf(bytes, length));
        }
    }

    private static final class Reader {
        private final Key key;
        private final byte[] bytes;
        private int at;

        Reader(Key key, byte[] head) {
            this.key = key;
            bytes = key.bytes();
            at = head.length;
            if (!startsWith(bytes, head)) {
                throw damaged();
            }
        }

        int next() {
            if (at == bytes.length) {
                throw damaged();
            }
            return bytes[at++];
        }

        long number() {
            long number = 0;
            for (int i = 0; i < DIGITS; i++) {
                int c = next();
                if (c >= '0' && c <= '9') {
                    number = number << 4 | c - '0';
                } else if (c >= 'a' && c <= 'f') {
                    number = number << 4 | c - 'a' + 10;
                } else {
                    throw damaged();
                }
            }
            return number;
        }

        void slash() {
            if (next() != '/') {
                throw damaged();
            }
        }

        /** Up to the next separator or the end. */
        String node() {
            int from = at;
            while (at < bytes.length && bytes[at] != '/') {
                at++;
            }
            // Not ASCII decodes to a character that no name has.
            String node = new String(bytes, from, at - from, StandardCharsets.US_ASCII);
            if (!isName(node)) {
                throw damaged();
            }
            return node;
        }

        byte[] rest() {
            byte[] rest = Arrays.copyOfRange(bytes, at, bytes.length);
            at = bytes.length;
            return rest;
        }

        void end() {
            if (at != bytes.length) {
                throw damaged();
            }
        }

        IllegalArgumentException damaged() {
            return Keys.damaged(key);
        }
    }
}
