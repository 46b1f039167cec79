package io.etcfs.core.lock;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Who waits for whom, as far as this node can see: its own processes, and what other nodes' records say of the inodes that it has to do with. Only fcntl(2)
 * locks; flock(2) knows no EDEADLK.
 *
 * <p>Of a cycle one is refused: within the node who comes last, else the youngest wait. A cycle in which two owners are one process is none: the locks then are of
 * open file descriptions, another thread of the process can give them up, and Linux does not look for cycles of those.
 */
final class WaitGraph implements FileLocks.Deadlocks {
    /** {@code node} null: this one. */
    private record Waiter(String node, LockOwner owner, int pid, long since, long number) {}

    private record Wait(FileLocks file, Waiter waiter, HeldLock wanted) {}

    private final String node;
    private final Map<Long, FileLocks> files;

    WaitGraph(String node, Map<Long, FileLocks> files) {
        this.node = node;
        this.files = files;
    }

    @Override
    public boolean closedBy(LockRequest r) {
        if (r.wanted.owner().flock()) {
            return false;
        }
        Wait first = new Wait(r.file, new Waiter(null, r.wanted.owner(), r.wanted.pid(), r.since, r.number), r.wanted);
        return search(first, first, new ArrayList<>(List.of(first.waiter)), new HashSet<>());
    }

    private boolean search(Wait first, Wait at, List<Waiter> path, Set<List<Object>> visited) {
        for (Waiter holder : holders(at)) {
            if (sameOwner(holder, first.waiter)) {
                if (isDeadlock(path)) {
                    return true;
                }
                continue;
            }
            if (!visited.add(java.util.Arrays.asList(holder.node, holder.owner))) {
                continue;
            }
            for (Wait next : waitsOf(holder)) {
                path.add(next.waiter);
                if (search(first, next, path, visited)) {
                    return true;
                }
                path.removeLast();
            }
        }
        return false;
    }

    private static boolean sameOwner(Waiter a, Waiter b) {
        return a.owner.equals(b.owner) && java.util.Objects.equals(a.node, b.node);
    }

    /** Whether the first of them is the one to be refused. */
    private boolean isDeadlock(List<Waiter> cycle) {
        Waiter first = cycle.getFirst();
        boolean within = cycle.stream().allMatch(w -> w.node == null);
        for (int i = 0; i < cycle.size(); i++) {
            Waiter w = cycle.get(i);
            for (Waiter other : cycle.subList(0, i)) {
                if (w.pid == other.pid && java.util.Objects.equals(w.node, other.node)) {
                    return false;
                }
            }
            if (!within && i > 0 && younger(w, first)) {
                return false;
            }
        }
        return true;
    }

    private boolean younger(Waiter a, Waiter b) {
        if (a.since != b.since) {
            return a.since > b.since;
        }
        int byNode = name(a).compareTo(name(b));
        return byNode != 0 ? byNode > 0 : a.number > b.number;
    }

    private String name(Waiter w) {
        return w.node == null ? node : w.node;
    }

    /** Those whose locks keep the wait from ending; of them only the owner and where it is counts. */
    private Collection<Waiter> holders(Wait wait) {
        List<Waiter> holders = new ArrayList<>();
        boolean here = wait.waiter.node == null;
        for (HeldLock h : here ? wait.file.held.conflicts(wait.wanted) : wait.file.held.all()) {
            if (here || conflicts(h, wait.wanted)) {
                holders.add(new Waiter(null, h.owner(), h.pid(), 0, 0));
            }
        }
        wait.file.others.forEach((name, record) -> {
            for (HeldLock h : record.held()) {
                if (name.equals(wait.waiter.node) ? h.conflictsWith(wait.wanted) : conflicts(h, wait.wanted)) {
                    holders.add(new Waiter(name, h.owner(), h.pid(), 0, 0));
                }
            }
        });
        return holders;
    }

    /** Of owners on different nodes. */
    private static boolean conflicts(HeldLock held, HeldLock wanted) {
        return (held.exclusive() || wanted.exclusive()) && held.owner().flock() == wanted.owner().flock() && held.overlaps(wanted.start(), wanted.end());
    }

    private List<Wait> waitsOf(Waiter owner) {
        List<Wait> waits = new ArrayList<>();
        for (FileLocks f : files.values()) {
            if (owner.node == null) {
                for (LockRequest r : f.pending) {
                    if (r.waits && r.wanted.owner().equals(owner.owner)) {
                        waits.add(new Wait(f, new Waiter(null, owner.owner, r.wanted.pid(), r.since, r.number), r.wanted));
                    }
                }
            } else {
                Published record = f.others.get(owner.node);
                if (record != null) {
                    for (Published.Waiting w : record.waiting()) {
                        if (w.lock().owner().equals(owner.owner)) {
                            waits.add(new Wait(f, new Waiter(owner.node, owner.owner, w.lock().pid(), w.since(), w.number()), w.lock()));
                        }
                    }
                }
            }
        }
        return waits;
    }
}
