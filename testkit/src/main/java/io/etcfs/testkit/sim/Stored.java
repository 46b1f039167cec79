package io.etcfs.testkit.sim;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.domain.Inode;
import io.etcfs.core.file.Extent;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Dirent;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import com.google.protobuf.InvalidProtocolBufferException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongFunction;

/** Reads the filesystem from etcd and the device, without any node. */
final class Stored {
    private static final long TIMEOUT_NS = 1_000_000_000L;

    private Stored() {}

    /** All keys of the filesystem, in order. */
    static List<KeyValue> keys(MetadataStore store, Keys keys) {
        try {
            return store.range(keys.prefix(), keys.prefix().prefixEnd(), 0, false, 0, TIMEOUT_NS).keyValues();
        } catch (StoreUnavailableException | StoreRejectedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** @param device the contents of a block, by its number */
    static Reference read(List<KeyValue> all, Keys keys, LongFunction<byte[]> device) {
        Reference.Builder builder = new Reference.Builder();
        List<KeyValue> dirents = new ArrayList<>();
        Map<Long, List<Extent>> records = new HashMap<>();
        try {
            for (KeyValue kv : all) {
                if (kv.key().startsWith(keys.prefix().plus("extents:"))) {
                    records.computeIfAbsent(keys.parseExtents(kv.key()).ino(), i -> new ArrayList<>()).addAll(Inode.decodeExtentRecord(kv.value()));
                }
            }
            for (KeyValue kv : all) {
                if (kv.key().startsWith(keys.prefix().plus("inode:"))) {
                    Keys.InodeKey k = keys.parseInode(kv.key());
                    Inode i = Inode.decode(k.ino(), k.home(), kv.value());
                    List<Extent> extents = i.extentsLoaded ? i.extents.all() : records.getOrDefault(k.ino(), List.of());
                    builder.add(k.ino(), i.isDirectory(), i.nlink, i.mode & 0777, acl(i, SimAcl.ACCESS), acl(i, SimAcl.DEFAULT), i.isDirectory() ? new byte[0] : bytes(i, extents, device));
                } else if (kv.key().startsWith(keys.prefix().plus("dirent:"))) {
                    dirents.add(kv);
                }
            }
            for (KeyValue kv : dirents) {
                Keys.DirentKey k = keys.parseDirent(kv.key());
                builder.name(k.dir(), new String(k.name(), StandardCharsets.UTF_8), Dirent.parseFrom(kv.value()).getInode());
            }
        } catch (InvalidProtocolBufferException e) {
            throw new IllegalStateException(e);
        }
        return builder.build();
    }

    /** The file that has a block of the device, and as which of its blocks; null: none has. */
    static String holder(List<KeyValue> all, Keys keys, long block) {
        try {
            for (KeyValue kv : all) {
                boolean records = kv.key().startsWith(keys.prefix().plus("extents:"));
                if (!records && !kv.key().startsWith(keys.prefix().plus("inode:"))) {
                    continue;
                }
                long ino = records ? keys.parseExtents(kv.key()).ino() : keys.parseInode(kv.key()).ino();
                List<Extent> extents = records ? Inode.decodeExtentRecord(kv.value()) : Inode.decode(ino, keys.parseInode(kv.key()).home(), kv.value()).extents.all();
                for (Extent e : extents) {
                    if (block >= e.deviceBlock() && block < e.deviceBlock() + e.length()) {
                        return "inode " + ino + " at its block " + (e.logicalBlock() + block - e.deviceBlock()) + " of epoch " + e.epoch();
                    }
                }
            }
            return null;
        } catch (InvalidProtocolBufferException e) {
            throw new IllegalStateException(e);
        }
    }

    /** In which domain each inode is. */
    static Map<Long, Long> homes(List<KeyValue> all, Keys keys) {
        Map<Long, Long> homes = new HashMap<>();
        for (KeyValue kv : all) {
            if (kv.key().startsWith(keys.prefix().plus("inode:"))) {
                homes.put(keys.parseInode(kv.key()).ino(), keys.parseInode(kv.key()).home());
            }
        }
        return homes;
    }

    private static SimAcl acl(Inode i, byte[] name) {
        byte[] value = i.xattrs().get(ByteBuffer.wrap(name));
        return value == null ? null : SimAcl.decode(value);
    }

    private static byte[] bytes(Inode i, List<Extent> extents, LongFunction<byte[]> device) {
        byte[] all = new byte[(int) i.size];
        for (Extent e : extents) {
            for (long b = e.logicalBlock(); b < e.logicalEnd() && !e.unwritten() && b < i.deadFrom; b++) {
                byte[] block = device.apply(e.deviceBlock() + b - e.logicalBlock());
                long from = b * BlockDevice.BLOCK_BYTES;
                int n = (int) Math.min(BlockDevice.BLOCK_BYTES, Math.min(i.size, i.valid) - from);
                if (n > 0) {
                    System.arraycopy(block, 0, all, (int) from, n);
                }
            }
        }
        return all;
    }
}
