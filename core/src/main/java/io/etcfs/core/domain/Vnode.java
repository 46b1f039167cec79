package io.etcfs.core.domain;

import io.etcfs.core.fs.Attributes;
import io.etcfs.core.fs.Errno;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.NavigableMap;
import java.util.TreeMap;

/**
 * What this node knows of an inode because its kernel does, with a token or without: how often it was looked up, who has it open, which device
 * accesses of it are under way, what the kernel may have cached. Fields are under the node's monitor.
 */
public final class Vnode {
    public final long ino;
    public final long home;
    public final boolean directory;

    /** Lookups that the kernel has not given back. */
    public long lookups;
    /** When a lookup of its name was last answered and no open has followed. */
    public long lookedUpNs = Long.MIN_VALUE / 2;
    /** When the kernel was asked last to give it back (ns of the clock). */
    public long pruneAskedNs = Long.MIN_VALUE / 2;
    public int handles;
    public int writableHandles;
    /** Handles of programs that run from it here. */
    public int executed;

    /** Device reads under way, and whether somebody changes its blocks. Readers and the changer exclude each other. */
    public int readers;
    public boolean changing;
    /** New reads wait until then (ns of the clock) for somebody who wants to change blocks and waits for reads. */
    public long changeWantedUntilNs = Long.MIN_VALUE;

    /** The kernel may have its ACLs, or know that it has none. They are not limited in time as attributes are. */
    public boolean aclCached;
    /** It may have old ones: a notification is on its way. */
    public boolean aclStale;

    /** The kernel may have pages of it. */
    public boolean pagesCached;
    public PageState pages;
    public final Refills refills = new Refills();
    /** Null: none were told while it was open. */
    public ToldEnds toldEnds;

    /** Revision of this node's {@code open:} key, 0 if there is none; {@link #OPEN_KEY_UNPUBLISHED} while the batch that puts it is on its way. */
    public long openKeyRevision;
    public static final long OPEN_KEY_UNPUBLISHED = -1;
    /** The last batch that puts that key, so that a delete does not count for a later one. */
    public long openKeyBatch;
    /** That batch puts it for a handover: it goes if the session ends before. */
    public boolean openKeyBound;
    public boolean closerRunning;
    /**
     * Its last name went here while the kernel knew it. It stays until the kernel forgets it, as a local filesystem's would: a process may be between looking
     * the name up and opening what it found.
     */
    public boolean nameless;
    /** It never had a name and may be given one: opened here with O_TMPFILE, without O_EXCL. */
    public boolean linkable;

    /** Until when the kernel may believe attributes it was given (ns of the clock). */
    public long attributesUntilNs;

    /** Where the kernel has it, if it is a directory: the name it was told last. */
    public Place place;
    /** Where it may have it still, as it can't always move it; the latest last. */
    public List<Place> formerPlaces = List.of();
    /** Those are being dropped, which is waited for until then (ns of the clock); 0: they are not. */
    public long dropsUntilNs;

    /** A removed directory is answered from its last attributes while the kernel remembers it. */
    public Attributes lastAttributes;

    /** Pages written back from shared mappings while EXCLUSIVE was not held, by file offset. Changed through {@link #sideBufferForChange}. */
    public NavigableMap<Long, byte[]> sideBuffer = Collections.emptyNavigableMap();
    /** Bytes of the side buffer were lost: the next fsync says so, with that error. */
    public Errno writeBackError;

    /** Requests of the kernel that wait for a token and may hold pages of it locked. */
    public List<WaitingRange> waiting = List.of();

    /** A name in a directory. */
    public record Place(long parent, ByteBuffer name) {}

    /** Bytes {@code [from, to)} of a READ or WRITE that waits. */
    public record WaitingRange(long from, long to, boolean write) {
        private static final long PAGE = 4096;

        /** The pages that the kernel may hold locked for it: all of a READ's; of a WRITE's the last one if it is not whole. */
        public long lockedFrom() {
            return write ? lockedTo() - (partial() ? PAGE : 0) : from / PAGE * PAGE;
        }

        public long lockedTo() {
            return (to + PAGE - 1) / PAGE * PAGE;
        }

        private boolean partial() {
            return to % PAGE != 0 || from % PAGE != 0 && to - from <= PAGE;
        }
    }

    /** The kernel has given it back. */
    public void noPlace() {
        place = null;
        formerPlaces = List.of();
    }

    public NavigableMap<Long, byte[]> sideBufferForChange() {
        if (sideBuffer.isEmpty()) {
            sideBuffer = new TreeMap<>();
        }
        return sideBuffer;
    }

    public void waits(WaitingRange range) {
        if (waiting.isEmpty()) {
            waiting = new ArrayList<>(2);
        }
        waiting.add(range);
    }

    public void waitsNoMore(WaitingRange range) {
        waiting.remove(range);
    }

    public Vnode(long ino, long home, boolean directory) {
        this.ino = ino;
        this.home = home;
        this.directory = directory;
    }

    public boolean inUse() {
        return lookups > 0 || handles > 0 || readers > 0 || changing || openKeyRevision != 0 || !sideBuffer.isEmpty() || closerRunning || !waiting.isEmpty() || pages != null;
    }
}
