package io.etcfs.core.fs;

import io.etcfs.core.domain.Dirent;
import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.token.Attempt;
import io.etcfs.core.token.Need;
import io.etcfs.core.token.Tokens;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Renaming and exchanging names, which for directories needs to know what is above them. */
final class Renames {
    private static final int WHITEOUT_MODE = 0020000;
    private static final long REQUEST_NS = 5_000_000_000L;

    private final Node node;
    private final Namespace namespace;
    private long ownMoves;

    Renames(Node node, Namespace namespace) {
        this.node = node;
        this.namespace = namespace;
    }

    /** Parents of directories as read from etcd while the rename token was held: good as long as nobody else can have moved a directory. */
    private record Ancestry(long renameTokenRevision, long ownMoves, Map<Long, Long> parents) {}

    static final class NeedsParent extends RuntimeException {
        private static final long serialVersionUID = 1L;
        final long directory;

        NeedsParent(long directory) {
            super(null, null, false, false);
            this.directory = directory;
        }
    }

    void rename(Call call, long parent, byte[] name, long newParent, byte[] newName, int flags) throws FsException {
        Namespace.checkName(name);
        Namespace.checkName(newName);
        if ((flags & ~(Operations.RENAME_NOREPLACE | Operations.RENAME_EXCHANGE | Operations.RENAME_WHITEOUT)) != 0
                || (flags & Operations.RENAME_EXCHANGE) != 0 && flags != Operations.RENAME_EXCHANGE) {
            throw new FsException(Errno.EINVAL);
        }
        Ancestry[] known = {new Ancestry(0, 0, new HashMap<>())};
        while (true) {
            long missing;
            try {
                node.waiting().run(call, namespace.holding(parent, newParent), a -> {
                    attemptRename(call, a, parent, name, newParent, newName, flags, known);
                    return null;
                });
                return;
            } catch (NeedsParent n) {
                missing = n.directory;
            }
            if (!call.mayWait()) {
                throw MustWait.INSTANCE;
            }
            known[0].parents.put(missing, node.waiting().ask(call, () -> readParent(missing)));
        }
    }

    private long readParent(long directory) throws StoreUnavailableException, StoreRejectedException {
        KeyValue kv = node.store().range(node.keys().inode(directory, directory), null, 0, false, 0, REQUEST_NS).only();
        return kv == null ? 0 : Inode.decode(directory, directory, kv.value()).parent;
    }

