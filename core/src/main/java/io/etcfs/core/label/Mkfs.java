package io.etcfs.core.label;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Counter;
import io.etcfs.core.record.proto.Inode;
import io.etcfs.core.record.proto.Super;
import io.etcfs.core.space.ArenaSize;
import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.OpResult;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.stream.Stream;

/**
 * Makes a filesystem: {@code super}, the root directory and the two counters in one transaction that requires the filesystem's prefix to be
 * empty, then the label.
 *
 * <p>Everything that can be checked is checked before the first change. If the label can't be written, the keys are removed again unless a node
 * has come meanwhile. What another program does with the device is the caller's to check.
 */
public final class Mkfs {
    public static final long MIN_DEVICE_BYTES = 64L << 20;
    private static final int ROOT_MODE = 0040755;
    private static final int COMMIT_ATTEMPTS = 10;
    private static final int DELETE_CHUNK = 5_000;

    /**
     * @param deviceName     how the user named the device, for messages
     * @param force          overwrite a signature, and delete a filesystem of that name that no node has mounted
     * @param arenaSizeBytes 0: chosen by the device's size
     * @param nameHashKey    16 random bytes
     * @param nowNs          since the epoch
     */
    public record Request(String name, String deviceName, boolean force, long arenaSizeBytes, UUID uuid, byte[] nameHashKey, long nowNs) {}

    private final MetadataStore store;
    private final BlockDevice device;
    private final long timeoutNs;
    private final Seizure seizure;

    /** What a device needs before it is overwritten by force: only when all was checked. */
    public interface Seizure {
        void run() throws DeviceException;
    }

    /** @param timeoutNs of each request to the store */
    public Mkfs(MetadataStore store, BlockDevice device, long timeoutNs) {
        this(store, device, timeoutNs, () -> {});
    }

    public Mkfs(MetadataStore store, BlockDevice device, long timeoutNs, Seizure seizure) {
        this.store = store;
        this.device = device;
        this.timeoutNs = timeoutNs;
        this.seizure = seizure;
    }

    /** Returns the record of the new filesystem once etcd and the device have it. */
    public Super make(Request request) throws MkfsException {
        requireName(request.name());
        long deviceBytes = usableBytes(request.deviceName(), device.sizeBytes());
        long arenaBytes = arenaBytes(request.arenaSizeBytes(), deviceBytes);
        try {
            requireUnusedDevice(request);
            Super record = Super.newBuilder()
                    .setFormatVersion(Label.FORMAT_VERSION)
                    .setFilesystemUuid(Label.bytesOf(request.uuid()))
                    .setEtcdClusterId(store.status(timeoutNs).clusterId())
                    .setBlockSize(BlockDevice.BLOCK_BYTES)
                    .setArenaSize(arenaBytes)
                    .setDeviceSize(deviceBytes)
                    .setNameHashKey(ByteString.copyFrom(request.nameHashKey()))
                    .setName(request.name())
                    .setCreatedAtNs(request.nowNs())
                    .build();
            Keys keys = new Keys(request.name());
            requireUnusedName(request, keys);
            create(keys, record);
            try {
                if (request.force()) {
                    seizure.run();
                    Signature.wipe(device);
                }
                Label.of(record).write(device);
            } catch (DeviceException e) {
                throw new MkfsException("cannot write the label to " + request.deviceName() + ": " + e.getMessage() + "; " + takeBack(keys, record));
            }
            return record;
        } catch (DeviceException e) {
            throw new MkfsException("cannot read " + request.deviceName() + ": " + e.getMessage());
        } catch (StoreUnavailableException e) {
            throw new MkfsException("etcd does not answer (" + e.getMessage() + "): check --etcd and that the cluster has a leader");
        } catch (StoreRejectedException e) {
            throw new MkfsException("etcd refused the request (" + e.reason() + "): " + e.getMessage());
        }
    }

    public static void requireName(String name) throws MkfsException {
        try {
            Keys.requireFilesystemName(name);
        } catch (IllegalArgumentException e) {
            throw new MkfsException("--name '" + name + "' is not usable: 1 to 63 letters, digits, '.', '_' or '-', the first a letter or digit");
        }
    }

