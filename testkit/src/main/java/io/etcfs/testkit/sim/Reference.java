package io.etcfs.testkit.sim;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.record.NameHash;
import io.etcfs.testkit.cluster.TestCluster;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;

/**
 * What a filesystem is, as a value: a state, and for each operation with its result whether it could have been carried out there and what the state is then.
 * Inodes go by the numbers that the real one gave them.
 */
final class Reference {
    /** Files of programs are shorter. */
    private static final int MOST_BYTES = 64 << 10;
    /** In whose order names are listed: that of {@link TestCluster#superblock}. */
    private static final NameHash HASH = new NameHash(TestCluster.NAME_HASH_KEY);

    /** An inode. Not changed once it is in a state. */
    private static final class Node {
        private static final BitSet NONE = new BitSet();

        boolean directory;
        int nlink;
        /** It never had a name and may be given one. */
        boolean linkable;
        int mode;
        /** Null: none. */
        SimAcl access;
        SimAcl inherited;
        Map<String, Long> names = Map.of();
        byte[] bytes = {};
        /** Of these bytes it is settled what lost writes have left: they stay what they were seen to be. Not changed. */
        BitSet settled = NONE;

        Node copy() {
            Node n = new Node();
            n.directory = directory;
            n.nlink = nlink;
            n.linkable = linkable;
            n.mode = mode;
            n.access = access;
            n.inherited = inherited;
            n.names = names;
            n.bytes = bytes;
            n.settled = settled;
            return n;
        }

        Node linked(int by) {
            Node n = copy();
            n.nlink += by;
            n.linkable = false;
            return n;
        }

        Node with(String name, Long ino) {
            Node n = copy();
            n.names = new TreeMap<>(names);
            if (ino == null) {
                n.names.remove(name);
            } else {
                n.names.put(name, ino);
            }
            return n;
        }

        /** What it is born with, as it was asked for with {@link Program#modeOf} and the umask of programs. */
        void bornIn(Node dir, Op op) {
            int asked = Program.modeOf(op.kind);
            if (dir.inherited == null) {
                mode = asked & ~Program.UMASK;
                return;
            }
            SimAcl own = dir.inherited.inherited(asked);
            mode = own.mode();
            access = own.isMode() ? null : own;
            inherited = directory ? dir.inherited : null;
        }

        Node chmod(int to) {
            Node n = copy();
            n.mode = to;
            n.access = access == null ? null : access.changed(to);
            return n;
        }

        /** Removing one leaves the mode. */
        Node withAccess(SimAcl acl) {
            Node n = copy();
            n.mode = acl == null ? mode : acl.mode();
            n.access = acl == null || acl.isMode() ? null : acl;
            return n;
        }

        Node withInherited(SimAcl acl) {
            Node n = copy();
            n.inherited = acl;
            return n;
        }

        Node sized(int size) {
            Node n = copy();
            n.bytes = Arrays.copyOf(bytes, size);
            return n;
        }

        Node written(int offset, byte[] data) {
            Node n = sized(Math.max(bytes.length, offset + data.length));
            System.arraycopy(data, 0, n.bytes, offset, data.length);
            return n;
        }

        @Override
        public int hashCode() {
            return ((nlink * 31 + mode) * 31 + names.hashCode()) * 31 + Arrays.hashCode(bytes);
        }

        @Override
        public boolean equals(Object o) {
            return o instanceof Node n && n.directory == directory && n.nlink == nlink && n.linkable == linkable && n.mode == mode && Objects.equals(n.access, access) && Objects.equals(n.inherited, inherited) && n.names.equals(names) && Arrays.equals(n.bytes, bytes) && n.settled.equals(settled);
        }
    }

    /** With those that have no name any more: what has them open, or only remembers them, may go on with them or be refused. */
    private final Map<Long, Node> nodes;
    /** Bytes that lost writes (and zeros that lost holes and truncations) may have left in place: each may be read where it is, or not. */
    private final List<Op> strays;

