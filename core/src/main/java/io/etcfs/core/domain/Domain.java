package io.etcfs.core.domain;

import io.etcfs.core.fault.Fault;
import io.etcfs.core.file.Extent;
import io.etcfs.core.record.proto.SessionRef;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Predicate;

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
    /** Where one waits still, for what is being read of it, the token stays here at least until then. */
    public long notBeforeNs = Long.MIN_VALUE / 2;
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
    /** Names that the kernel moved here with all that it believed of them and that it is being made to drop, and until when it may believe them. */
    public int movedNames;
    public long movedUntilNs;
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
    /** What is known where not all of it is cached; null: all is, and what is not cached does not exist. */
    public Part part;
    /** Grows whenever something is dropped from the cache: what was read before is not taken in after. */
    public long dropped;
    /** All of it is needed until then, and nothing is given up. */
    public long wholeUntilNs = Long.MIN_VALUE;
    /** Hashes whose names, and inodes that were removed, with the batch of their last change; those of committed ones are dropped now and then. */
    private final LinkedHashMap<Long, Long> changedNames = new LinkedHashMap<>();
    private final LinkedHashMap<Long, Long> removedInodes = new LinkedHashMap<>();

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
        return loaded && part == null && directory() == null && inodes.isEmpty();
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

    /** Until when the kernel may believe anything of it. */
    public long believedUntilNs() {
        return Math.max(validUntilNs, movedUntilNs);
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
        changedNames.clear();
        removedInodes.clear();
        part = null;
        dropped++;
        loaded = false;
    }

    // ---- where only a part is cached

    /** Whether {@link #entries} says what name has the hash, if any. */
    public boolean knowsName(long hash) {
        return part == null || part.knows(hash);
    }

    /** Whether {@link #inodes} says if there is such an inode. */
    public boolean knowsInode(long ino) {
        return part == null || part.allInodes || inodes.containsKey(ino) || part.isGone(ino);
    }

    /** What name has the hash changes in the batch. */
    public void nameChanges(long hash, long batch, long committed) {
        forgetCommitted(changedNames, committed);
        changedNames.remove(hash);
        changedNames.put(hash, batch);
        if (part != null) {
            part.know(hash);
        }
    }

    public void inodeGoes(long ino, long batch, long committed) {
        forgetCommitted(removedInodes, committed);
        removedInodes.put(ino, batch);
        if (part != null) {
            part.gone(ino);
        }
    }

    private static void forgetCommitted(LinkedHashMap<Long, Long> changes, long committed) {
        Iterator<Long> batches = changes.values().iterator();
        while (batches.hasNext() && batches.next() <= committed) {
            batches.remove();
        }
    }

    /** Names as they were read, of all hashes from {@code from} to before {@code end}: what is known already is newer. */
    public void take(List<Dirent> read, long from, long end) {
        for (Dirent e : read) {
            if (!part.knows(e.hash()) || Fault.DELETED_NAME_READ_BACK.on() && !entries.containsKey(e.hash())) {
                entries.put(e.hash(), e);
            }
        }
        part.know(from, end);
        becomeWhole();
    }

    /** An inode as it was read: what is known already is newer. */
    public void take(Inode read) {
        if (!knowsInode(read.ino)) {
            inodes.put(read.ino, read);
            countExtents(read);
        }
    }

    /** All inodes at home here have been taken in since {@link #dropped} was that. */
    public void allInodesTaken(long droppedBefore) {
        if (dropped == droppedBefore) {
            part.allInodes = true;
            becomeWhole();
        }
    }

    private void becomeWhole() {
        if (part.allInodes && part.allNames()) {
            part = null;
        }
    }

    /** Drops up to so many names whose changes have committed, in the order of listings from where it ended last. */
    public void dropNames(int most, long committed) {
        beInPart();
        long from = part.hand;
        long end = Long.MAX_VALUE;
        int seen = 0;
        Iterator<Long> hashes = entries.tailMap(from, true).keySet().iterator();
        while (hashes.hasNext()) {
            long hash = hashes.next();
            if (seen++ == most) {
                end = hash;
                break;
            }
            if (clean(hash, committed)) {
                hashes.remove();
            }
        }
        part.forget(from, end);
        for (Map.Entry<Long, Long> changed : changedNames.entrySet()) {
            if (!clean(changed.getKey(), committed)) {
                part.know(changed.getKey());
            }
        }
        part.hand = end == Long.MAX_VALUE ? 0 : end;
        dropped++;
    }

    private boolean clean(long hash, long committed) {
        Long batch = changedNames.get(hash);
        return batch == null || batch <= committed || Fault.DROPPED_UNPUBLISHED.on();
    }

    /** Drops up to so many inodes that have no unpublished change and that nobody needs, but not the directory's own. */
    public void dropInodes(int most, long committed, Predicate<Inode> needed) {
        beInPart();
        int left = most;
        Iterator<Inode> all = inodes.values().iterator();
        while (all.hasNext() && left > 0) {
            Inode i = all.next();
            if (i.ino != id && i.lastBatch <= committed && !needed.test(i)) {
                all.remove();
                cachedExtents -= i.countedExtents;
                i.countedExtents = 0;
                left--;
            }
        }
        part.allInodes = false;
        part.forgetGone();
        removedInodes.forEach((ino, batch) -> {
            if (batch > committed) {
                part.gone(ino);
            }
        });
        dropped++;
    }

    private void beInPart() {
        if (part == null) {
            part = new Part(entries.size(), inodes.size());
            part.know(0, Long.MAX_VALUE);
            part.allInodes = true;
            removedInodes.keySet().forEach(part::gone);
        }
    }

    /** The inode's extents have changed in number. */
    public void countExtents(Inode inode) {
        cachedExtents += inode.extents.count() - inode.countedExtents;
        inode.countedExtents = inode.extents.count();
    }

    /** How much can be dropped, about: names, inodes, and what is known not to be there. */
    public int cachedPieces() {
        return entries.size() + inodes.size() + (part == null ? 0 : part.pieces());
    }

    /** About how much of the heap so many take. */
    public static long bytes(long names, long inodes) {
        return ENTRY_BYTES * names + INODE_BYTES * inodes;
    }

    /** About how much of the heap takes what is cached under the token; a function of numbers alone. */
    public long cachedBytes() {
        return BYTES + (part == null ? 0 : part.bytes()) + bytes(entries.size(), inodes.size()) + EXTENT_BYTES * cachedExtents;
    }

    /** The name's entry, or null. It is known what name has the hash. */
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
