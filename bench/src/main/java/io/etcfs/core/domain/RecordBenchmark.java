package io.etcfs.core.domain;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.file.Extent;
import io.etcfs.core.record.proto.FileType;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/** Inodes and names to and from their records in etcd. */
@State(Scope.Thread)
public class RecordBenchmark {
    private static final long INO = 0x1_0000_1234L;
    private static final long HOME = 0x1_0000_0017L;

    private final Inode small = inode(1);
    private final Inode large = inode(Inode.INLINE_EXTENTS);
    private final Dirent dirent = new Dirent(new byte[] {'a'}, 99, INO, FileType.REGULAR, HOME, 0);
    private final byte[] smallRecord = small.encode();
    private final byte[] largeRecord = large.encode();
    private final byte[] direntRecord = dirent.encode();

    private static Inode inode(int extents) {
        Inode i = new Inode(INO, HOME);
        i.mode = Inode.REGULAR | 0644;
        i.uid = 1000;
        i.gid = 1000;
        i.nlink = 1;
        i.size = extents * 8192L;
        i.valid = i.size;
        i.atimeNs = 1_790_000_000_123_456_789L;
        i.mtimeNs = i.atimeNs;
        i.ctimeNs = i.atimeNs;
        i.btimeNs = i.atimeNs;
        for (int e = 0; e < extents; e++) {
            i.extents.put(new Extent(2L * e, 1_000_000 + 5L * e, 2, 123_456, 0));
        }
        return i;
    }

    @Benchmark
    public byte[] encodeInode() {
        return small.encode();
    }

    @Benchmark
    public byte[] encodeInode32Extents() {
        return large.encode();
    }

    @Benchmark
    public Inode decodeInode() {
        return Inode.decode(INO, HOME, smallRecord);
    }

    @Benchmark
    public Inode decodeInode32Extents() {
        return Inode.decode(INO, HOME, largeRecord);
    }

    @Benchmark
    public byte[] encodeDirent() {
        return dirent.encode();
    }

    @Benchmark
    public long decodeDirent() throws InvalidProtocolBufferException {
        return io.etcfs.core.record.proto.Dirent.parseFrom(direntRecord).getInode();
    }
}
