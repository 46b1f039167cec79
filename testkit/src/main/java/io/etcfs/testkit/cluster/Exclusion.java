package io.etcfs.testkit.cluster;

import io.etcfs.core.record.Keys;
import io.etcfs.core.store.WatchEvent;
import io.etcfs.core.store.WatchListener;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;

/** Follows the lock keys and tells of every revision at which an exclusive token is not alone. */
public final class Exclusion implements WatchListener {
    private final Keys keys;
    private final Consumer<String> broken;
    private final Map<Long, Set<Keys.LockKey>> held = new HashMap<>();

    public Exclusion(Keys keys, Consumer<String> broken) {
        this.keys = keys;
        this.broken = broken;
    }

    /** Events of other keys than locks are left alone. */
    @Override
    public void changed(long revision, List<WatchEvent> events) {
        Set<Long> touched = new TreeSet<>();
        for (WatchEvent e : events) {
            if (!e.keyValue().key().startsWith(keys.locks())) {
                continue;
            }
            Keys.LockKey k = keys.parseLock(e.keyValue().key());
            Set<Keys.LockKey> holders = held.computeIfAbsent(k.res(), r -> new HashSet<>());
            if (e.kind() == WatchEvent.Kind.PUT) {
                holders.add(k);
            } else {
                holders.remove(k);
            }
            touched.add(k.res());
        }
        for (long res : touched) {
            Set<Keys.LockKey> holders = held.get(res);
            if (holders.size() > 1 && holders.stream().anyMatch(Keys.LockKey::exclusive)) {
                broken.accept("revision " + revision + ": token " + res + " is held as " + holders);
            }
        }
    }

    @Override
    public void resynced(long revision) {}
}
