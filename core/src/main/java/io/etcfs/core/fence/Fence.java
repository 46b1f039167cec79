package io.etcfs.core.fence;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.clock.Clock;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.FenceClaim;
import io.etcfs.core.record.proto.FenceDone;
import io.etcfs.core.record.proto.FenceIntent;
import io.etcfs.core.record.proto.Generation;
import io.etcfs.core.record.proto.Membership;
import io.etcfs.core.record.proto.Registered;
import io.etcfs.core.store.Compare;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.LeaseGrant;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.TxnResult;
import java.util.ArrayList;
import java.util.List;

/**
 * The steps of a fence, each one transaction or a row of equal ones, each harmless when it comes late or twice:
 *
 * <pre>
 *   {@link #record}         fence_pending: put, while the node is no member, has no session and no mark of a departure that counts
 *   {@link #claim}          fence_claim: put on a lease: one controller goes on with it
 *   {@link #stillGone}      asked right before the node is severed
 *   {@link #raise}          gen: raised and the intent says so, in one step: whoever goes on with it neither severs nor raises again
 *   {@link #releaseArenas}  arena: to free_arena:, one by one
 *   {@link #finish}         fence_done: put, fence_pending: and the claim deleted
 * </pre>
 *
 * From {@link #raise} on every step compares the intent's create revision and the claim's. A node that comes back deletes the intent as it registers, so that
 * nothing of a fence happens to it after that.
 */
final class Fence {
    static final long CLAIM_TTL_S = 10;
    private static final long REQUEST_NS = 2_000_000_000L;

    /** {@code revision}: of the claim's key. */
    record Claim(long lease, long revision) {}

    private final MetadataStore store;
    private final Clock clock;
    private final Keys keys;
    private final String controller;

    /** @param controller who does it, for those who read the records */
    Fence(MetadataStore store, Clock clock, Keys keys, String controller) {
        this.store = store;
        this.clock = clock;
        this.keys = keys;
        this.controller = controller;
    }

    enum Result {
        DONE,
        NOT_CONFIRMED,
        /** Another controller goes on with it. */
        TAKEN,
        /** Something was not as it was read: look again. */
        CHANGED
    }

    /** Has the node cut off, and keeps the claim meanwhile. */
    interface Severer {
        Severing sever(FenceIntent intent, Claim claim);
    }

    /** All that follows the intent, from wherever an earlier try has come. */
    Result carryOut(NodeRecords found, Severer severer) throws StoreUnavailableException, StoreRejectedException {
        String node = found.node();
        KeyValue intent = found.pending();
        Claim claim = claim(node, intent);
        if (claim == null) {
            return Result.TAKEN;
        }
        try {
            if (intent(intent).getRaisedTo() == 0) {
                if (!stillGone(node, intent, claim)) {
                    return Result.CHANGED;
                }
                Severing severing = severer.sever(intent(intent), claim);
                if (!severing.confirmed() && !Fault.FENCED_UNCONFIRMED.on()) {
                    note(node, intent, severing.saw());
                    return Result.NOT_CONFIRMED;
                }
                intent = raise(node, intent, claim, severing.saw());
            }
            return intent != null && releaseArenas(node, intent, claim) && finish(node, intent, claim) ? Result.DONE : Result.CHANGED;
        } finally {
            giveUp(claim);
        }
    }

    /**
     * Records the intent to fence a node of which everything is as it was read.
     *
     * @param last    the membership that vanished, or one without fields
     * @param session create revision of its newest session, 0: not known
     * @return false: something has changed since it was read
     */
    boolean record(NodeRecords node, Membership last, long session) throws StoreUnavailableException, StoreRejectedException {
        FenceIntent intent = FenceIntent.newBuilder().setAtNs(clock.realtimeNs()).setController(controller).setInstanceId(last.getInstanceId()).setHost(last.getHost())
                .setBootId(last.getBootId()).setSession(session).setGeneration(generation(node.generation())).build();
        return committed(new Txn(List.of(Compare.absent(keys.membership(node.node())), Compare.absent(keys.session(node.node())), Compare.absent(keys.fencePending(node.node())),
                        Compare.modRevision(keys.generation(node.node()), NodeRecords.modRevision(node.generation())),
                        Compare.modRevision(keys.departed(node.node()), NodeRecords.modRevision(node.departed())),
                        Compare.modRevision(keys.fenceDone(node.node()), NodeRecords.modRevision(node.done()))),
                List.of(Op.put(keys.fencePending(node.node()), intent.toByteArray())), List.of()));
    }