    private Map<String, Long> listed(Op op) {
        if (!livingDirectory(op.ino)) {
            return Map.of();
        }
        Map<String, Long> names = new TreeMap<>(nodes.get(op.ino).names);
        names.keySet().removeIf(n -> {
            long hash = HASH.hash63(n.getBytes(StandardCharsets.UTF_8));
            return hash <= op.offset || hash > op.listedTo;
        });
        return names;
    }

    private Reference(Map<Long, Node> nodes, List<Op> strays) {
        this.nodes = nodes;
        this.strays = strays;
    }

    /** The empty filesystem. */
    static Reference empty() {
        Node root = new Node();
        root.directory = true;
        root.nlink = 2;
        root.mode = 0755;
        return new Reference(Map.of(1L, root), List.of());
    }

    /** The same, where those may have left something, too. */
    Reference withStrays(List<Op> lost) {
        List<Op> all = new ArrayList<>(strays);
        all.addAll(lost);
        return new Reference(nodes, all);
    }

    /** What has a name: all else goes once nobody has it open. */
    private Reference named() {
        Map<Long, Node> all = new HashMap<>();
        nodes.forEach((ino, n) -> {
            if (n.nlink > 0) {
                all.put(ino, n);
            }
        });
        return new Reference(all, List.of());
    }

    /** Builds a state from what is stored. */
    static final class Builder {
        private final Map<Long, Node> nodes = new HashMap<>();

        void add(long ino, boolean directory, int nlink, byte[] bytes) {
            add(ino, directory, nlink, directory ? 0755 : 0644, null, null, bytes);
        }

        void add(long ino, boolean directory, int nlink, int mode, SimAcl access, SimAcl inherited, byte[] bytes) {
            Node n = new Node();
            n.directory = directory;
            n.nlink = nlink;
            n.mode = mode;
            n.access = access;
            n.inherited = inherited;
            n.bytes = bytes;
            if (nlink > 0) {
                nodes.put(ino, n);
            }
        }

        void name(long dir, String name, long ino) {
            // A name in a directory that is not there is for the checker of records to find.
            nodes.computeIfPresent(dir, (d, n) -> n.with(name, ino));
        }

        boolean has(long ino) {
            return nodes.containsKey(ino);
        }

        Reference build() {
            return new Reference(nodes, List.of());
        }
    }

    private Reference set(Object... inosAndNodes) {
        Map<Long, Node> all = new HashMap<>(nodes);
        for (int i = 0; i < inosAndNodes.length; i += 2) {
            all.put((Long) inosAndNodes[i], (Node) inosAndNodes[i + 1]);
        }
        return new Reference(all, strays);
    }

    private boolean livingDirectory(long ino) {
        Node n = nodes.get(ino);
        return n != null && n.directory && n.nlink > 0;
    }

