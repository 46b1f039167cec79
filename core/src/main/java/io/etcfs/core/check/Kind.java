package io.etcfs.core.check;

import static io.etcfs.core.check.Severity.DAMAGE;
import static io.etcfs.core.check.Severity.LEFTOVER;
import static io.etcfs.core.check.Severity.NOTE;

/** What can be found, each with the invariant that it breaks (a note: with the fact that it tells). */
public enum Kind {
    // Records
    NO_SUPERBLOCK(DAMAGE, "There is a superblock, of a format that is known and for this filesystem."),
    UNKNOWN_KEY(DAMAGE, "Every key under the filesystem's prefix is one that EtcFS makes."),
    UNREADABLE_RECORD(DAMAGE, "Every value is the record that its key stands for."),
    NO_COUNTER(DAMAGE, "Both counters, inode_alloc_counter and arena_alloc_log, are there."),

    // The tree
    NO_ROOT(DAMAGE, "The root directory is there."),
    DIRENT_WITHOUT_DIRECTORY(DAMAGE, "A name is in a directory that is there."),
    DIRENT_WITHOUT_INODE(DAMAGE, "A name's inode is there, in the home that the name says."),
    DIRENT_TYPE(DAMAGE, "A name says its inode's type."),
    DIRENT_NAME(DAMAGE, "A name has at most 255 bytes and is neither . nor .."),
    DIRENT_HASH(DAMAGE, "The hash in a name's key is the name's, and not below 16."),
    DIRENT_HASH_TWICE(DAMAGE, "Two names of a directory never have the same hash."),
    DIRECTORY_NAMES(DAMAGE, "A directory has exactly one name, the root none."),
    DIRECTORY_PARENT(DAMAGE, "A directory's parent is the directory that has its name."),
    DIRECTORY_CYCLE(DAMAGE, "Every directory is below the root."),
    LINK_COUNT(DAMAGE, "nlink is the number of names, of a directory 2 + its subdirectories."),

    // Inodes
    INODE_TWICE(DAMAGE, "An inode number is in one home only."),
    INODE_HOME(DAMAGE, "A directory is its own home, nothing else is."),
    INODE_NUMBER(DAMAGE, "Inode numbers are below inode_alloc_counter, and not 0."),
    INODE_FIELDS(DAMAGE, "What an inode has goes with its type."),
    INODE_SIZE(DAMAGE, "valid is at most size, size at most 16 TiB; while a truncation is worked off, valid is at most where it cut."),
    NAMELESS(DAMAGE, "An inode without a name is an orphan."),
    ORPHAN(DAMAGE, "An orphan's inode is there, in the home that the record says, with no name and nlink 0."),
    ORPHAN_UNPINNED(DAMAGE, "Somebody has an open: of each orphan, and will free it."),
    ORPHAN_WAITS(LEFTOVER, "An orphan is freed by a node that is there."),
    REMAINDER(DAMAGE, "A remainder and its inode's dead_from are there together and say the same block."),
    XATTR_MISSING(DAMAGE, "Each large attribute that an inode lists is there."),
    XATTR_UNLISTED(LEFTOVER, "Each xattr: record is listed by its inode."),
    OPEN_UNPAIRED(DAMAGE, "open: and opened: are there together."),
    OPEN_WITHOUT_INODE(DAMAGE, "An inode that somebody has open is there."),

    // Space
    EXTENTS_OVERLAP(DAMAGE, "A file's extents are in order and don't overlap, each record's in its range."),
    EXTENT_RECORD(DAMAGE, "An extents: record is there if and only if its inode says that it has records."),
    EXTENT_OUTSIDE(DAMAGE, "A block that is used is on the device, not the label's, and in a claimed arena."),
    EXTENT_EPOCH(DAMAGE, "An extent's epoch is not 0 and not above its domain's."),
    BLOCK_COUNT(DAMAGE, "An inode counts the blocks that its extents have."),
    BLOCK_TWICE(DAMAGE, "No block is in two extents, nor in an extent and in an unfree: record, nor in two of those."),
    BLOCK_NOT_ALLOCATED(DAMAGE, "A block that is used is marked in its arena's bitmap."),
    BLOCK_LEAKED(LEFTOVER, "A block that is marked in a bitmap is in an extent or an unfree: record."),
    ARENA_TWICE(DAMAGE, "An arena has one owner, or is in the free pool."),
    ARENA_MISSING(DAMAGE, "An arena that was ever claimed has an owner, or is in the free pool."),
    ARENA_UNKNOWN(DAMAGE, "Arenas and their bitmaps are on the device, and below arena_alloc_log."),
    ARENA_FREE_COUNT(DAMAGE, "An arena's count of free blocks is that of its bitmaps."),
    UNFREE_OUTSIDE(DAMAGE, "The runs of an unfree: record are in its arena."),

    // Tokens
    EXCLUSIVE_NOT_ALONE(DAMAGE, "X on a resource excludes every other S and X."),
    TOKEN_WITHOUT_SESSION(DAMAGE, "A token's or want's session is there, and its key is on that session's lease."),
    TOKEN_WITHOUT_OWNER(DAMAGE, "Who holds X of a domain where something lives is the owner on record, in that session, and has not given it up."),
    SHARED_WITH_OWNER(DAMAGE, "S is held only where the owner on record has given X up, or where there is none."),
    OWNER_WITHOUT_TOKEN(DAMAGE, "An owner that has not given X up holds it as long as its session lives."),
    OWNER_FIELDS(DAMAGE, "An owner record's epoch and sessions are revisions that were, its generation is not above its node's."),
    OWNER_MISSING(DAMAGE, "A directory that was ever changed has an owner record."),
    OWNER_LEFT(LEFTOVER, "An owner record is of something: a directory, or inodes that live on."),

    // File locks of processes
    FILE_LOCK_CONFLICT(DAMAGE, "File locks of two nodes on one inode don't conflict; where one node decides alone nobody else has any."),
    FILE_LOCK_RANGE(DAMAGE, "A file lock's range is one, and no two of an owner overlap."),
    FILE_LOCK_WITHOUT_SESSION(DAMAGE, "The session of a record of file locks is there, and the record on its lease."),

    // Nodes
    NODE_LEASE(DAMAGE, "session:, membership: and fence_claim: are on a lease; the session says which."),
    NODE_GENERATION(DAMAGE, "A node that has records has a gen:, and its membership is not above it."),
    NODE_DEPARTED(DAMAGE, "A node that departed is no member and has no session and no arena."),
    NODE_FENCED(DAMAGE, "A node that was fenced, and not registered since, is no member and has no session, no arena and no other mark; its generation is the one it was raised to."),
    FENCE_INTENT(DAMAGE, "A node that is to be fenced is no member."),
    BATCH_MARKER(DAMAGE, "A batch marker says which process, and a number."),
    NODE_GONE(NOTE, "A node that has arenas or open files has a session, or comes back."),
    NODE_VANISHED(NOTE, "A node that vanished is fenced, comes back or is declared dead.");

    private final Severity severity;
    private final String invariant;

    Kind(Severity severity, String invariant) {
        this.severity = severity;
        this.invariant = invariant;
    }

    public Severity severity() {
        return severity;
    }

    /** One sentence, true of every revision where nothing of this kind is found. */
    public String invariant() {
        return invariant;
    }
}
