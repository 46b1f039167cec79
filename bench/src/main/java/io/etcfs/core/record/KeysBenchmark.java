package io.etcfs.core.record;

import io.etcfs.core.store.Key;
import java.nio.charset.StandardCharsets;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/** Names hashed, keys made, compared and read back. */
@State(Scope.Thread)
public class KeysBenchmark {
    private static final byte[] NAME = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);
    private static final long DIR = 0x1_0000_0017L;
    private static final long HASH = 0x5a5a_1234_5678_9abcL;

    private final Keys keys = new Keys("data");
    private final NameHash hash = new NameHash(new byte[NameHash.KEY_BYTES]);
    private final byte[] longName = new byte[255];
    private final Key one = keys.dirent(DIR, HASH, NAME);
    private final Key other = keys.dirent(DIR, HASH + 1, NAME);
    private final Key equal = keys.dirent(DIR, HASH, NAME);
    private long ino;

    @Benchmark
    public long hashName16() {
        return hash.hash63(NAME);
    }

    @Benchmark
    public long hashName255() {
        return hash.hash63(longName);
    }

    @Benchmark
    public Key makeInodeKey() {
        return keys.inode(DIR, ++ino);
    }

    @Benchmark
    public Key makeDirentKey() {
        return keys.dirent(DIR, ++ino, NAME);
    }

    @Benchmark
    public Keys.DirentKey parseDirentKey() {
        return keys.parseDirent(one);
    }

    @Benchmark
    public int compareKeys() {
        return one.compareTo(other);
    }

    @Benchmark
    public boolean equalKeys() {
        return one.equals(equal);
    }

    @Benchmark
    public int hashKey() {
        return one.hashCode();
    }
}