    /** The state after the operation had the result that it had, or null: it can't have, here. */
    Reference after(Op op) {
        if (op.unknown()) {
            Reference done = effect(op);
            return done == null ? this : done;
        }
        if (op.changedHereMeanwhile) {
            return this;
        }
        return switch (op.kind) {
            case LOOKUP -> op.refused(Errno.ENOENT, Errno.ESTALE) ? livingDirectory(op.ino) && name(op.ino, op.name) != 0 ? null : this
                    : op.error == null && name(op.ino, op.name) == op.resultIno ? this : null;
            case READDIR -> op.refused(Errno.ENOENT, Errno.ESTALE) ? livingDirectory(op.ino) ? null : this
                    : op.error == null && listed(op).equals(op.listing) ? this : null;
            case STAT -> stat(op);
            case ACCESS -> {
                Node n = nodes.get(op.ino);
                if (op.error != null) {
                    yield op.refused(Errno.ENOENT, Errno.ESTALE) && (n == null || n.nlink == 0) ? this : null;
                }
                // A removed directory has no attributes any more, and may be remembered with them.
                yield n != null && (Objects.equals(n.access, op.acl) || op.acl == null && n.directory && n.nlink == 0) ? this : null;
            }
            case TMPFILE -> op.error == null ? effect(op) : op.refused(Errno.ENOENT, Errno.ESTALE) && !livingDirectory(op.ino) ? this : null;
            case CHMOD, SET_ACL, SET_DEFAULT_ACL -> {
                Node n = nodes.get(op.ino);
                if (op.error == null) {
                    yield n != null ? effect(op) : null;
                }
                yield op.refused(Errno.ENOENT, Errno.ESTALE) && (n == null || n.nlink == 0) ? this : null;
            }
            case READ -> read(op);
            case OPEN -> {
                Node n = nodes.get(op.ino);
                if (op.error != null) {
                    // An inode without a name is not opened any more, whoever has it open.
                    yield op.refused(Errno.ENOENT, Errno.ESTALE) && (n == null || n.nlink == 0) ? this : null;
                }
                yield n != null && !n.directory ? this : null;
            }
            case CREATE, MKDIR -> {
                if (op.error == null) {
                    yield made(op, op.resultIno);
                }
                yield op.refused(Errno.EEXIST) ? name(op.ino, op.name) != 0 ? this : null : op.refused(Errno.ENOENT, Errno.ESTALE) && !livingDirectory(op.ino) ? this : null;
            }
            case LINK -> {
                Node n = nodes.get(op.ino);
                if (op.error == null) {
                    yield n != null && (n.nlink > 0 || n.linkable) && livingDirectory(op.ino2) && name(op.ino2, op.name2) == 0 ? effect(op) : null;
                }
                yield op.refused(Errno.EEXIST) ? name(op.ino2, op.name2) != 0 ? this : null
                        : op.refused(Errno.ENOENT, Errno.ESTALE) && (n == null || n.nlink == 0 && !n.linkable || !livingDirectory(op.ino2)) ? this : null;
            }
            case UNLINK -> {
                Node n = nodes.get(name(op.ino, op.name));
                if (op.error == null) {
                    yield n != null && !n.directory ? effect(op) : null;
                }
                yield op.refused(Errno.ENOENT, Errno.ESTALE) ? n == null ? this : null : op.refused(Errno.EISDIR) && n != null && n.directory ? this : null;
            }
            case RMDIR -> {
                Node n = nodes.get(name(op.ino, op.name));
                if (op.error == null) {
                    yield n != null && n.directory && n.names.isEmpty() ? effect(op) : null;
                }
                yield op.refused(Errno.ENOENT, Errno.ESTALE) ? n == null ? this : null : op.refused(Errno.ENOTDIR) ? n != null && !n.directory ? this : null
                        : op.refused(Errno.ENOTEMPTY) && n != null && n.directory && !n.names.isEmpty() ? this : null;
            }
            case RENAME -> rename(op);
            case WRITE, APPEND, PUNCH, TRUNCATE -> {
                Node n = nodes.get(op.ino);
                if (op.error == null) {
                    yield n != null && !n.directory ? effect(op) : null;
                }
                // Whether there may be no room is the world's to say.
                yield op.refused(Errno.ENOSPC) || op.refused(Errno.ENOENT, Errno.ESTALE) && (n == null || n.nlink == 0) ? this : null;
            }
            case FSYNC, CLOSE -> op.error == null ? this : null;
        };
    }

    private long name(long dir, String name) {
        Node d = nodes.get(dir);
        return d == null ? 0 : d.names.getOrDefault(name, 0L);
    }

    private Reference stat(Op op) {
        Node n = nodes.get(op.ino);
        if (op.error != null) {
            return op.refused(Errno.ENOENT, Errno.ESTALE) && (n == null || n.nlink == 0) ? this : null;
        }
        if (n == null || n.nlink == 0 && (n.directory || op.resultNlink != 0)) {
            // A removed directory is answered from what was known last.
            return op.resultNlink == 0 ? this : null;
        }
        return op.resultNlink == n.nlink && op.mode == n.mode && (n.directory || op.resultSize == n.bytes.length) ? this : null;
    }

