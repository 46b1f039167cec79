package io.etcfs.core.domain;

import io.etcfs.core.fault.Fault;
import io.etcfs.core.file.Extent;
import io.etcfs.core.record.proto.SessionRef;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * A directory's domain on this node: the token, and what is cached under it. The resource's number is the directory's inode number; number 0 is the
 * cluster-wide rename token, which has no contents. Fields are under the node's monitor.
 *
 * <pre>
 *   held       recalling  giving   meaning
 *   NONE       -          -        nothing is known; {@link #acquiring} while a task tries to get it
 *   S or X     no         no       usable for local operations
 *   S or X     yes        no       somebody wants it: {@link #namesClosed}, then {@link #dataClosed}
 *   S or X     yes        yes      the batch that gives it on is closed: counts as given away
 * </pre>
 */
public final class Domain {
    /** More names than this are not remembered one by one: they are waited for. */
    public static final int MAX_GRANTED_NAMES = 2000;

    // What a class histogram shows, compressed class pointers, names of 20 bytes.
    private static final long BYTES = 600;
    private static final long ENTRY_BYTES = 170;
    private static final long INODE_BYTES = 330;
    private static final long EXTENT_BYTES = 110;

    public record WantOf(String node, Mode mode, long session, long lease, long generation, long revision) {}

    public final long id;

    // ---- the token
    public Mode held = Mode.NONE;
    public boolean loaded;
    /** Mod revision of this node's lock key, as far as known. */
    public long lockRevision;
    /** Mod revision of the owner record this node's token goes by; 0: there is none, as for all domains in which nothing lives. */
    public long ownerRevision;
    public long epoch;
    public List<SessionRef> suspects = List.of();
    public long heldSinceNs;
    /** When a local operation last went through under it, and whether one that waited for it has not had its turn yet. */
    public long lastUsedNs;
    public boolean unserved;
    /** When its names were last listed here. */
    public long listedNs = Long.MIN_VALUE / 2;
    /** When a local operation last went through that needs it EXCLUSIVE. */
    public long lastChangedNs = Long.MIN_VALUE / 2;
    public long holdNs;
    /** Born under its parent's EXCLUSIVE in a batch that is not committed yet: nobody else can know of it. */
    public boolean birthUnpublished;
    /** The batch in which it was born here; 0: it was not. */
    public long bornBatch;
    /** All that lived in it went in the batch in which it was born: it never has an owner record. */
    public boolean goneAtBirth;
    public int pins;
    /** Token was lost with a session while unpublished changes depended on it. */
    public boolean takeBack;

    // ---- wanting it
    public Mode demand = Mode.NONE;
    public long demandUntilNs;
    /** Another node is likely to hold it in the way: a want is put without a look before. Taken back once it was followed. */
    public boolean likelyElsewhere;
    /** It was handed over by a holder, not taken. */
    public boolean fromHolder;
    /** No operation waits for it yet: nothing is taken from a holder that vanished, who may be about to take it back. */
    public boolean demandAhead;
    public boolean acquiring;
    /** A transaction that would change how it is held is on its way: nothing is given up before its answer. */
    public boolean asking;
    /** Counts what the watch saw of the resource, so that waiters do not miss it. */
    public long events;
    public long givenRevision;
    /** The key that the watch saw another node put for us: how, and its mod revision; 0 once somebody set about taking it up. */
    public Mode handed = Mode.NONE;
    public long handedRevision;

    // ---- others wanting it
    public final Map<String, WantOf> wants = new LinkedHashMap<>();
    public boolean recalling;
    public boolean namesClosed;
    public boolean dataClosed;
    /** READ and WRITE calls wait for a moment, so that dropping pages comes to an end. Write-back of mappings does not: dropping waits for it. */
    public boolean pagesClosed;
    public boolean giving;
    public long lastRecalledNs = Long.MIN_VALUE / 2;

    // ---- what the kernel was told
    public long validUntilNs;
    /** When something was last granted: the asking process may not have taken the answer in yet. */
    public long lastGrantNs;
    public final Set<ByteBuffer> grantedNames = new HashSet<>();
    public boolean grantedTooMany;
    public int repliesInFlight;
    /** Requests of the kernel that wait for this token; some hold the directory's lock. */
    public int namespaceWaiters;

    // ---- contents
    public final TreeMap<Long, Dirent> entries = new TreeMap<>();
    public final Map<Long, Inode> inodes = new HashMap<>();
    /** Which other nodes have which inode open, as read in or after the acquire of EXCLUSIVE. */
    public final Map<Long, Set<String>> othersOpen = new HashMap<>();
    public final Map<Long, Long> remainders = new TreeMap<>();
    /** Extents of all {@link #inodes}, as far as they are loaded. */
    private long cachedExtents;
    /** The last batch with a change in this domain. */
    public long lastBatch;

    public Domain(long id, long holdNs) {
        this.id = id;
        this.holdNs = holdNs;
    }

    /** The directory's own inode, or null if it was removed (its files can live on). */
    public Inode directory() {
        return inodes.get(id);
    }

    /** The directory was removed, and no file that was made in it lives on. */
    public boolean nothingLivesHere() {
        return loaded && directory() == null && inodes.isEmpty();
    }

    /** Usable for operations on names and attributes. */
    public boolean usable(Mode mode) {
        return held.atLeast(mode) && loaded && !namesClosed && !giving && !takeBack;
    }

    /** Usable for operations on bytes, which go on while the kernel's cache is being dropped. */
    public boolean usableForData(Mode mode) {
        return held.atLeast(mode) && loaded && !dataClosed && !giving && !takeBack;
    }

    /**
     * Whether notifications can make the kernel forget what it was granted: one about a name waits for the directory's lock, which requests that wait for us
     * may hold.
     */
    public boolean namesCanBeDropped() {
        return !grantedTooMany && (namespaceWaiters == 0 || grantedNames.isEmpty() || Fault.NOTIFY_WITHOUT_LIMIT.on());
    }

    /** In place: no holder of an earlier epoch can be writing there any more, nor can anybody have been told that the blocks stay as they are. */
    public boolean mayOverwrite(Extent e) {
        return e.epoch() == epoch || Fault.EPOCH_IGNORED.on();
    }

    public void clearContents() {
        entries.clear();
        inodes.clear();
        othersOpen.clear();
        remainders.clear();
        cachedExtents = 0;
        loaded = false;
    }

    /** The inode's extents have changed in number. */
    public void countExtents(Inode inode) {
        cachedExtents += inode.extents.count() - inode.countedExtents;
        inode.countedExtents = inode.extents.count();
    }

    /** About how much of the heap takes what is cached under the token; a function of numbers alone. */
    public long cachedBytes() {
        return BYTES + ENTRY_BYTES * entries.size() + INODE_BYTES * inodes.size() + EXTENT_BYTES * cachedExtents;
    }

    public Dirent entry(long hash, byte[] name) {
        Dirent d = entries.get(hash);
        return d != null && java.util.Arrays.equals(d.name(), name) ? d : null;
    }

    public boolean openElsewhere(long ino) {
        if (Fault.FREED_WHILE_OPEN_ELSEWHERE.on()) {
            return false;
        }
        Set<String> nodes = othersOpen.get(ino);
        return nodes != null && !nodes.isEmpty();
    }
}
