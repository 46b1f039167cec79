package io.etcfs.core.lock;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The locks that one node's owners hold on one inode. An owner's ranges do not overlap, and no two of them that touch are of one kind: a new lock replaces
 * what its owner had of these bytes (upgrade, downgrade), splits what it covers a part of, and grows together with its neighbours. Keeps no order between owners
 * but that of their first locks. Not thread-safe.
 */
public final class LockTable {
    private final Map<LockOwner, TreeMap<Long, HeldLock>> byOwner = new LinkedHashMap<>();

    public boolean isEmpty() {
        return byOwner.isEmpty();
    }

    public int size() {
        int size = 0;
        for (TreeMap<Long, HeldLock> locks : byOwner.values()) {
            size += locks.size();
        }
        return size;
    }

    public boolean has(LockOwner owner) {
        return byOwner.containsKey(owner);
    }

    public List<HeldLock> of(LockOwner owner) {
        TreeMap<Long, HeldLock> locks = byOwner.get(owner);
        return locks == null ? List.of() : List.copyOf(locks.values());
    }

    public List<HeldLock> all() {
        List<HeldLock> all = new ArrayList<>();
        byOwner.values().forEach(locks -> all.addAll(locks.values()));
        return all;
    }

    public LockTable copy() {
        LockTable copy = new LockTable();
        byOwner.forEach((owner, locks) -> copy.byOwner.put(owner, new TreeMap<>(locks)));
        return copy;
    }

    /** The lock with the lowest start that keeps the wanted one away, or null. */
    public HeldLock conflict(HeldLock wanted) {
        HeldLock first = null;
        for (HeldLock held : conflicts(wanted)) {
            if (first == null || held.start() < first.start()) {
                first = held;
            }
        }
        return first;
    }

    /** All locks of others that keep the wanted one away. */
    public Collection<HeldLock> conflicts(HeldLock wanted) {
        List<HeldLock> found = new ArrayList<>();
        byOwner.forEach((owner, locks) -> {
            if (owner.flock() == wanted.owner().flock() && !owner.equals(wanted.owner())) {
                Map.Entry<Long, HeldLock> before = locks.floorEntry(wanted.start());
                long from = before == null ? wanted.start() : before.getKey();
                for (HeldLock held : locks.subMap(from, true, wanted.end(), true).values()) {
                    if (held.conflictsWith(wanted)) {
                        found.add(held);
                    }
                }
            }
        });
        return found;
    }

    /** The owner holds these bytes so from now on, however it held them before. Nobody else's lock conflicts. */
    public void set(HeldLock lock) {
        clear(lock.owner(), lock.start(), lock.end());
        TreeMap<Long, HeldLock> locks = byOwner.computeIfAbsent(lock.owner(), o -> new TreeMap<>());
        long start = lock.start();
        long end = lock.end();
        Map.Entry<Long, HeldLock> before = locks.lowerEntry(start);
        if (before != null && before.getValue().end() == start - 1 && before.getValue().exclusive() == lock.exclusive()) {
            start = before.getKey();
        }
        HeldLock after = end == Long.MAX_VALUE ? null : locks.get(end + 1);
        if (after != null && after.exclusive() == lock.exclusive()) {
            locks.remove(after.start());
            end = after.end();
        }
        locks.put(start, lock.between(start, end));
    }

    /** The owner holds none of these bytes from now on. */
    public void clear(LockOwner owner, long start, long end) {
        TreeMap<Long, HeldLock> locks = byOwner.get(owner);
        if (locks == null) {
            return;
        }
        Map.Entry<Long, HeldLock> at = locks.floorEntry(start);
        if (at == null) {
            at = locks.higherEntry(start);
        }
        while (at != null && at.getKey() <= end) {
            HeldLock held = at.getValue();
            long key = at.getKey();
            if (held.overlaps(start, end)) {
                locks.remove(key);
                if (held.start() < start) {
                    locks.put(held.start(), held.between(held.start(), start - 1));
                }
                if (held.end() > end) {
                    locks.put(end + 1, held.between(end + 1, held.end()));
                }
            }
            at = locks.higherEntry(key);
        }
        if (locks.isEmpty()) {
            byOwner.remove(owner);
        }
    }

    public void clear(LockOwner owner) {
        byOwner.remove(owner);
    }

    public void clear() {
        byOwner.clear();
    }
}