    private Reference read(Op op) {
        Node n = nodes.get(op.ino);
        if (op.error != null) {
            return op.refused(Errno.ENOENT, Errno.ESTALE) && (n == null || n.nlink == 0) ? this : null;
        }
        if (n == null) {
            return null;
        }
        int there = (int) Math.max(0, Math.min(op.length, n.bytes.length - op.offset));
        // The kernel looks at size and pages at two times: while somebody changes the size, the end may be that of either.
        if (op.data.length != there && !op.sizeChanged && !op.byOldSize) {
            return null;
        }
        for (int i = 0; i < op.data.length; i++) {
            int at = (int) op.offset + i;
            byte expected = i < there ? n.bytes[at] : 0;
            if (op.data[i] != expected && !(!n.settled.get(at) && stray(op.ino, at, op.data[i])) && !(op.data[i] == 0 && (op.cutBefore || op.punchedMeanwhile(at)))
                    && !op.writtenHereMeanwhile(at, op.data[i])) {
                return null;
            }
        }
        return settledBy(op, n, there);
    }

    /** The state in which what the read saw is what stays, where nothing can change it any more. */
    private Reference settledBy(Op read, Node n, int there) {
        if (strays.isEmpty()) {
            return this;
        }
        Node seen = null;
        for (int i = 0; i < Math.min(there, read.data.length); i++) {
            int at = (int) read.offset + i;
            if (n.settled.get(at) || read.cutBefore || read.punchedMeanwhile(at) || read.writtenHereMeanwhile(at, read.data[i]) || !settles(read, read.ino, at)) {
                continue;
            }
            if (seen == null) {
                seen = n.copy();
                seen.bytes = n.bytes.clone();
                seen.settled = (BitSet) n.settled.clone();
            }
            seen.bytes[at] = read.data[i];
            seen.settled.set(at);
        }
        return seen == null ? this : set(read.ino, seen);
    }

    /** After a change of {@code [from, to)} by the operation: nothing else can come up there later. */
    private Node settled(Op change, Node after, int from, int to) {
        if (strays.isEmpty()) {
            return after;
        }
        BitSet settled = (BitSet) after.settled.clone();
        for (int at = from; at < to; at++) {
            if (settles(change, change.ino, at)) {
                settled.set(at);
            }
        }
        after.settled = settled;
        return after;
    }

    /** Some lost write may have left something there, and none can any more that has not by the time the operation is called. */
    private boolean settles(Op op, long ino, long at) {
        boolean any = false;
        for (Op w : strays) {
            if (w.ino == ino && (w.kind == Op.Kind.APPEND || w.kind == Op.Kind.TRUNCATE || at >= w.offset && at < w.end())) {
                if (w.settledFrom > op.called) {
                    return false;
                }
                any = true;
            }
        }
        return any;
    }

    private boolean stray(long ino, long at, byte value) {
        for (Op w : strays) {
            if (w.ino == ino && w.kind == Op.Kind.PUNCH) {
                if (value == 0 && at >= w.offset && at < w.offset + w.length) {
                    return true;
                }
            } else if (w.ino == ino && w.kind == Op.Kind.TRUNCATE) {
                // Not behind that block: the others are freed, and used again only when that is published.
                if (value == 0 && at >= w.length && at / BlockDevice.BLOCK_BYTES == w.length / BlockDevice.BLOCK_BYTES) {
                    return true;
                }
            } else if (w.ino == ino) {
                long from = w.kind == Op.Kind.APPEND ? Long.MIN_VALUE : w.offset;
                if (w.kind == Op.Kind.APPEND && indexOf(w.data, value) || at >= from && at < from + w.data.length && w.data[(int) (at - from)] == value) {
                    return true;
                }
            }
        }
        return false;
    }

    private static boolean indexOf(byte[] data, byte value) {
        for (byte b : data) {
            if (b == value) {
                return true;
            }
        }
        return false;
    }

    private Reference rename(Op op) {
        Node n = nodes.get(name(op.ino, op.name));
        Node target = nodes.get(name(op.ino2, op.name2));
        if (op.error != null) {
            boolean possible = switch (op.error) {
                case ENOENT, ESTALE -> n == null || !livingDirectory(op.ino2);
                case ENOTDIR -> target != null && !target.directory;
                case EISDIR -> target != null && target.directory;
                case ENOTEMPTY -> target != null && !target.names.isEmpty() || n != null && isBelow(op.ino, name(op.ino2, op.name2));
                case EINVAL -> n != null && n.directory && isBelow(op.ino2, name(op.ino, op.name));
                default -> false;
            };
            return possible ? this : null;
        }
        if (n == null || !livingDirectory(op.ino2) || target != null && (target.directory != n.directory || target != n && !target.names.isEmpty())
                || n.directory && isBelow(op.ino2, name(op.ino, op.name))) {
            return null;
        }
        return effect(op);
    }

