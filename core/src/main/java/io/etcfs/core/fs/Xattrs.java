package io.etcfs.core.fs;

import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.domain.Vnode;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.token.Attempt;
import io.etcfs.core.token.Need;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * Extended attributes, POSIX ACLs ({@link Acl}) among them. Small values live in the inode, large ones in records of their own that are read when they are asked
 * for; ACLs always in the inode, as an operation on names or modes needs them at hand.
 */
final class Xattrs {
    private static final int XATTR_INLINE = 2048;
    private static final int XATTR_INLINE_TOTAL = 16_384;
    private static final int XATTR_VALUE_MAX = 65_536;
    private static final int XATTR_TOTAL_MAX = 524_288;
    private static final byte[] TRUSTED = "trusted.".getBytes(StandardCharsets.US_ASCII);
    private static final ByteBuffer ACCESS_KEY = ByteBuffer.wrap(Acl.ACCESS);
    private static final ByteBuffer CAPABILITIES_KEY = ByteBuffer.wrap("security.capability".getBytes(StandardCharsets.US_ASCII));
    private static final ByteBuffer DEFAULT_KEY = ByteBuffer.wrap(Acl.DEFAULT);
    private static final List<byte[]> XATTR_NAMESPACES = List.of("user.".getBytes(StandardCharsets.US_ASCII), TRUSTED, "security.".getBytes(StandardCharsets.US_ASCII));
    private static final long REQUEST_NS = 5_000_000_000L;
    private static final int LARGE_TRIES = 20;

    private final Node node;
    private final Namespace namespace;

    Xattrs(Node node, Namespace namespace) {
        this.node = node;
        this.namespace = namespace;
    }

    void setxattr(Call call, long ino, byte[] name, byte[] value, int flags) throws FsException {
        checkXattrName(name);
        if (name.length > Names.NAME_MAX) {
            throw new FsException(Errno.ERANGE);
        }
        if (value.length > XATTR_VALUE_MAX) {
            throw new FsException(Errno.E2BIG);
        }
        if (isAcl(name)) {
            setAcl(call, ino, name, value, flags);
            return;
        }
        node.waiting().run(call, a -> {
            Vnode v = node.vnodes().require(ino);
            requireName(v);
            Domain d = namespace.requireAttributes(a, v);
            Inode i = namespace.inode(d, ino);
            ByteBuffer key = ByteBuffer.wrap(name.clone());
            boolean there = i.xattrs().containsKey(key);
            if (there && (flags & Operations.SET_XATTR_CREATE) != 0) {
                throw new FsException(Errno.EEXIST);
            }
            if (!there && (flags & Operations.SET_XATTR_REPLACE) != 0) {
                throw new FsException(Errno.ENODATA);
            }
            node.space().requireStore();
            namespace.room(Namespace.ROOM);
            boolean wasLarge = there && i.xattrs().get(key) == null;
            long inline = 0;
            long large = 0;
            for (Map.Entry<ByteBuffer, byte[]> x : i.xattrs().entrySet()) {
                if (!x.getKey().equals(key)) {
                    inline += x.getKey().capacity() + (x.getValue() == null ? 0 : x.getValue().length);
                    large += x.getValue() == null ? XATTR_VALUE_MAX : 0;
                }
            }
            // However full it is: a value that is there can be replaced by one that is no longer.
            boolean shrinks = there && i.xattrs().get(key) != null && value.length <= i.xattrs().get(key).length;
            boolean small = shrinks || value.length <= XATTR_INLINE && inline + name.length + value.length <= XATTR_INLINE_TOTAL;
            if (!shrinks && inline + name.length > 4L * XATTR_INLINE_TOTAL || !small && large + XATTR_VALUE_MAX > XATTR_TOTAL_MAX) {
                throw new FsException(Errno.ENOSPC);
            }
            i.largeXattrsForChange().remove(key);
            if (small) {
                i.xattrsForChange().put(key, value.clone());
                if (wasLarge) {
                    node.pipeline().delete(node.keys().xattr(ino, name), true);
                }
            } else {
                byte[] copy = value.clone();
                i.xattrsForChange().put(key, null);
                i.largeXattrsForChange().put(key, copy);
                node.pipeline().put(node.keys().xattr(ino, name), () -> copy, wasLarge, copy.length);
            }
            i.ctimeNs = node.realtimeNs();
            node.journal().changed(d, i, true);
            return null;
        });
    }

