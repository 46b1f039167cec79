package io.etcfs.core.check;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.NameHash;
import io.etcfs.core.record.proto.Dirent;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Names: {@code dirent:}. They come before the inodes, so that what they name is looked at in the end; the names are kept to say which. */
final class NameCheck {
    private static final int NAME_MAX = 255;

    private final Keys keys;
    private final NameHash nameHash;
    private final Findings findings;
    private final LongList dirs = new LongList();
    private final LongList hashes = new LongList();
    private final LongList inos = new LongList();
    private final LongList homes = new LongList();
    private final IntList types = new IntList();
    /** Where each name ends in {@link #names}. */
    private final IntList ends = new IntList();
    private byte[] names = new byte[64];

    NameCheck(Keys keys, NameHash nameHash, Findings findings) {
        this.keys = keys;
        this.nameHash = nameHash;
        this.findings = findings;
    }

    void dirent(KeyValue kv) throws InvalidProtocolBufferException {
        Keys.DirentKey key = keys.parseDirent(kv.key());
        Dirent value = Dirent.parseFrom(kv.value());
        String text = new String(key.name(), StandardCharsets.UTF_8);
        if (key.name().length > NAME_MAX || text.equals(".") || text.equals("..")) {
            findings.add(Kind.DIRENT_NAME, "a name of " + key.name().length + " bytes, '" + text + "', can't be an entry's", kv.key());
        }
        long hash = nameHash.hash63(key.name());
        if (key.hash() != hash) {
            findings.add(Kind.DIRENT_HASH, "the key says " + hex(key.hash()) + ", the hash of the name is " + hex(hash), kv.key());
        }
        int last = dirs.size() - 1;
        if (last >= 0 && dirs.get(last) == key.dir() && hashes.get(last) == key.hash()) {
            findings.add(Kind.DIRENT_HASH_TWICE, "two names of directory " + key.dir() + " have the hash " + hex(hash), kv.key(), key(last));
        }
        dirs.add(key.dir());
        hashes.add(key.hash());
        inos.add(value.getInode());
        homes.add(value.getHome());
        types.add(value.getTypeValue());
        keep(key.name());
    }

    private static String hex(long hash) {
        return Long.toHexString(hash);
    }

    private void keep(byte[] name) {
        int start = start(ends.size());
        int end = Math.addExact(start, name.length);
        if (end > names.length) {
            names = Arrays.copyOf(names, Math.max(end, (int) Math.min(Integer.MAX_VALUE - 8L, names.length * 2L)));
        }
        System.arraycopy(name, 0, names, start, name.length);
        ends.add(end);
    }

    private int start(int i) {
        return i == 0 ? 0 : ends.get(i - 1);
    }

    int count() {
        return dirs.size();
    }

    Key key(int i) {
        return keys.dirent(dirs.get(i), hashes.get(i), Arrays.copyOfRange(names, start(i), ends.get(i)));
    }

    /** All inodes are known: tells each who names it. */
    void finish(InodeCheck inodes) {
        for (int i = 0; i < dirs.size(); i++) {
            int dir = inodes.place(dirs.get(i));
            if (dir < 0 || !inodes.isDirectory(dir)) {
                findings.add(Kind.DIRENT_WITHOUT_DIRECTORY, "there is no directory " + dirs.get(i), key(i));
                dir = -1;
            }
            int inode = inodes.place(homes.get(i), inos.get(i));
            if (inode < 0) {
                int elsewhere = inodes.place(inos.get(i));
                findings.add(Kind.DIRENT_WITHOUT_INODE, "inode " + inos.get(i) + " is not in home " + homes.get(i) + (elsewhere < 0 ? ", nor elsewhere" : ", but in home " + inodes.home(elsewhere)), key(i));
                inode = elsewhere;
            } else if (types.get(i) != inodes.type(inode)) {
                findings.add(Kind.DIRENT_TYPE, "the name is of type " + types.get(i) + ", inode " + inos.get(i) + " of " + inodes.type(inode), key(i), inodes.key(inode));
            }
            if (inode >= 0) {
                inodes.named(inode, dir, i);
            }
        }
    }
}
