package io.etcfs.core.fs;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * A POSIX ACL: who else than owner, group and others may do what. It is stored as the extended attribute in which Linux passes it (linux/posix_acl_xattr.h,
 * version 2): whoever copies attributes copies it. The permission bits of the mode are a part of it: the owner's are its USER_OBJ, those of others its OTHER,
 * those of the group its MASK, or its GROUP_OBJ if it has none. Permissions are checked by the kernel.
 */
record Acl(List<Entry> entries) {
    static final byte[] ACCESS = "system.posix_acl_access".getBytes(StandardCharsets.US_ASCII);
    /** A directory's: what new entries get. */
    static final byte[] DEFAULT = "system.posix_acl_default".getBytes(StandardCharsets.US_ASCII);
    /** Bytes of the attribute. The kernel takes no more through FUSE. */
    static final int MAX_BYTES = 4096;

    private static final int VERSION = 2;
    private static final int HEADER_BYTES = 4;
    private static final int ENTRY_BYTES = 8;
    private static final int NO_ID = -1;

    /** Tags in the order in which they have to come; the number is the kernel's. */
    enum Tag {
        USER_OBJ(0x01), USER(0x02), GROUP_OBJ(0x04), GROUP(0x08), MASK(0x10), OTHER(0x20);

        private final int number;

        Tag(int number) {
            this.number = number;
        }

        boolean named() {
            return this == USER || this == GROUP;
        }

        private static Tag of(int number) throws FsException {
            for (Tag tag : values()) {
                if (tag.number == number) {
                    return tag;
                }
            }
            throw new FsException(Errno.EINVAL);
        }
    }

    /** {@code permissions}: rwx, three bits. {@code id}: of the user or group, for those tags that name one. */
    record Entry(Tag tag, int permissions, int id) {
        Entry and(int mask) {
            return new Entry(tag, permissions & mask, id);
        }

        Entry with(int bits) {
            return new Entry(tag, bits & 7, id);
        }
    }

    /** Of a new entry: its permission bits, and its access ACL, null if the bits say all of it. */
    record Born(int permissions, Acl access) {}

    /** @throws FsException EINVAL: no ACL as Linux has them; EOPNOTSUPP: of another version */
    static Acl of(byte[] value) throws FsException {
        ByteBuffer b = ByteBuffer.wrap(value).order(ByteOrder.LITTLE_ENDIAN);
        if (value.length < HEADER_BYTES || (value.length - HEADER_BYTES) % ENTRY_BYTES != 0) {
            throw new FsException(Errno.EINVAL);
        }
        if (b.getInt() != VERSION) {
            throw new FsException(Errno.EOPNOTSUPP);
        }
        List<Entry> entries = new ArrayList<>();
        while (b.hasRemaining()) {
            Tag tag = Tag.of(b.getShort());
            int permissions = b.getShort();
            int id = b.getInt();
            if ((permissions & ~7) != 0 || tag.named() && id == NO_ID) {
                throw new FsException(Errno.EINVAL);
            }
            entries.add(new Entry(tag, permissions, tag.named() ? id : NO_ID));
        }
        Acl acl = new Acl(entries);
        acl.check();
        return acl;
    }

    /** One USER_OBJ, GROUP_OBJ and OTHER, a MASK if anybody is named, all in their order. */
    private void check() throws FsException {
        boolean named = false;
        Tag last = null;
        for (Entry e : entries) {
            if (last != null && (e.tag.compareTo(last) < 0 || e.tag == last && !e.tag.named())) {
                throw new FsException(Errno.EINVAL);
            }
            last = e.tag;
            named |= e.tag.named();
        }
        if (find(Tag.USER_OBJ) == null || find(Tag.GROUP_OBJ) == null || find(Tag.OTHER) == null || named && find(Tag.MASK) == null) {
            throw new FsException(Errno.EINVAL);
        }
    }

    private Entry find(Tag tag) {
        for (Entry e : entries) {
            if (e.tag == tag) {
                return e;
            }
        }
        return null;
    }

    byte[] encode() {
        ByteBuffer b = ByteBuffer.allocate(HEADER_BYTES + ENTRY_BYTES * entries.size()).order(ByteOrder.LITTLE_ENDIAN).putInt(VERSION);
        for (Entry e : entries) {
            b.putShort((short) e.tag.number).putShort((short) e.permissions).putInt(e.id);
        }
        return b.array();
    }

    /** It says no more than permission bits can. */
    boolean isMode() {
        return entries.size() == 3;
    }

    private Tag group() {
        return find(Tag.MASK) != null ? Tag.MASK : Tag.GROUP_OBJ;
    }

    /** The permission bits of a mode, nine bits. */
    int permissions() {
        return find(Tag.USER_OBJ).permissions << 6 | find(group()).permissions << 3 | find(Tag.OTHER).permissions;
    }

    /** After a chmod: the same, with these permission bits. */
    Acl withPermissions(int mode) {
        Tag group = group();
        return new Acl(entries.stream().map(e -> e.tag == Tag.USER_OBJ ? e.with(mode >> 6) : e.tag == group ? e.with(mode >> 3) : e.tag == Tag.OTHER ? e.with(mode) : e).toList());
    }

    /** As the default ACL of the directory: what an entry gets that is made with these permission bits. No umask is applied. */
    Born born(int mode) {
        Tag group = group();
        Acl access = new Acl(entries.stream()
                .map(e -> e.tag == Tag.USER_OBJ ? e.and(mode >> 6) : e.tag == group ? e.and(mode >> 3) : e.tag == Tag.OTHER ? e.and(mode) : e).toList());
        return new Born(access.permissions(), access.isMode() ? null : access);
    }
}