    private void attemptRename(Call call, Attempt a, long parent, byte[] name, long newParent, byte[] newName, int flags, Ancestry[] known) throws FsException {
        namespace.directory(parent);
        namespace.directory(newParent);
        namespace.requireTwo(a, parent, newParent);
        Domain from = node.tokens().domain(parent);
        Domain to = node.tokens().domain(newParent);
        Inode fromDir = namespace.live(from);
        Inode toDir = namespace.live(to);
        Dirent source = namespace.find(from, name);
        Dirent target = namespace.find(to, newName);
        if (source == null) {
            throw new FsException(Errno.ENOENT);
        }
        boolean exchange = (flags & Operations.RENAME_EXCHANGE) != 0;
        if (target != null && (flags & Operations.RENAME_NOREPLACE) != 0) {
            throw new FsException(Errno.EEXIST);
        }
        if (target == null && exchange) {
            throw new FsException(Errno.ENOENT);
        }
        if (target != null && target.ino() == source.ino()) {
            // Two names of one file both stay. A kernel that asks did not know that they are, and moves the entry.
            namespace.moved(from, source, to, newName);
            if (exchange) {
                namespace.moved(to, target, from, name);
            }
            return;
        }
        boolean moves = parent != newParent && (source.isDirectory() || exchange && target.isDirectory());
        List<Need> needs = new ArrayList<>();
        add(needs, parent);
        add(needs, newParent);
        add(needs, source.home());
        if (target != null) {
            add(needs, target.home());
        }
        if (moves) {
            add(needs, Tokens.RENAME_TOKEN);
        }
        node.tokens().require(a, needs.toArray(Need[]::new));
        if (moves) {
            checkAncestry(known, source.isDirectory() ? source.ino() : 0, newParent);
            if (exchange && target.isDirectory()) {
                checkAncestry(known, target.ino(), parent);
            }
        }
        Domain sourceHome = node.tokens().domain(source.home());
        Inode moved = namespace.inode(sourceHome, source.ino());
        Domain targetHome = target == null ? null : node.tokens().domain(target.home());
        Inode replaced = target == null ? null : namespace.inode(targetHome, target.ino());
        if (target != null && !exchange) {
            if (source.isDirectory() && !target.isDirectory()) {
                throw new FsException(Errno.ENOTDIR);
            }
            if (!source.isDirectory() && target.isDirectory()) {
                throw new FsException(Errno.EISDIR);
            }
            if (target.isDirectory() && !node.tokens().reads().isEmpty(targetHome)) {
                throw new FsException(Errno.ENOTEMPTY);
            }
        }
        if (source.isDirectory() && parent != newParent && target == null && toDir.nlink >= Names.LINK_MAX) {
            throw new FsException(Errno.EMLINK);
        }
        boolean whiteout = (flags & Operations.RENAME_WHITEOUT) != 0;
        if (whiteout) {
            node.space().requireStore();
            node.inodeNumbers().require();
        }
        if (replaced == null) {
            namespace.room(Namespace.ROOM);
        } else {
            namespace.roomWithout(replaced);
        }
        long nowNs = node.realtimeNs();
        long batch = node.pipeline().openNumber();
        Inode left = whiteout ? namespace.newInode(call, from, WHITEOUT_MODE, 0, x -> {}) : null;
        if (exchange) {
            node.journal().replace(from, source, new Dirent(source.name(), source.hash(), target.ino(), target.type(), target.home(), born(source, batch)));
            node.journal().replace(to, target, new Dirent(target.name(), target.hash(), source.ino(), source.type(), source.home(), born(target, batch)));
            reparent(replaced, toDir, fromDir, from.id);
            reparent(moved, fromDir, toDir, to.id);
            replaced.ctimeNs = nowNs;
            node.journal().changed(targetHome, replaced, true);
        } else {
            if (target != null) {
                node.journal().replace(to, target, new Dirent(target.name(), target.hash(), source.ino(), source.type(), source.home(), born(target, batch)));
                if (target.isDirectory()) {
                    namespace.removeDirectory(targetHome, nowNs);
                    toDir.nlink--;
                } else {
                    namespace.dropLink(targetHome, replaced, nowNs);
                }
                leave(from, source, left, batch);
            } else {
                Dirent e = namespace.newEntry(to, newName, source.ino(), source.type(), source.home());
                leave(from, source, left, batch);
                node.journal().add(to, e);
            }
            reparent(moved, fromDir, toDir, to.id);
        }
        namespace.moved(from, source, to, newName);
        if (exchange) {
            namespace.moved(to, target, from, name);
        }
        moved.ctimeNs = nowNs;
        node.journal().changed(sourceHome, moved, true);
        namespace.touchDirectory(from, fromDir, nowNs);
        if (to != from) {
            namespace.touchDirectory(to, toDir, nowNs);
        }
        if (moves) {
            ownMoves++;
        }
    }

    /** The old name goes, or, with RENAME_WHITEOUT, is another inode's now: a device 0/0, which hides the name in the layer below of an overlay. */
    private void leave(Domain from, Dirent source, Inode whiteout, long batch) {
        if (whiteout == null) {
            node.journal().remove(from, source);
            return;
        }
        node.journal().replace(from, source, new Dirent(source.name(), source.hash(), whiteout.ino, whiteout.type(), whiteout.home, born(source, batch)));
        node.journal().born(from, whiteout);
    }

    /** Whether the name's key was there before the open batch does not change with what it names. */
    private static long born(Dirent e, long openBatch) {
        return e.bornBatch() == openBatch ? openBatch : 0;
    }

    private static void reparent(Inode moved, Inode fromDir, Inode toDir, long newParent) {
        if (moved.isDirectory() && fromDir != toDir) {
            fromDir.nlink--;
            toDir.nlink++;
            moved.parent = newParent;
        }
    }

    private static void add(List<Need> needs, long resource) {
        Need n = Need.exclusive(resource);
        if (!needs.contains(n)) {
            needs.add(n);
        }
    }

    /** EINVAL if {@code moving} is {@code newParent} or above it. The rename token is held: nobody else moves directories. */
    private void checkAncestry(Ancestry[] known, long moving, long newParent) throws FsException {
        Domain renameToken = node.tokens().domain(Tokens.RENAME_TOKEN);
        if (known[0].renameTokenRevision != renameToken.lockRevision || known[0].ownMoves != ownMoves) {
            known[0] = new Ancestry(renameToken.lockRevision, ownMoves, new HashMap<>());
        }
        long at = newParent;
        for (int depth = 0; at != Vnodes.ROOT && at != 0; depth++) {
            if (at == moving) {
                throw new FsException(Errno.EINVAL);
            }
            if (depth > 100_000) {
                throw new FsException(Errno.ELOOP);
            }
            Domain d = node.tokens().known(at);
            if (d != null && d.held != Mode.NONE && d.loaded && d.directory() != null) {
                at = d.directory().parent;
            } else {
                Long parent = known[0].parents.get(at);
                if (parent == null) {
                    throw new NeedsParent(at);
                }
                at = parent;
            }
        }
    }
}
