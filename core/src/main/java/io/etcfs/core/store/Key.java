package io.etcfs.core.store;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** A key in etcd: immutable bytes, ordered as etcd orders them (unsigned, bytewise). */
public final class Key implements Comparable<Key> {
    private final byte[] bytes;

    private Key(byte[] bytes) {
        this.bytes = bytes;
    }

    /** Takes the array over; the caller must not change it afterwards. */
    public static Key of(byte[] bytes) {
        return new Key(bytes);
    }

    public static Key of(String text) {
        return new Key(text.getBytes(StandardCharsets.UTF_8));
    }

    public Key plus(String suffix) {
        return plus(suffix.getBytes(StandardCharsets.UTF_8));
    }

    public Key plus(byte[] suffix) {
        byte[] joined = Arrays.copyOf(bytes, bytes.length + suffix.length);
        System.arraycopy(suffix, 0, joined, bytes.length, suffix.length);
        return new Key(joined);
    }

    /** The smallest key above all keys that start with this one, for ranges by prefix. */
    public Key prefixEnd() {
        byte[] end = bytes.clone();
        for (int i = end.length - 1; i >= 0; i--) {
            if (end[i] != (byte) 0xff) {
                end[i]++;
                return new Key(Arrays.copyOf(end, i + 1));
            }
        }
        return new Key(new byte[] {0});
    }

    /** The smallest key above this one. */
    public Key next() {
        return new Key(Arrays.copyOf(bytes, bytes.length + 1));
    }

    public boolean startsWith(Key prefix) {
        return bytes.length >= prefix.bytes.length && Arrays.equals(bytes, 0, prefix.bytes.length, prefix.bytes, 0, prefix.bytes.length);
    }

    /** The key's own array: not to be changed. */
    public byte[] bytes() {
        return bytes;
    }

    public int length() {
        return bytes.length;
    }

    @Override
    public int compareTo(Key other) {
        return Arrays.compareUnsigned(bytes, other.bytes);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Key k && Arrays.equals(bytes, k.bytes);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(bytes);
    }

    @Override
    public String toString() {
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
