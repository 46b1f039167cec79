package io.etcfs.core.session;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.FenceDone;
import io.etcfs.core.record.proto.Registered;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.TxnResult;
import java.util.List;

/**
 * Which sessions of a node have no write left on its way to the device. Three records say so: a newer session, which is opened only when the writes of the
 * older ones have ended; a clean departure, which waits for them in the same way; a fence that is done, after which none can land.
 *
 * <p>Where the device has to be told of sessions it can have writes of older ones under way until it has been: a session says so only once {@code registered:} names no
 * older one beside it.
 */
public final class EndedSessions {
    private static final long REQUEST_NS = 2_000_000_000L;

    private final MetadataStore store;
    private final Keys keys;

    public EndedSessions(MetadataStore store, Keys keys) {
        this.store = store;
        this.keys = keys;
    }

    /** A revision: every session of the node with a lower one has ended so. 0: none is known to. */
    public long before(String node) throws StoreUnavailableException, StoreRejectedException {
        Outcome read = store.commit(new Txn(List.of(), List.of(Op.get(keys.session(node)), Op.get(keys.departed(node)), Op.get(keys.fenceDone(node)), Op.prefix(keys.arenasOf(node), 1), Op.get(keys.registered(node))),
                List.of()), REQUEST_NS);
        if (!(read instanceof Outcome.Committed(TxnResult r))) {
            throw new StoreUnavailableException("the sessions of node " + node + " can't be read: " + read);
        }
        KeyValue session = r.ranged(0).only();
        KeyValue departed = r.ranged(1).only();
        KeyValue done = r.ranged(2).only();
        long before = session == null ? 0 : admittedSince(session, r.ranged(4).only());
        // A departure beside arenas is not believed, here as by those who would fence the node.
        if (departed != null && r.ranged(3).count() == 0) {
            before = Math.max(before, departed.modRevision());
        }
        try {
            return done == null ? before : Math.max(before, FenceDone.parseFrom(done.value()).getIntent());
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record " + done.key());
        }
    }

    /** The session, or the oldest one whose writes the device has not ended for it yet. */
    private static long admittedSince(KeyValue session, KeyValue registered) {
        long since = session.createRevision();
        if (registered == null || Fault.ENDED_BEFORE_ADMITTED.on()) {
            return since;
        }
        try {
            Registered record = Registered.parseFrom(registered.value());
            return record.getQuiet() ? since : record.getSessionsList().stream().reduce(since, Math::min);
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record " + registered.key());
        }
    }
}
