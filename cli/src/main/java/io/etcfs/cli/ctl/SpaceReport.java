package io.etcfs.cli.ctl;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Arena;
import io.etcfs.core.record.proto.Counter;
import io.etcfs.core.record.proto.Super;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Space of the device. {@code freeBytes} is what any node could come by: free blocks of claimed arenas, those given back included, as last published, and
 * arenas that nobody has claimed. {@code usedBytes} is the rest, what is reserved for the label included.
 */
record SpaceReport(long totalBytes, long usedBytes, long freeBytes, long arenaSizeBytes, Arenas arenas, List<Node> nodes) {
    /** Counts. {@code unclaimed}: never claimed yet. {@code freePool}: given back. */
    record Arenas(long total, long owned, long freePool, long unclaimed) {}

    record Node(String node, long arenas, long totalBytes, long usedBytes, long freeBytes) {}

    static SpaceReport read(Snapshot snapshot, Super superblock) throws StoreUnavailableException, StoreRejectedException {
        Keys keys = snapshot.keys();
        KeyValue claimed = snapshot.get(keys.arenaAllocLog());
        return of(keys, superblock, claimed == null ? 0 : Snapshot.parse(Counter.parser(), claimed).getNext(), snapshot.below(keys.arenas()), snapshot.below(keys.freeArenas()));
    }

    static SpaceReport of(Keys keys, Super superblock, long nextArena, List<KeyValue> owned, List<KeyValue> pool) {
        long device = superblock.getDeviceSize();
        long arena = superblock.getArenaSize();
        long count = (device + arena - 1) / arena;
        Map<String, long[]> byNode = new TreeMap<>();
        long free = 0;
        for (KeyValue keyValue : owned) {
            Keys.ArenaKey key = keys.parseArena(keyValue.key());
            long freeHere = freeBytes(keyValue);
            long[] sums = byNode.computeIfAbsent(key.node(), name -> new long[3]);
            sums[0]++;
            sums[1] += usable(key.id(), arena, device);
            sums[2] += freeHere;
            free += freeHere;
        }
        for (KeyValue keyValue : pool) {
            free += freeBytes(keyValue);
        }
        for (long id = nextArena; id < count; id++) {
            free += usable(id, arena, device);
        }
        List<Node> nodes = byNode.entrySet().stream()
                .map(entry -> new Node(entry.getKey(), entry.getValue()[0], entry.getValue()[1], entry.getValue()[1] - entry.getValue()[2], entry.getValue()[2]))
                .toList();
        return new SpaceReport(device, device - free, free, arena, new Arenas(count, owned.size(), pool.size(), Math.max(0, count - nextArena)), nodes);
    }

    private static long freeBytes(KeyValue arena) {
        return Integer.toUnsignedLong(Snapshot.parse(Arena.parser(), arena).getFreeBlocks()) * BlockDevice.BLOCK_BYTES;
    }

    /** Bytes of an arena for file contents: the last may reach beyond the device, and the first blocks are reserved. */
    private static long usable(long id, long arenaBytes, long deviceBytes) {
        long bytes = Math.clamp(deviceBytes - id * arenaBytes, 0, arenaBytes);
        return id == 0 ? Math.max(0, bytes - (long) io.etcfs.core.space.Arena.RESERVED_BLOCKS * BlockDevice.BLOCK_BYTES) : bytes;
    }
}