    /** Whether {@code ino} is {@code above}, or in it. */
    private boolean isBelow(long ino, long above) {
        long at = ino;
        for (int depth = 0; depth < 50; depth++) {
            if (at == above) {
                return true;
            }
            long child = at;
            at = nodes.entrySet().stream().filter(e -> e.getValue().names.containsValue(child) && e.getValue().directory).mapToLong(Map.Entry::getKey).findFirst().orElse(0);
            if (at == 0) {
                return false;
            }
        }
        return false;
    }

    /** The change, if the operation is possible here; null if not, or if it changes nothing that is known. */
    private Reference effect(Op op) {
        Node n = nodes.get(op.ino);
        switch (op.kind) {
            case CREATE, MKDIR -> {
                return made(op, op.resultIno);
            }
            case LINK -> {
                if (n == null || n.nlink == 0 && !n.linkable || !livingDirectory(op.ino2) || name(op.ino2, op.name2) != 0) {
                    return null;
                }
                return set(op.ino, n.linked(1), op.ino2, nodes.get(op.ino2).with(op.name2, op.ino));
            }
            case UNLINK, RMDIR -> {
                long ino = name(op.ino, op.name);
                Node gone = nodes.get(ino);
                if (gone == null || gone.directory != (op.kind == Op.Kind.RMDIR) || !gone.names.isEmpty()) {
                    return null;
                }
                return set(op.ino, n.with(op.name, null).linked(gone.directory ? -1 : 0), ino, gone.linked(gone.directory ? -2 : -1));
            }
            case RENAME -> {
                return renamed(op);
            }
            case TMPFILE -> {
                if (!livingDirectory(op.ino) || nodes.containsKey(op.resultIno) || op.unknown()) {
                    return null;
                }
                Node made = new Node();
                made.linkable = true;
                made.bornIn(n, op);
                return set(op.resultIno, made);
            }
            case CHMOD -> {
                return n == null ? null : set(op.ino, n.chmod(op.mode));
            }
            case SET_ACL -> {
                return n == null ? null : set(op.ino, n.withAccess(op.acl));
            }
            case SET_DEFAULT_ACL -> {
                return n == null ? null : set(op.ino, n.withInherited(op.acl));
            }
            case WRITE -> {
                return n == null ? null : set(op.ino, settled(op, n.written((int) op.offset, op.data), (int) op.offset, (int) op.offset + op.data.length));
            }
            case APPEND -> {
                return n == null ? null : set(op.ino, settled(op, n.written(n.bytes.length, op.data), n.bytes.length, n.bytes.length + op.data.length));
            }
            case TRUNCATE -> {
                return n == null ? null : set(op.ino, settled(op, n.sized((int) op.length), (int) op.length, (int) Math.max(op.length, MOST_BYTES)));
            }
            case PUNCH -> {
                int to = n == null ? 0 : (int) Math.min(n.bytes.length, op.offset + op.length);
                return n == null ? null : op.offset >= to ? this : set(op.ino, settled(op, n.written((int) op.offset, new byte[to - (int) op.offset]), (int) op.offset, to));
            }
            default -> {
                return this;
            }
        }
    }

    /** The state after CREATE or MKDIR made an inode with that number; null: it can't have. */
    Reference made(Op op, long ino) {
        if (!livingDirectory(op.ino) || name(op.ino, op.name) != 0 || nodes.containsKey(ino)) {
            return null;
        }
        Node made = new Node();
        made.directory = op.kind == Op.Kind.MKDIR;
        made.nlink = made.directory ? 2 : 1;
        made.bornIn(nodes.get(op.ino), op);
        return set(op.ino, nodes.get(op.ino).with(op.name, ino).linked(made.directory ? 1 : 0), ino, made);
    }