    /** The device's size in whole blocks. */
    private static long usableBytes(String deviceName, long sizeBytes) throws MkfsException {
        if (sizeBytes < MIN_DEVICE_BYTES) {
            throw new MkfsException(deviceName + " has " + sizeBytes + " bytes: the device must have at least " + MIN_DEVICE_BYTES + " (64 MiB)");
        }
        return sizeBytes & -BlockDevice.BLOCK_BYTES;
    }

    private static long arenaBytes(long wanted, long deviceBytes) throws MkfsException {
        if (wanted == 0) {
            return ArenaSize.forDevice(deviceBytes);
        }
        if (wanted < 0 || wanted % ArenaSize.MIN_BYTES != 0 || wanted > deviceBytes) {
            throw new MkfsException("--arena-size " + wanted + " is not usable: a multiple of " + ArenaSize.MIN_BYTES + " (16 MiB), at most the device's " + deviceBytes + " bytes");
        }
        return wanted;
    }

    private void requireUnusedDevice(Request request) throws DeviceException, MkfsException, StoreUnavailableException, StoreRejectedException {
        Optional<String> signature = Signature.find(device);
        if (signature.isPresent() && !request.force()) {
            throw new MkfsException(request.deviceName() + " holds " + signature.get() + ": name another device, or --force to overwrite it");
        }
        Label label;
        try {
            label = Label.read(device);
        } catch (LabelException e) {
            return;
        }
        Keys keys = new Keys(label.name());
        KeyValue current = store.range(keys.superblock(), null, 0, false, 0, timeoutNs).only();
        if (current != null && sameFilesystem(current, label.filesystemUuid()) && isAlive(keys)) {
            throw new MkfsException(request.deviceName() + " belongs to filesystem '" + label.name() + "', which is mounted: umount it on all nodes first");
        }
    }

    private void requireUnusedName(Request request, Keys keys) throws MkfsException, StoreUnavailableException, StoreRejectedException {
        if (isEmpty(keys)) {
            return;
        }
        if (!request.force()) {
            throw new MkfsException(inUse(request.name()));
        }
        if (isAlive(keys)) {
            throw stillMounted(request.name());
        }
        // The superblock goes first: from then on no node starts on what is left.
        deleteGuarded(request.name(), keys, Op.delete(keys.superblock()));
        while (true) {
            List<KeyValue> chunk = store.range(keys.prefix(), keys.prefix().prefixEnd(), DELETE_CHUNK, true, 0, timeoutNs).keyValues();
            if (chunk.isEmpty()) {
                return;
            }
            deleteGuarded(request.name(), keys, new Op.Delete(chunk.getFirst().key(), chunk.getLast().key().next()));
        }
    }

    private static String inUse(String name) {
        return "name " + name + " is already in use in etcd: choose another --name, or delete it with --force";
    }

    private static MkfsException stillMounted(String name) {
        return new MkfsException("filesystem '" + name + "' is mounted (etcd has sessions or members of it): umount it on all nodes first");
    }

    /** Deleting again is harmless, so an unknown outcome is simply followed by the same again. */
    private void deleteGuarded(String name, Keys keys, Op deletion) throws MkfsException, StoreRejectedException {
        Txn txn = new Txn(noneAlive(keys), List.of(deletion), List.of());
        String cause = "";
        for (int attempt = 0; attempt < COMMIT_ATTEMPTS; attempt++) {
            switch (store.commit(txn, timeoutNs)) {
                case Outcome.Committed committed -> {
                    return;
                }
                case Outcome.Conflict conflict -> throw stillMounted(name);
                case Outcome.Unknown unknown -> cause = unknown.cause();
            }
        }
        throw new MkfsException("etcd did not confirm the deletion of '" + name + "' (" + cause + "): check etcd, then run the command again");
    }

