package io.etcfs.cli.ctl;

import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Dirent;
import io.etcfs.core.record.proto.FileType;
import io.etcfs.core.record.proto.NodeLocks;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** File locks that processes hold and wait for. */
record LocksReport(List<FileLock> locks) {
    /**
     * @param path  a name that the file has; null: has none, or was not looked for
     * @param kind  flock or fcntl
     * @param mode  read or write
     * @param start first byte
     * @param end   last byte; null: to the end of the file
     * @param state held or waiting
     * @param exact false: the node decides alone and tells its locks a second later
     */
    record FileLock(String node, int pid, long inode, String path, String kind, String mode, long start, Long end, String state, boolean exact) {}

    private record Name(long directory, String name) {}

    /** @param paths look for names, which reads the names of all files */
    static LocksReport read(Snapshot snapshot, boolean paths) throws StoreUnavailableException, StoreRejectedException {
        Keys keys = snapshot.keys();
        List<KeyValue> records = snapshot.below(keys.fileLocks());
        Map<Long, Name> names = new HashMap<>();
        if (paths && !records.isEmpty()) {
            Set<Long> wanted = new HashSet<>();
            records.forEach(kv -> wanted.add(keys.parseFileLocks(kv.key()).ino()));
            snapshot.each(keys.dirents(), kv -> {
                Dirent entry = Snapshot.parse(Dirent.parser(), kv);
                if (entry.getType() == FileType.DIRECTORY || wanted.contains(entry.getInode())) {
                    Keys.DirentKey key = keys.parseDirent(kv.key());
                    names.put(entry.getInode(), new Name(key.dir(), new String(key.name(), StandardCharsets.UTF_8)));
                }
            });
        }
        Map<Long, String> found = new HashMap<>();
        records.forEach(kv -> found.computeIfAbsent(keys.parseFileLocks(kv.key()).ino(), ino -> path(names, ino)));
        return of(keys, records, found);
    }

    private static String path(Map<Long, Name> names, long ino) {
        StringBuilder path = new StringBuilder();
        for (Name n = names.get(ino); n != null; n = names.get(n.directory)) {
            path.insert(0, "/" + n.name);
        }
        return path.isEmpty() ? null : path.toString();
    }

    static LocksReport of(Keys keys, List<KeyValue> records, Map<Long, String> paths) {
        List<FileLock> locks = new ArrayList<>();
        for (KeyValue kv : records) {
            Keys.FileLocksKey key = keys.parseFileLocks(kv.key());
            NodeLocks record = Snapshot.parse(NodeLocks.parser(), kv);
            record.getHeldList().forEach(range -> locks.add(lock(key, record, range, "held", paths)));
            record.getWaitingList().forEach(range -> locks.add(lock(key, record, range, "waiting", paths)));
        }
        return new LocksReport(locks);
    }

    private static FileLock lock(Keys.FileLocksKey key, NodeLocks record, NodeLocks.Range range, String state, Map<Long, String> paths) {
        return new FileLock(key.node(), range.getPid(), key.ino(), paths.get(key.ino()), range.getFlock() ? "flock" : "fcntl", range.getExclusive() ? "write" : "read", range.getStart(),
                range.getEnd() == Long.MAX_VALUE ? null : range.getEnd(), state, !record.getAlone());
    }
}
