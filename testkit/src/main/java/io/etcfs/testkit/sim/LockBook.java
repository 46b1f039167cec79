package io.etcfs.testkit.sim;

import io.etcfs.core.lock.HeldLock;
import io.etcfs.core.record.Keys;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.testkit.store.MemoryStore;
import java.util.ArrayList;
import java.util.List;

/**
 * Which file locks programs believe to hold. A belief counts as long as etcd has the session under which it came about: the lock can't have been given to anybody
 * else then, whatever happened to messages, daemons and clocks.
 */
final class LockBook {
    private record Belief(Program program, String node, long session, long ino, HeldLock lock) {}

    private final MemoryStore store;
    private final Keys keys;
    private final List<Belief> beliefs = new ArrayList<>();

    LockBook(MemoryStore store, Keys keys) {
        this.store = store;
        this.keys = keys;
    }

    /** Create revision of the node's session key in etcd now, 0: it has none. */
    long session(String node) {
        try {
            KeyValue found = store.range(keys.session(node), null, 0, false, 0, 1_000_000_000L).only();
            return found == null ? 0 : found.createRevision();
        } catch (StoreRejectedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** What the program had of these bytes may change from now on. */
    void forget(Program program, long ino, HeldLock part) {
        for (Belief b : List.copyOf(beliefs)) {
            if (b.program == program && b.ino == ino && b.lock.owner().equals(part.owner()) && b.lock.overlaps(part.start(), part.end())) {
                beliefs.remove(b);
                if (b.lock.start() < part.start()) {
                    beliefs.add(new Belief(program, b.node, b.session, ino, new HeldLock(b.lock.owner(), b.lock.start(), part.start() - 1, b.lock.exclusive(), b.lock.pid())));
                }
                if (b.lock.end() > part.end()) {
                    beliefs.add(new Belief(program, b.node, b.session, ino, new HeldLock(b.lock.owner(), part.end() + 1, b.lock.end(), b.lock.exclusive(), b.lock.pid())));
                }
            }
        }
    }

    void forget(Program program, long ino) {
        beliefs.removeIf(b -> b.program == program && b.ino == ino);
    }

    void forget(Program program) {
        beliefs.removeIf(b -> b.program == program);
    }

    /**
     * The program was told that it has the lock.
     *
     * @param session of its node when it asked
     * @return what is wrong with that, or null
     */
    String granted(Program program, String node, long session, long ino, HeldLock lock) {
        if (session == 0 || session(node) != session) {
            return null;
        }
        for (Belief b : beliefs) {
            if (b.ino == ino && b.lock.conflictsWith(lock) && session(b.node) == b.session) {
                return node + " was granted " + lock + " of inode " + ino + ", and " + b.node + " has " + b.lock;
            }
        }
        beliefs.add(new Belief(program, node, session, ino, lock));
        return null;
    }
}
