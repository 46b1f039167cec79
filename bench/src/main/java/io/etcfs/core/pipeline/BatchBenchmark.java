package io.etcfs.core.pipeline;

import io.etcfs.core.record.Keys;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.Op;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/** A batch as unpacking many files fills it: two keys a file, and two of the directory and the bitmap that each file changes again. */
@State(Scope.Thread)
public class BatchBenchmark {
    private static final int FILES = 40;
    private static final byte[] VALUE = new byte[120];

    private final Keys keys = new Keys("data");
    private final Key[] changes = new Key[4 * FILES];
    private final Batch full = new Batch(1, 0);

    public BatchBenchmark() {
        for (int i = 0; i < FILES; i++) {
            changes[4 * i] = keys.dirent(17, 0x5a5a_0000_0000_0000L + i, ("file-" + i).getBytes(StandardCharsets.US_ASCII));
            changes[4 * i + 1] = keys.inode(17, 1000 + i);
            changes[4 * i + 2] = keys.inode(17, 17);
            changes[4 * i + 3] = keys.blocks(3, 5);
        }
        fill(full);
    }

    private void fill(Batch batch) {
        for (Key key : changes) {
            batch.put(key, () -> VALUE, false, VALUE.length);
        }
    }

    /** 160 changes of 82 keys. */
    @Benchmark
    public List<Op> coalesceAndClose() {
        Batch batch = new Batch(1, 0);
        fill(batch);
        batch.close();
        return batch.operations;
    }

    /** One more change of a key that is in the batch. */
    @Benchmark
    public int changeAgain() {
        full.put(changes[2], () -> VALUE, false, VALUE.length);
        return full.size();
    }

    /** The same by who makes the key anew, as every operation does. */
    @Benchmark
    public int changeAgainByNewKey() {
        full.put(keys.inode(17, 17), () -> VALUE, false, VALUE.length);
        return full.size();
    }
}