    /** Without the flags of setxattr(2). Removing one is {@link #removexattr}, which leaves the mode alone, and there need not be one. */
    private void setAcl(Call call, long ino, byte[] name, byte[] value, int flags) throws FsException {
        if (value.length > Acl.MAX_BYTES) {
            throw new FsException(Errno.E2BIG);
        }
        Acl acl = Acl.of(value);
        boolean access = Arrays.equals(name, Acl.ACCESS);
        if (access && !call.mayWait()) {
            throw MustWait.INSTANCE;
        }
        node.waiting().run(call, a -> {
            Vnode v = node.vnodes().require(ino);
            requireName(v);
            Domain d = namespace.requireAttributes(a, v);
            Inode i = namespace.inode(d, ino);
            if (i.isSymlink()) {
                throw new FsException(Errno.EOPNOTSUPP);
            }
            if (!access && !i.isDirectory()) {
                throw new FsException(Errno.EACCES);
            }
            node.space().requireStore();
            namespace.room(Namespace.ROOM);
            if (access) {
                i.mode = i.mode & ~0777 | acl.permissions();
                if ((flags & Operations.SET_XATTR_KILL_SET_GID) != 0) {
                    i.mode &= ~Inode.SET_GID;
                }
            }
            if (access && acl.isMode()) {
                i.xattrsForChange().remove(ACCESS_KEY);
            } else {
                i.xattrsForChange().put(access ? ACCESS_KEY : DEFAULT_KEY, acl.encode());
            }
            i.ctimeNs = node.realtimeNs();
            node.journal().changed(d, i, true);
            return null;
        });
        if (access) {
            // It changed the mode, too.
            node.view().dropAttributesBriefly(ino);
        }
    }

    private static boolean isAcl(byte[] name) {
        return Arrays.equals(name, Acl.ACCESS) || Arrays.equals(name, Acl.DEFAULT);
    }

    static boolean hasAccessAcl(Inode i) {
        return i.xattrs().containsKey(ACCESS_KEY);
    }

    /** Whoever runs it gets more than it has: set-user-id, set-group-id, capabilities. */
    static boolean hasPrivileges(Inode i) {
        return (i.mode & (Inode.SET_UID | Inode.SET_GID)) != 0 || i.xattrs().containsKey(CAPABILITIES_KEY);
    }

    /** The mode was set: the access ACL follows. */
    static void modeChanged(Inode i) throws FsException {
        byte[] value = i.xattrs().get(ACCESS_KEY);
        if (value != null) {
            i.xattrsForChange().put(ACCESS_KEY, Acl.of(value).withPermissions(i.mode).encode());
        }
    }

    /** A new entry of the directory, its mode as it was asked for: what it gets from the default ACL, or from the umask where there is none. */
    static void inherit(Inode dir, Inode made, int umask) throws FsException {
        byte[] value = dir.xattrs().get(DEFAULT_KEY);
        if (value == null || made.isSymlink()) {
            made.mode &= ~(umask & 0777);
            return;
        }
        Acl.Born born = Acl.of(value).born(made.mode);
        made.mode = made.mode & ~0777 | born.permissions();
        if (born.access() != null) {
            made.xattrsForChange().put(ACCESS_KEY, born.access().encode());
        }
        if (made.isDirectory()) {
            made.xattrsForChange().put(DEFAULT_KEY, value);
        }
    }

    /** The namespaces that a local filesystem has; of system only ACLs. The kernel leaves the check to us. */
    private static void checkXattrName(byte[] name) throws FsException {
        if (isAcl(name)) {
            return;
        }
        for (byte[] namespace : XATTR_NAMESPACES) {
            if (startsWith(name, namespace)) {
                if (name.length == namespace.length) {
                    throw new FsException(Errno.EINVAL);
                }
                return;
            }
        }
        throw new FsException(Errno.EOPNOTSUPP);
    }

