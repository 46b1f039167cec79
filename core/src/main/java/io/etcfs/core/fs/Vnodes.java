package io.etcfs.core.fs;

import io.etcfs.core.domain.Vnode;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The inodes that the kernel knows, or that something here still has to do with. Under the node's monitor. */
final class Vnodes {
    static final long ROOT = 1;

    private final Map<Long, Vnode> byIno = new HashMap<>();
    private final Map<Long, Set<Vnode>> byHome = new HashMap<>();

    Vnodes() {
        get(ROOT, ROOT, true).lookups = 1;
    }

    Vnode get(long ino, long home, boolean directory) {
        Vnode v = byIno.get(ino);
        if (v == null) {
            v = new Vnode(ino, home, directory);
            byIno.put(ino, v);
            byHome.computeIfAbsent(home, h -> new LinkedHashSet<>()).add(v);
        }
        return v;
    }

    Vnode known(long ino) {
        return byIno.get(ino);
    }

    /** @throws FsException ESTALE: the kernel names an inode that it has given back */
    Vnode require(long ino) throws FsException {
        Vnode v = byIno.get(ino);
        if (v == null) {
            throw new FsException(Errno.ESTALE);
        }
        return v;
    }

    Collection<Vnode> withHome(long home) {
        Set<Vnode> set = byHome.get(home);
        return set == null ? List.of() : set;
    }

    /** By home. Not to be changed. */
    Map<Long, Set<Vnode>> homes() {
        return byHome;
    }

    Collection<Vnode> all() {
        return byIno.values();
    }

    void dropIfUnused(Vnode v) {
        if (!v.inUse() && v.ino != ROOT) {
            byIno.remove(v.ino);
            Set<Vnode> set = byHome.get(v.home);
            if (set != null && set.remove(v) && set.isEmpty()) {
                byHome.remove(v.home);
            }
        }
    }

    int count() {
        return byIno.size();
    }
}
