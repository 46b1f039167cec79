package io.etcfs.testkit.sim;

import io.etcfs.core.device.DeviceException;
import io.etcfs.core.fence.Fencer;
import io.etcfs.core.fence.Severing;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.testkit.store.MemoryStore;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.function.ToLongFunction;

/**
 * Severs by sessions, as reservations do: whatever a process writes, or has on its way, whose newest session is not registered has no effect. It takes its
 * time, and often it can't.
 */
final class SimFencer implements Fencer {
    private static final long MS = 1_000_000L;
    private static final int EIO = 5;

    private final Scheduler scheduler;
    private final MemoryStore store;
    private final Random random;
    private final Set<Long> registered = new HashSet<>();
    /** By process, the last of its sessions that was seen to be registered. */
    private final Map<String, Long> known = new HashMap<>();
    /** By node: the store's revision when it was confirmed last that it is severed. */
    private final Map<String, Long> confirmedAt = new HashMap<>();
    /** How often it was asked for each intent: the third time it does what it is asked for, so that a run ends. */
    private final Map<Long, Integer> tries = new HashMap<>();
    private ToLongFunction<String> sessions = process -> 0;
    private ToLongFunction<String> intents = node -> 0;

    SimFencer(Scheduler scheduler, MemoryStore store, Random random) {
        this.scheduler = scheduler;
        this.store = store;
        this.random = random;
    }

    /** By process, the create revision of the newest session that it had, 0 if none; by node, that of the intent to fence it, 0 if there is none. */
    void oracle(ToLongFunction<String> ofProcess, ToLongFunction<String> ofNode) {
        sessions = ofProcess;
        intents = ofNode;
    }

    /** Whether what the process writes is held back. Until its next session is admitted the last one of its that was is what the device knows. */
    boolean severed(String process) {
        long newest = sessions.applyAsLong(process);
        if (registered.contains(newest)) {
            known.put(process, newest);
        }
        return !registered.contains(known.getOrDefault(process, 0L));
    }

    /** Whether the node was confirmed to be severed after that revision. */
    boolean confirmedSince(String node, long revision) {
        return confirmedAt.getOrDefault(node, -1L) >= revision;
    }

    @Override
    public boolean registers() {
        return true;
    }

    @Override
    public void admit(long session, List<Long> older, boolean quiet, Standing standing) throws DeviceException {
        int fate = random.nextInt(24);
        // Longer than a session lives, sometimes.
        scheduler.sleep(random.nextLong(fate == 0 ? 4_000 * MS : 10 * MS));
        if (fate == 1) {
            throw new DeviceException(EIO, "it can't be reached");
        }
        registered.add(session);
        older.forEach(registered::remove);
        scheduler.sleep(random.nextLong(fate == 2 ? 4_000 * MS : 10 * MS));
        if (fate == 3) {
            throw new DeviceException(EIO, "it could not be read back");
        }
        try {
            if (!standing.stands()) {
                throw new DeviceException(EIO, "the session has ended");
            }
        } catch (StoreUnavailableException | StoreRejectedException e) {
            throw new DeviceException(EIO, e.getMessage());
        }
    }

    @Override
    public Severing sever(Vanished vanished) {
        String node = vanished.node();
        scheduler.sleep(random.nextLong(2_000 * MS));
        int fate = tries.merge(intents.applyAsLong(node), 1, Integer::sum) > 2 ? 7 : random.nextInt(8);
        if (fate == 0) {
            scheduler.sleep(70_000 * MS);
        }
        if (fate == 1) {
            throw new IllegalStateException("the fencer's machine is down");
        }
        if (fate == 2) {
            return new Severing(false, "it can't be reached");
        }
        vanished.registered().stream().filter(s -> s < vanished.before()).forEach(registered::remove);
        if (fate == 3) {
            return new Severing(false, "it could not be read back");
        }
        confirmedAt.put(node, store.revision());
        return new Severing(true, "read back");
    }
}