    /** Null: another controller has claimed it, or the intent has gone. */
    Claim claim(String node, KeyValue intent) throws StoreUnavailableException, StoreRejectedException {
        LeaseGrant lease = store.grantLease(CLAIM_TTL_S, REQUEST_NS);
        FenceClaim claim = FenceClaim.newBuilder().setController(controller).setIntent(intent.createRevision()).build();
        Outcome outcome = store.commit(new Txn(List.of(Compare.absent(keys.fenceClaim(node)), same(node, intent)), List.of(Op.put(keys.fenceClaim(node), claim.toByteArray(), lease.leaseId())),
                List.of()), REQUEST_NS);
        if (outcome instanceof Outcome.Committed(TxnResult r)) {
            return new Claim(lease.leaseId(), r.revision());
        }
        store.revokeLease(lease.leaseId(), REQUEST_NS);
        return null;
    }

    void keep(Claim claim) throws StoreUnavailableException {
        store.keepAlive(claim.lease(), REQUEST_NS);
    }

    /** Lets others have it. If that does not get through, the lease ends by itself. */
    void giveUp(Claim claim) throws StoreUnavailableException {
        store.revokeLease(claim.lease(), REQUEST_NS);
    }

    private Compare same(String node, KeyValue intent) {
        return Compare.createRevision(keys.fencePending(node), intent.createRevision());
    }

    private List<Compare> going(String node, KeyValue intent, Claim claim) {
        List<Compare> compares = new ArrayList<>();
        if (!Fault.FENCED_THOUGH_BACK.on()) {
            compares.add(same(node, intent));
            compares.add(Compare.absent(keys.session(node)));
        }
        compares.add(Compare.createRevision(keys.fenceClaim(node), claim.revision()));
        return compares;
    }

    /** The intent is the one that was claimed, the claim is ours, and the node has not come back. */
    boolean stillGone(String node, KeyValue intent, Claim claim) throws StoreUnavailableException, StoreRejectedException {
        List<Compare> compares = new ArrayList<>(going(node, intent, claim));
        compares.add(Compare.absent(keys.membership(node)));
        return committed(new Txn(compares, List.of(), List.of()));
    }

    /** What the fencer saw that did not confirm, for whoever looks. */
    void note(String node, KeyValue intent, String saw) throws StoreUnavailableException, StoreRejectedException {
        FenceIntent read = intent(intent);
        if (!read.getSaw().equals(saw)) {
            committed(new Txn(List.of(Compare.modRevision(keys.fencePending(node), intent.modRevision())),
                    List.of(Op.put(keys.fencePending(node), read.toBuilder().setSaw(saw).build().toByteArray())), List.of()));
        }
    }

    /**
     * Raises the generation of a node that is severed: nothing of it commits from now on.
     *
     * @return the intent as it is now, or null: it is not to be fenced any more
     */
    KeyValue raise(String node, KeyValue intent, Claim claim, String saw) throws StoreUnavailableException, StoreRejectedException {
        KeyValue found = store.range(keys.generation(node), null, 0, false, 0, REQUEST_NS).only();
        long raised = generation(found) + 1;
        List<Compare> compares = new ArrayList<>(going(node, intent, claim));
        compares.add(Compare.modRevision(keys.generation(node), NodeRecords.modRevision(found)));
        compares.add(Compare.modRevision(keys.fencePending(node), intent.modRevision()));
        if (!committed(new Txn(compares, List.of(Op.put(keys.generation(node), Generation.newBuilder().setGeneration(raised).build().toByteArray()),
                Op.put(keys.fencePending(node), intent(intent).toBuilder().setRaisedTo(raised).setSaw(saw).build().toByteArray())), List.of()))) {
            return null;
        }
        KeyValue now = store.range(keys.fencePending(node), null, 0, false, 0, REQUEST_NS).only();
        return now != null && now.createRevision() == intent.createRevision() ? now : null;
    }

