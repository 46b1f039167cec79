package io.etcfs.core.check;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Orphan;
import io.etcfs.core.record.proto.Remainder;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What some inodes have beside their record, while they are open, removed or being cut, or with large attributes: {@code open:}, {@code opened:},
 * {@code orphan:}, {@code remainder:}, {@code xattr:}. All of these come after the inodes.
 */
final class StateCheck {
    private final Keys keys;
    private final Findings findings;
    private final InodeCheck inodes;
    private final NodeCheck nodes;
    private final Set<Keys.OpenKey> unpaired = new LinkedHashSet<>();
    private final Map<Long, List<String>> openOn = new HashMap<>();
    private final Map<Long, Long> orphanHomes = new LinkedHashMap<>();
    private final Map<Long, Long> cuts = new HashMap<>();
    /** Attributes that are listed, with the home of the inode that does. */
    private final Map<Keys.XattrKey, Long> listed = new LinkedHashMap<>();

    StateCheck(Keys keys, Findings findings, InodeCheck inodes, NodeCheck nodes) {
        this.keys = keys;
        this.findings = findings;
        this.inodes = inodes;
        this.nodes = nodes;
    }

    /** An inode lists a large attribute. */
    void lists(Keys.InodeKey inode, byte[] name) {
        if (name.length > 0) {
            listed.put(new Keys.XattrKey(inode.ino(), name), inode.home());
        }
    }

    void xattr(KeyValue kv) {
        if (listed.remove(keys.parseXattr(kv.key())) == null) {
            findings.add(Kind.XATTR_UNLISTED, "no inode lists this attribute", kv.key());
        }
    }

    void open(KeyValue kv) {
        Keys.OpenKey key = keys.parseOpen(kv.key());
        unpaired.add(key);
        openOn.computeIfAbsent(key.ino(), ino -> new ArrayList<>(1)).add(key.node());
        if (inodes.place(key.home(), key.ino()) < 0) {
            findings.add(Kind.OPEN_WITHOUT_INODE, "node " + key.node() + " has inode " + key.ino() + " open, which is not in home " + key.home(), kv.key());
        }
    }

    void opened(KeyValue kv) {
        Keys.OpenKey key = keys.parseOpened(kv.key());
        nodes.hasOpen(key.node());
        if (!unpaired.remove(key)) {
            findings.add(Kind.OPEN_UNPAIRED, "there is no open: beside it", kv.key());
        }
    }

    void orphan(KeyValue kv) throws InvalidProtocolBufferException {
        orphanHomes.put(keys.parseOrphan(kv.key()), Orphan.parseFrom(kv.value()).getHome());
    }

    void remainder(KeyValue kv) throws InvalidProtocolBufferException {
        Keys.InodeKey key = keys.parseRemainder(kv.key());
        long block = Remainder.parseFrom(kv.value()).getDeadFrom();
        if (inodes.place(key.home(), key.ino()) < 0) {
            findings.add(Kind.REMAINDER, "inode " + key.ino() + " is not in home " + key.home(), kv.key());
            return;
        }
        Long cut = inodes.deadFrom().get(key.ino());
        if (cut == null || cut != block) {
            findings.add(Kind.REMAINDER, "it says that blocks from " + block + " on are to be freed, the inode " + (cut == null ? "none" : "those from " + cut), kv.key(), keys.inode(key.home(), key.ino()));
        }
        cuts.put(key.ino(), block);
    }

    boolean isOrphan(long ino, long home) {
        Long recorded = orphanHomes.get(ino);
        return recorded != null && recorded == home;
    }

    long orphans() {
        return orphanHomes.size();
    }

    void finish() {
        listed.forEach((attribute, home) -> findings.add(Kind.XATTR_MISSING, "the inode lists it, the value is missing", keys.xattr(attribute.ino(), attribute.name()), keys.inode(home, attribute.ino())));
        for (Keys.OpenKey key : unpaired) {
            findings.add(Kind.OPEN_UNPAIRED, "there is no opened: beside it", keys.open(key.home(), key.ino(), key.node()));
        }
        inodes.deadFrom().forEach((ino, block) -> {
            if (!cuts.containsKey(ino)) {
                Key inode = inodes.key(inodes.place(ino));
                findings.add(Kind.REMAINDER, "blocks from " + block + " on are to be freed, and there is no remainder: that says so", inode);
            }
        });
        orphanHomes.forEach(this::finishOrphan);
    }

    private void finishOrphan(long ino, long home) {
        Key key = keys.orphan(ino);
        int place = inodes.place(home, ino);
        if (place < 0) {
            findings.add(Kind.ORPHAN, "inode " + ino + " is not in home " + home, key);
        } else if (inodes.names(place) > 0 || inodes.nlink(place) != 0) {
            findings.add(Kind.ORPHAN, "inode " + ino + " has " + inodes.names(place) + " names and nlink " + inodes.nlink(place), key, inodes.key(place));
        } else if (!openOn.containsKey(ino)) {
            findings.add(Kind.ORPHAN_UNPINNED, "no node has inode " + ino + " open, so that none will free it", key, inodes.key(place));
        } else if (openOn.get(ino).stream().noneMatch(nodes::hasSession)) {
            findings.add(Kind.ORPHAN_WAITS, "inode " + ino + " is freed when one of " + openOn.get(ino) + " is back", key);
        }
    }
}
