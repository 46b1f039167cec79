package io.etcfs.core.fs;

import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.domain.Vnode;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.token.Attempt;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** Extended attributes. Small values live in the inode, large ones in records of their own that are read when they are asked for. */
final class Xattrs {
    private static final int XATTR_INLINE = 2048;
    private static final int XATTR_INLINE_TOTAL = 16_384;
    private static final int XATTR_VALUE_MAX = 65_536;
    private static final int XATTR_TOTAL_MAX = 524_288;
    private static final byte[] TRUSTED = "trusted.".getBytes(StandardCharsets.US_ASCII);
    private static final List<byte[]> XATTR_NAMESPACES = List.of("user.".getBytes(StandardCharsets.US_ASCII), TRUSTED, "security.".getBytes(StandardCharsets.US_ASCII));
    private static final long REQUEST_NS = 5_000_000_000L;

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
        node.waiting().run(call, a -> {
            Vnode v = node.vnodes().require(ino);
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
            boolean small = value.length <= XATTR_INLINE && inline + name.length + value.length <= XATTR_INLINE_TOTAL;
            if (inline + name.length > 4L * XATTR_INLINE_TOTAL || !small && large + XATTR_VALUE_MAX > XATTR_TOTAL_MAX) {
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

    /** The namespaces that a local filesystem has, apart from system: ACLs come later. The kernel leaves the check to us. */
    private static void checkXattrName(byte[] name) throws FsException {
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
        byte[] present = node.waiting().run(call, a -> {
            Inode i = forXattrs(a, ino);
            if (!i.xattrs().containsKey(key)) {
                throw new FsException(Errno.ENODATA);
            }
            byte[] value = i.xattrs().get(key);
            return value != null ? value : i.largeXattrs().get(key);
        });
        if (present != null) {
            return present;
        }
        if (!call.mayWait()) {
            throw MustWait.INSTANCE;
        }
        byte[] read;
        try {
            KeyValue kv = node.store().range(node.keys().xattr(ino, name), null, 0, false, 0, REQUEST_NS).only();
            if (kv == null) {
                throw new FsException(Errno.ENODATA);
            }
            read = kv.value();
        } catch (StoreUnavailableException e) {
            throw new FsException(Errno.ETIMEDOUT);
        } catch (StoreRejectedException e) {
            throw new FsException(Errno.EIO);
        }
        return node.waiting().run(call, a -> {
            Inode i = forXattrs(a, ino);
            if (!i.xattrs().containsKey(key)) {
                throw new FsException(Errno.ENODATA);
            }
            byte[] changed = i.xattrs().get(key) != null ? i.xattrs().get(key) : i.largeXattrs().get(key);
            return changed != null ? changed : read;
        });
    }

    private Inode forXattrs(Attempt a, long ino) throws FsException {
        Vnode v = node.vnodes().require(ino);
        Domain d = node.tokens().requireForData(v.home, Mode.SHARED);
        return namespace.inode(d, ino);
    }

    private static boolean startsWith(byte[] name, byte[] prefix) {
        return name.length >= prefix.length && Arrays.equals(name, 0, prefix.length, prefix, 0, prefix.length);
    }

    List<byte[]> listxattr(Call call, long ino) throws FsException {
        return node.waiting().run(call, a -> {
            List<byte[]> names = new ArrayList<>();
            for (ByteBuffer n : forXattrs(a, ino).xattrs().keySet()) {
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
            Domain d = namespace.requireAttributes(a, v);
            Inode i = namespace.inode(d, ino);
            ByteBuffer key = ByteBuffer.wrap(name);
            if (!i.xattrs().containsKey(key)) {
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