    byte[] getxattr(Call call, long ino, byte[] name) throws FsException {
        checkXattrName(name);
        ByteBuffer key = ByteBuffer.wrap(name);
        boolean acl = isAcl(name);
        byte[] present = node.waiting().run(call, a -> present(acl ? forAcl(call, a, ino) : forXattrs(a, ino), key));
        if (present != null) {
            return present;
        }
        if (!call.mayWait()) {
            throw MustWait.INSTANCE;
        }
        for (int tries = 0; tries < LARGE_TRIES; tries++) {
            KeyValue record = node.waiting().ask(call, () -> node.store().range(node.keys().xattr(ino, name), null, 0, false, 0, REQUEST_NS).only());
            byte[] value = node.waiting().run(call, a -> {
                byte[] now = present(forXattrs(a, ino), key);
                return now != null || record == null ? now : record.value();
            });
            if (value != null) {
                return value;
            }
            // It was on its way from the inode to a record of its own, or back.
        }
        System.getLogger(Xattrs.class.getName()).log(System.Logger.Level.ERROR, "inode {0} has an extended attribute without a value", Long.toString(ino));
        throw new FsException(Errno.EIO);
    }

    /** The value; null: it is in a record of its own. */
    private static byte[] present(Inode i, ByteBuffer key) throws FsException {
        if (i == null || !i.xattrs().containsKey(key)) {
            throw new FsException(Errno.ENODATA);
        }
        byte[] value = i.xattrs().get(key);
        return value != null ? value : i.largeXattrs().get(key);
    }

    /** Null for a directory that was removed and that the kernel knows still: it has none. */
    private Inode forXattrs(Attempt a, long ino) throws FsException {
        Vnode v = node.vnodes().require(ino);
        if (namespace.removedDirectory(v) != null) {
            return null;
        }
        Domain d = node.tokens().requireForData(v.home, Mode.SHARED);
        return namespace.inode(d, ino);
    }

    /** The kernel remembers what it is answered, also that there is none: not to be answered once that has been dropped. */
    private Inode forAcl(Call call, Attempt a, long ino) throws FsException {
        Vnode v = node.vnodes().require(ino);
        if (namespace.removedDirectory(v) != null) {
            return null;
        }
        node.tokens().require(a, Need.shared(v.home));
        Domain d = node.tokens().domain(v.home);
        Inode i = namespace.inode(d, ino);
        node.view().aclAnswered(call, d, v);
        return i;
    }

    /** A directory that was removed takes none any more: nobody would see it. */
    private void requireName(Vnode v) throws FsException {
        if (namespace.removedDirectory(v) != null) {
            throw new FsException(Errno.ENOENT);
        }
    }

    private static boolean startsWith(byte[] name, byte[] prefix) {
        return name.length >= prefix.length && Arrays.equals(name, 0, prefix.length, prefix, 0, prefix.length);
    }

    List<byte[]> listxattr(Call call, long ino) throws FsException {
        return node.waiting().run(call, a -> {
            List<byte[]> names = new ArrayList<>();
            Inode i = forXattrs(a, ino);
            if (i == null) {
                return names;
            }
            for (ByteBuffer n : i.xattrs().keySet()) {
                // The kernel refuses others these names, but passes the list through. Capabilities can't be seen here.
                if (call.uid() == 0 || !startsWith(n.array(), TRUSTED)) {
                    names.add(n.array());
                }
            }
            return names;
        });
    }

    void removexattr(Call call, long ino, byte[] name) throws FsException {
        checkXattrName(name);
        node.waiting().run(call, a -> {
            Vnode v = node.vnodes().require(ino);
            requireName(v);
            Domain d = namespace.requireAttributes(a, v);
            Inode i = namespace.inode(d, ino);
            ByteBuffer key = ByteBuffer.wrap(name);
            if (!i.xattrs().containsKey(key)) {
                if (isAcl(name)) {
                    return null;
                }
                throw new FsException(Errno.ENODATA);
            }
            namespace.room(Namespace.ROOM);
            if (i.xattrsForChange().remove(key) == null) {
                i.largeXattrsForChange().remove(key);
                node.pipeline().delete(node.keys().xattr(ino, name), true);
            }
            i.ctimeNs = node.realtimeNs();
            node.journal().changed(d, i, true);
            return null;
        });
    }
}
