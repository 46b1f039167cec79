package io.etcfs.core.record;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * The hash of a name in its directory: part of the entry's key and the cookie from which the kernel resumes a listing. SipHash-2-4
 * (Aumasson and Bernstein, 2012) under a key that was made with the filesystem and never changes, so that nobody who does not know the
 * key can construct names that collide.
 *
 * <p>The result is a positive number of 63 bits, because the kernel's offsets are signed. Values below {@link #FIRST} belong to entries that
 * have no key (the start of a listing, {@code .} and {@code ..}): a hash {@code h < FIRST} becomes {@code h + FIRST}, so that each
 * value in {@code [FIRST, 2 * FIRST)} has two preimages under the cut hash, which changes nothing in practice.
 */
public final class NameHash {
    /** The smallest value a name can have. */
    public static final long FIRST = 16;

    /** Length of the key in bytes. */
    public static final int KEY_BYTES = 16;

    private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private final long k0;
    private final long k1;

    /** @param key 16 bytes; copied */
    public NameHash(byte[] key) {
        if (key.length != KEY_BYTES) {
            throw new IllegalArgumentException("a name hash key has " + KEY_BYTES + " bytes, not " + key.length);
        }
        k0 = (long) LONGS.get(key, 0);
        k1 = (long) LONGS.get(key, 8);
    }

    /** The number of this name: at least {@link #FIRST}, at most {@link Long#MAX_VALUE}. */
    public long hash63(byte[] name) {
        return usable(sipHash24(k0, k1, name));
    }

    static long usable(long hash) {
        long cut = hash & Long.MAX_VALUE;
        return cut < FIRST ? cut + FIRST : cut;
    }

    static long sipHash24(long k0, long k1, byte[] in) {
        long v0 = k0 ^ 0x736f6d6570736575L;
        long v1 = k1 ^ 0x646f72616e646f6dL;
        long v2 = k0 ^ 0x6c7967656e657261L;
        long v3 = k1 ^ 0x7465646279746573L;
        int whole = in.length & ~7;
        // The last word is what is left of the input, with the length's low byte on top.
        long last = (long) in.length << 56;
        for (int i = whole; i < in.length; i++) {
            last |= (in[i] & 0xffL) << (8 * (i - whole));
        }
        // Two rounds for each word and, after the last one, four more.
        int rounds = 2 * (whole / 8 + 1) + 4;
        long word = 0;
        for (int round = 0, at = 0; round < rounds; round++) {
            boolean finish = round >= rounds - 4;
            if (!finish && (round & 1) == 0) {
                word = at < whole ? (long) LONGS.get(in, at) : last;
                at += 8;
                v3 ^= word;
            }
            if (round == rounds - 4) {
                v2 ^= 0xff;
            }
            v0 += v1;
            v1 = Long.rotateLeft(v1, 13) ^ v0;
            v0 = Long.rotateLeft(v0, 32);
            v2 += v3;
            v3 = Long.rotateLeft(v3, 16) ^ v2;
            v0 += v3;
            v3 = Long.rotateLeft(v3, 21) ^ v0;
            v2 += v1;
            v1 = Long.rotateLeft(v1, 17) ^ v2;
            v2 = Long.rotateLeft(v2, 32);
            if (!finish && (round & 1) == 1) {
                v0 ^= word;
            }
        }
        return v0 ^ v1 ^ v2 ^ v3;
    }
}
