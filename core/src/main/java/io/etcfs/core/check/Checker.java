package io.etcfs.core.check;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Counter;
import io.etcfs.core.record.proto.Super;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * Looks at all keys of a filesystem as they were at one revision. Either all at once, with {@link #check}, or one after the other: the superblock at first, then
 * every key in order, the superblock's included, with {@link #accept}, then {@link #finish}.
 *
 * <p>Of each name and inode about a hundred bytes are kept, of each extent 28 and of each bitmap all: a million files with two extents each take some
 * 270 MB. Nothing depends on the order of a hash table: what is found, and in which order, follows from the keys alone.
 */
public final class Checker {
    private final Keys keys;
    private final long revision;
    private final Findings findings = new Findings();
    private final Geometry geometry;
    private final NodeCheck nodes;
    private NameCheck names;
    private ExtentCheck extents;
    private InodeCheck inodes;
    private StateCheck state;
    private SpaceCheck space;
    private TokenCheck tokens;
    private FileLockCheck fileLocks;
    private Key last;
    private long keyCount;
    private long nextIno;
    private long nextArena = -1;

    /**
     * @param superblock the record at that revision, or null if there is none
     * @param revision   of etcd, at which all that follows was read
     */
    public Checker(Keys keys, KeyValue superblock, long revision) {
        this.keys = keys;
        this.revision = revision;
        geometry = geometry(keys, superblock);
        nodes = new NodeCheck(keys, findings);
        if (geometry != null) {
            Runs runs = new Runs();
            names = new NameCheck(keys, geometry.nameHash(), findings);
            extents = new ExtentCheck(keys, geometry, revision, findings, runs);
            inodes = new InodeCheck(keys, findings, extents);
            state = new StateCheck(keys, findings, inodes, nodes);
            space = new SpaceCheck(keys, geometry, findings, nodes, runs, inodes, extents);
            tokens = new TokenCheck(keys, findings, nodes, inodes, revision);
            fileLocks = new FileLockCheck(keys, findings, nodes);
        }
    }

    /**
     * What is wrong with a filesystem.
     *
     * @param sorted all keys under {@link Keys#prefix()} at that revision, in key order; gone through twice
     */
    public static List<Finding> check(Keys keys, Iterable<KeyValue> sorted, long revision) {
        return report(keys, sorted, revision).findings();
    }

    /** As {@link #check}, with counts. */
    public static Report report(Keys keys, Iterable<KeyValue> sorted, long revision) {
        KeyValue superblock = null;
        for (KeyValue kv : sorted) {
            superblock = kv.key().equals(keys.superblock()) ? kv : superblock;
        }
        Checker checker = new Checker(keys, superblock, revision);
        sorted.forEach(checker::accept);
        return checker.finish();
    }

    private Geometry geometry(Keys keys, KeyValue superblock) {
        String filesystem = name(keys);
        try {
            if (superblock != null) {
                return Geometry.of(Super.parseFrom(superblock.value()), filesystem);
            }
            findings.add(Kind.NO_SUPERBLOCK, "there is none; nothing else was looked at", keys.superblock());
        } catch (InvalidProtocolBufferException | IllegalArgumentException e) {
            findings.add(Kind.NO_SUPERBLOCK, e.getMessage() + "; nothing else was looked at", keys.superblock());
        }
        return null;
    }

    private static String name(Keys keys) {
        String prefix = keys.prefix().toString();
        return prefix.substring(prefix.indexOf('/') + 1, prefix.length() - 1);
    }

    /** The next key. @throws IllegalArgumentException it is not of this filesystem, or not behind the one before */
    public void accept(KeyValue kv) {
        if (!kv.key().startsWith(keys.prefix()) || last != null && last.compareTo(kv.key()) >= 0) {
            throw new IllegalArgumentException(kv.key() + " after " + last + ": not the keys below " + keys.prefix() + " in order");
        }
        last = kv.key();
        keyCount++;
        if (geometry == null) {
            return;
        }
        try {
            route(kv);
        } catch (IllegalArgumentException e) {
            findings.add(Kind.UNKNOWN_KEY, e.getMessage(), kv.key());
        } catch (InvalidProtocolBufferException e) {
            findings.add(Kind.UNREADABLE_RECORD, e.getMessage(), kv.key());
        }
    }

    private void route(KeyValue kv) throws InvalidProtocolBufferException {
        switch (kindOf(kv.key())) {
            case "super" -> { }
            case "inode_alloc_counter" -> nextIno = Counter.parseFrom(kv.value()).getNext();
            case "arena_alloc_log" -> nextArena = Counter.parseFrom(kv.value()).getNext();
            case "dirent:" -> names.dirent(kv);
            case "inode:" -> inodes.inode(kv, state);
            case "extents:" -> extents.record(kv);
            case "xattr:" -> state.xattr(kv);
            case "remainder:" -> state.remainder(kv);
            case "open:" -> state.open(kv);
            case "opened:" -> state.opened(kv);
            case "orphan:" -> state.orphan(kv);
            case "arena:" -> space.arena(kv);
            case "free_arena:" -> space.freeArena(kv);
            case "arena_want:" -> nodes.arenaWant(kv);
            case "blocks:" -> space.blocks(kv);
            case "unfree:" -> space.unfree(kv);
            case "flock:" -> fileLocks.record(kv);
            case "lock:" -> tokens.lock(kv);
            case "owner:" -> tokens.owner(kv);
            case "want:" -> tokens.want(kv);
            case "session:" -> nodes.session(kv);
            case "membership:" -> nodes.membership(kv);
            case "gen:" -> nodes.generation(kv);
            case "batch:" -> nodes.batch(kv);
            case "departed:" -> nodes.departed(kv);
            case "fence_pending:" -> nodes.fencePending(kv);
            case "fence_claim:" -> nodes.fenceClaim(kv);
            case "fence_done:" -> nodes.fenceDone(kv);
            case "registered:" -> nodes.registered(kv);
            default -> throw new IllegalArgumentException("a key of no kind that is known");
        }
    }

    /** What the key begins with below the prefix, up to the first colon, or all of it. */
    private String kindOf(Key key) {
        byte[] bytes = key.bytes();
        int from = keys.prefix().length();
        int end = from;
        while (end < bytes.length && bytes[end] != ':') {
            end++;
        }
        return new String(bytes, from, Math.min(end + 1, bytes.length) - from, StandardCharsets.ISO_8859_1);
    }

    /** All keys were seen. */
    public Report finish() {
        if (geometry == null) {
            return new Report(revision, findings.all(), 0, new Report.Counts(keyCount, 0, 0, 0, 0, 0));
        }
        if (nextIno == 0) {
            findings.add(Kind.NO_COUNTER, "the next inode number is not known", keys.inodeAllocCounter());
        }
        if (nextArena < 0) {
            findings.add(Kind.NO_COUNTER, "the next arena is not known", keys.arenaAllocLog());
        }
        names.finish(inodes);
        inodes.finish(names, state, nextIno);
        state.finish();
        extents.finish();
        space.finish(nextArena);
        tokens.finish();
        fileLocks.finish();
        nodes.finish();
        return new Report(revision, findings.all(), findings.omitted(),
                new Report.Counts(keyCount, inodes.directories(), inodes.count() - inodes.directories(), state.orphans(), space.allocated(), nodes.count()));
    }
}