    private void create(Keys keys, Super record) throws MkfsException, StoreRejectedException {
        Inode root = Inode.newBuilder()
                .setMode(ROOT_MODE)
                .setNlink(2)
                .setParent(1)
                .setAtimeNs(record.getCreatedAtNs())
                .setMtimeNs(record.getCreatedAtNs())
                .setCtimeNs(record.getCreatedAtNs())
                .setBtimeNs(record.getCreatedAtNs())
                .build();
        Txn txn = new Txn(
                List.of(Compare.absent(keys.superblock()), Compare.noneIn(keys.prefix(), keys.prefix().prefixEnd())),
                List.of(Op.put(keys.superblock(), record.toByteArray()),
                        Op.put(keys.inode(1, 1), root.toByteArray()),
                        Op.put(keys.inodeAllocCounter(), Counter.newBuilder().setNext(2).build().toByteArray()),
                        Op.put(keys.arenaAllocLog(), Counter.newBuilder().setNext(0).build().toByteArray())),
                List.of(Op.get(keys.superblock())));
        String cause = "";
        // The guard lets one copy through at most, and a conflict shows whether it was ours: it is safe to send it again.
        for (int attempt = 0; attempt < COMMIT_ATTEMPTS; attempt++) {
            switch (store.commit(txn, timeoutNs)) {
                case Outcome.Committed committed -> {
                    return;
                }
                case Outcome.Conflict conflict -> {
                    KeyValue current = ((OpResult.Ranged) conflict.result().results().getFirst()).only();
                    if (current != null && Arrays.equals(current.value(), record.toByteArray())) {
                        return;
                    }
                    throw new MkfsException(inUse(record.getName()));
                }
                case Outcome.Unknown unknown -> cause = unknown.cause();
            }
        }
        throw new MkfsException("etcd did not confirm the new filesystem (" + cause + "): check etcd, then run the command again with --force");
    }

    /** Removes the keys of a filesystem whose label could not be written, and says how that went. */
    private String takeBack(Keys keys, Super record) {
        Txn txn = new Txn(
                plus(noneAlive(keys), Compare.value(keys.superblock(), record.toByteArray())),
                List.of(new Op.Delete(keys.prefix(), keys.prefix().prefixEnd())),
                List.of(Op.get(keys.superblock())));
        String left = "etcd still has the keys of '" + record.getName() + "': run the command again with --force";
        try {
            for (int attempt = 0; attempt < COMMIT_ATTEMPTS; attempt++) {
                switch (store.commit(txn, timeoutNs)) {
                    case Outcome.Committed committed -> {
                        return "nothing was left in etcd";
                    }
                    case Outcome.Conflict conflict -> {
                        boolean gone = ((OpResult.Ranged) conflict.result().results().getFirst()).only() == null;
                        return gone ? "nothing was left in etcd" : left;
                    }
                    case Outcome.Unknown unknown -> { }
                }
            }
            return left;
        } catch (StoreRejectedException e) {
            return left;
        }
    }

    private boolean isEmpty(Keys keys) throws StoreUnavailableException, StoreRejectedException {
        return store.range(keys.prefix(), keys.prefix().prefixEnd(), 1, true, 0, timeoutNs).keyValues().isEmpty();
    }

    private boolean isAlive(Keys keys) throws StoreUnavailableException, StoreRejectedException {
        for (Key presence : presence(keys)) {
            if (!store.range(presence, presence.prefixEnd(), 1, true, 0, timeoutNs).keyValues().isEmpty()) {
                return true;
            }
        }
        return false;
    }

    private static List<Compare> noneAlive(Keys keys) {
        return presence(keys).stream().map(prefix -> Compare.noneIn(prefix, prefix.prefixEnd())).toList();
    }

    /** The prefixes of the leased keys by which nodes show that they live. */
    private static List<Key> presence(Keys keys) {
        return List.of(keys.sessions(), keys.memberships());
    }

    private static boolean sameFilesystem(KeyValue superblock, UUID uuid) {
        try {
            return Label.uuidOf(Super.parseFrom(superblock.value())).equals(uuid);
        } catch (InvalidProtocolBufferException e) {
            return false;
        }
    }

    private static List<Compare> plus(List<Compare> compares, Compare more) {
        return Stream.concat(compares.stream(), Stream.of(more)).toList();
    }
}
