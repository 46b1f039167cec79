package io.etcfs.core.fence;

import io.etcfs.core.clock.Clock;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Membership;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;

/** A fence on an operator's word, who knows that the node can't write any more: it takes the fencer's place, and every other step stays. */
public final class DeclareDead {
    public enum Result {
        DONE,
        /** No node of that name ever was. */
        UNKNOWN,
        /** It is a member, or has a session. */
        ALIVE,
        /** It left in order and owns nothing. */
        LEFT,
        /** It was fenced or declared dead before, and owns nothing. */
        DEAD_BEFORE,
        /** A controller is fencing it, and has been for as long as was waited. */
        BUSY
    }

    private static final long REQUEST_NS = 2_000_000_000L;
    private static final long RETRY_NS = 200_000_000L;

    private final MetadataStore store;
    private final Clock clock;
    private final Keys keys;

    public DeclareDead(MetadataStore store, Clock clock, Keys keys) {
        this.store = store;
        this.clock = clock;
        this.keys = keys;
    }

    /** What {@link #run} would say if it did nothing: DONE where it has something to do. */
    public Result look(String node) throws StoreUnavailableException, StoreRejectedException {
        return result(NodeRecords.read(store, keys, node, REQUEST_NS));
    }

    private static Result result(NodeRecords found) {
        return switch (found.verdict()) {
            case UNKNOWN -> Result.UNKNOWN;
            case PRESENT -> Result.ALIVE;
            case LEFT -> Result.LEFT;
            case FENCED -> Result.DEAD_BEFORE;
            case NEW, GONE, PENDING -> Result.DONE;
        };
    }

    /**
     * Carries it out, also where another controller was in the middle of it.
     *
     * @param by who says so, for those who read the records
     */
    public Result run(String node, String by, long timeoutNs) throws StoreUnavailableException, StoreRejectedException, InterruptedException {
        Fence fence = new Fence(store, clock, keys, by);
        long until = clock.nowNs() + timeoutNs;
        boolean begun = false;
        while (true) {
            NodeRecords found = NodeRecords.read(store, keys, node, REQUEST_NS);
            switch (found.verdict()) {
                case NEW, GONE -> fence.record(found, Membership.getDefaultInstance(), 0);
                case PENDING -> {
                    begun = true;
                    if (fence.carryOut(found, (intent, claim) -> new Severing(true, "declared dead by " + by)) != Fence.Result.DONE) {
                        if (clock.nowNs() >= until) {
                            return Result.BUSY;
                        }
                        clock.sleep(RETRY_NS);
                    }
                }
                case FENCED -> {
                    return begun ? Result.DONE : Result.DEAD_BEFORE;
                }
                case UNKNOWN, PRESENT, LEFT -> {
                    return result(found);
                }
            }
        }
    }
}