    /** One that no inode has, or can have. */
    long unusedNumber() {
        return nodes.keySet().stream().mapToLong(Long::longValue).filter(ino -> ino < 0).min().orElse(0) - 1;
    }

    private Reference renamed(Op op) {
        long ino = name(op.ino, op.name);
        long over = name(op.ino2, op.name2);
        Node moved = nodes.get(ino);
        Node target = nodes.get(over);
        if (moved == null || !livingDirectory(op.ino2) || target != null && (target.directory != moved.directory || ino != over && !target.names.isEmpty())
                || moved.directory && isBelow(op.ino2, ino)) {
            return null;
        }
        if (ino == over) {
            return this;
        }
        Reference r = set(op.ino, nodes.get(op.ino).with(op.name, null).linked(moved.directory ? -1 : 0));
        Node to = r.nodes.get(op.ino2);
        to = to.with(op.name2, ino).linked((moved.directory ? 1 : 0) - (target != null && target.directory ? 1 : 0));
        r = r.set(op.ino2, to);
        return target == null ? r : r.set(over, target.linked(target.directory ? -2 : -1));
    }

    /** Where the same inodes have other bytes, as writes of those; by inode. */
    Map<Long, List<Op>> otherBytes(Reference other) {
        Map<Long, List<Op>> all = new TreeMap<>();
        nodes.forEach((ino, n) -> {
            byte[] b = other.nodes.get(ino).bytes;
            for (int from = 0; from < b.length; ) {
                int to = from;
                while (to < b.length && b[to] != n.bytes[to]) {
                    to++;
                }
                if (to > from) {
                    Op w = new Op(Op.Kind.WRITE, "device.0", ino, null, 0, null, from, 0, Arrays.copyOfRange(b, from, to));
                    // Whoever is shown one or the other has to find the same ever after.
                    w.settledFrom = 0;
                    all.computeIfAbsent(ino, i -> new ArrayList<>()).add(w);
                }
                from = to + 1;
            }
        });
        return all;
    }

    boolean has(long ino) {
        return nodes.containsKey(ino);
    }

    Set<Long> inodes() {
        return nodes.keySet();
    }

    /** Whether what is stored is this, and if not, what is different. Bytes that lost writes may have left count as either. */
    String difference(Reference stored) {
        Reference mine = named();
        if (!mine.nodes.keySet().equals(stored.nodes.keySet())) {
            return "inodes " + new java.util.TreeSet<>(mine.nodes.keySet()) + " expected, stored are " + new java.util.TreeSet<>(stored.nodes.keySet());
        }
        for (Map.Entry<Long, Node> e : mine.nodes.entrySet()) {
            Node a = e.getValue();
            Node b = stored.nodes.get(e.getKey());
            if (a.directory != b.directory || a.nlink != b.nlink || a.mode != b.mode || !Objects.equals(a.access, b.access) || !Objects.equals(a.inherited, b.inherited) || !a.names.equals(b.names) || a.bytes.length != b.bytes.length) {
                return "inode " + e.getKey() + ": " + describe(a) + " expected, stored is " + describe(b);
            }
            for (int i = 0; i < a.bytes.length; i++) {
                if (a.bytes[i] != b.bytes[i] && (a.settled.get(i) || !stray(e.getKey(), i, b.bytes[i]))) {
                    return "inode " + e.getKey() + " at " + i + ": " + a.bytes[i] + " expected, stored is " + b.bytes[i];
                }
            }
        }
        return null;
    }

    private static String describe(Node n) {
        return (n.directory ? "directory " + n.names : n.bytes.length + " bytes") + ", nlink " + n.nlink + ", mode " + Integer.toOctalString(n.mode) + (n.access == null ? "" : ", ACL " + n.access)
                + (n.inherited == null ? "" : ", default ACL " + n.inherited);
    }

    @Override
    public int hashCode() {
        return nodes.hashCode();
    }

    @Override
    public boolean equals(Object o) {
        return o instanceof Reference r && r.nodes.equals(nodes);
    }
}