    /** Gives the node's arenas to the free pool. False: it came back meanwhile, and what it still has stays its own. */
    boolean releaseArenas(String node, KeyValue intent, Claim claim) throws StoreUnavailableException, StoreRejectedException {
        for (KeyValue arena : store.range(keys.arenasOf(node), keys.arenasOf(node).prefixEnd(), 0, false, 0, REQUEST_NS).keyValues()) {
            List<Compare> compares = new ArrayList<>(going(node, intent, claim));
            compares.add(Compare.modRevision(arena.key(), arena.modRevision()));
            if (!committed(new Txn(compares, List.of(Op.delete(arena.key()), Op.put(keys.freeArena(keys.parseArena(arena.key()).id()), arena.value())), List.of()))) {
                return false;
            }
        }
        return true;
    }

    /** The fence is done. False: it came back just before. */
    boolean finish(String node, KeyValue intent, Claim claim) throws StoreUnavailableException, StoreRejectedException {
        FenceIntent read = intent(intent);
        FenceDone done = FenceDone.newBuilder().setAtNs(clock.realtimeNs()).setController(controller).setIntent(intent.createRevision()).setSession(read.getSession())
                .setGeneration(read.getRaisedTo()).setSaw(read.getSaw()).build();
        List<Compare> compares = new ArrayList<>(going(node, intent, claim));
        compares.add(Compare.noneIn(keys.arenasOf(node), keys.arenasOf(node).prefixEnd()));
        List<Op> ops = new ArrayList<>(List.of(Op.put(keys.fenceDone(node), done.toByteArray()), Op.delete(keys.fencePending(node)), Op.delete(keys.fenceClaim(node)), Op.delete(keys.departed(node))));
        KeyValue registered = store.range(keys.registered(node), null, 0, false, 0, REQUEST_NS).only();
        if (registered != null) {
            // Nothing of the sessions that it names is on its way any more: its next process need not have the device say so, which not every device can.
            compares.add(Compare.modRevision(keys.registered(node), registered.modRevision()));
            ops.add(Op.put(keys.registered(node), quiet(registered)));
        }
        return committed(new Txn(compares, ops, List.of()));
    }

    private static byte[] quiet(KeyValue registered) {
        try {
            return Registered.parseFrom(registered.value()).toBuilder().setQuiet(true).build().toByteArray();
        } catch (InvalidProtocolBufferException e) {
            // Whoever has to go by it will say so.
            return registered.value();
        }
    }

    /** An outcome that is unknown is for the caller to find out, by beginning again with what is there. */
    private boolean committed(Txn txn) throws StoreUnavailableException, StoreRejectedException {
        return switch (store.commit(txn, REQUEST_NS)) {
            case Outcome.Committed c -> true;
            case Outcome.Conflict c -> false;
            case Outcome.Unknown(String cause, boolean noSpace) -> throw new StoreUnavailableException(cause);
        };
    }

    /** A record that can't be read is not taken for a reason to let the node go on. */
    static FenceIntent intent(KeyValue kv) {
        try {
            return FenceIntent.parseFrom(kv.value());
        } catch (InvalidProtocolBufferException e) {
            return FenceIntent.getDefaultInstance();
        }
    }

    private static long generation(KeyValue kv) {
        try {
            return kv == null ? 0 : Generation.parseFrom(kv.value()).getGeneration();
        } catch (InvalidProtocolBufferException e) {
            // What a guard compares is the record's revision: a damaged one is raised like any other.
            return 0;
        }
    }
}
