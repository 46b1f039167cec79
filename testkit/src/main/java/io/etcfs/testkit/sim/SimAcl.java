package io.etcfs.testkit.sim;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Random;

/**
 * A POSIX ACL as programs here set them: owner, one user by name or nobody, group, mask, others; and what has to become of it, as in acl(5), written apart from
 * what core does. Permissions are rwx, three bits; {@link #NONE} for what it does not have.
 */
record SimAcl(int owner, int named, int group, int mask, int others) {
    static final byte[] ACCESS = "system.posix_acl_access".getBytes(StandardCharsets.US_ASCII);
    static final byte[] DEFAULT = "system.posix_acl_default".getBytes(StandardCharsets.US_ASCII);
    static final int NONE = -1;
    private static final int USER_OBJ = 0x01;
    private static final int USER = 0x02;
    private static final int GROUP_OBJ = 0x04;
    private static final int MASK = 0x10;
    private static final int OTHER = 0x20;
    private static final int ID = 1000;

    static SimAcl draw(Random random) {
        boolean named = random.nextInt(4) != 0;
        return new SimAcl(random.nextInt(8), named ? random.nextInt(8) : NONE, random.nextInt(8), named || random.nextInt(3) == 0 ? random.nextInt(8) : NONE, random.nextInt(8));
    }

    /** It says no more than a mode can. */
    boolean isMode() {
        return named == NONE && mask == NONE;
    }

    /** The permission bits of a mode. */
    int mode() {
        return owner << 6 | (mask == NONE ? group : mask) << 3 | others;
    }

    /** After a chmod. */
    SimAcl changed(int mode) {
        int middle = mode >> 3 & 7;
        return new SimAcl(mode >> 6 & 7, named, mask == NONE ? middle : group, mask == NONE ? NONE : middle, mode & 7);
    }

    /** As a default ACL: the access ACL of what is made with those bits. */
    SimAcl inherited(int mode) {
        int middle = mode >> 3 & 7;
        return new SimAcl(owner & mode >> 6, named, mask == NONE ? group & middle : group, mask == NONE ? NONE : mask & middle, others & mode & 7);
    }

    byte[] encode() {
        ByteBuffer b = ByteBuffer.allocate(100).order(ByteOrder.LITTLE_ENDIAN).putInt(2);
        put(b, USER_OBJ, owner, -1);
        put(b, USER, named, ID);
        put(b, GROUP_OBJ, group, -1);
        put(b, MASK, mask, -1);
        put(b, OTHER, others, -1);
        byte[] bytes = new byte[b.position()];
        b.flip().get(bytes);
        return bytes;
    }

    private static void put(ByteBuffer b, int tag, int permissions, int id) {
        if (permissions != NONE) {
            b.putShort((short) tag).putShort((short) permissions).putInt(id);
        }
    }

    /** @throws IllegalStateException it is not one of those */
    static SimAcl decode(byte[] bytes) {
        ByteBuffer b = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        int[] of = new int[OTHER + 1];
        java.util.Arrays.fill(of, NONE);
        b.getInt();
        while (b.hasRemaining()) {
            int tag = b.getShort();
            of[tag] = b.getShort();
            b.getInt();
        }
        SimAcl acl = new SimAcl(of[USER_OBJ], of[USER], of[GROUP_OBJ], of[MASK], of[OTHER]);
        if (!java.util.Arrays.equals(acl.encode(), bytes)) {
            throw new IllegalStateException("not an ACL that was set here");
        }
        return acl;
    }

    @Override
    public String toString() {
        return "u" + owner + (named == NONE ? "" : " n" + named) + " g" + group + (mask == NONE ? "" : " m" + mask) + " o" + others;
    }
}
