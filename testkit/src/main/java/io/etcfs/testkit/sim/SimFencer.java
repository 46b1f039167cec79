package io.etcfs.testkit.sim;

import io.etcfs.core.fence.Fencer;
import io.etcfs.core.fence.Severing;
import io.etcfs.testkit.store.MemoryStore;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.function.ToLongFunction;

/**
 * Severs by sessions, as reservations do: whatever a process writes, or has on its way, whose newest session is older than what was severed has no effect.
 * It takes its time, and often it can't.
 */
final class SimFencer implements Fencer {
    private static final long MS = 1_000_000L;

    private final Scheduler scheduler;
    private final MemoryStore store;
    private final Random random;
    /** By node: before which revision all sessions are severed, and the store's revision when that was confirmed last. */
    private final Map<String, Long> severedBefore = new HashMap<>();
    private final Map<String, Long> confirmedAt = new HashMap<>();
    /** How often it was asked for each intent: the third time it does what it is asked for, so that a run ends. */
    private final Map<Long, Integer> tries = new HashMap<>();
    private ToLongFunction<String> sessions = process -> Long.MAX_VALUE;
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

    /** Whether what the process writes is held back. */
    boolean severed(String node, String process) {
        Long severed = severedBefore.get(node);
        return severed != null && sessions.applyAsLong(process) < severed;
    }

    /** Whether the node was confirmed to be severed after that revision. */
    boolean confirmedSince(String node, long revision) {
        return confirmedAt.getOrDefault(node, -1L) >= revision;
    }

    @Override
    public Severing sever(String node, long before, String instance) {
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
        severedBefore.merge(node, before, Math::max);
        if (fate == 3) {
            return new Severing(false, "it could not be read back");
        }
        confirmedAt.put(node, store.revision());
        return new Severing(true, "read back");
    }
}
