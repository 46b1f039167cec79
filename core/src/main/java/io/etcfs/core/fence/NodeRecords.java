package io.etcfs.core.fence;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.record.Keys;
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

/** What etcd has about whether a node is there, all read at one revision. A record that is not there is null. */
record NodeRecords(String node, KeyValue generation, KeyValue membership, KeyValue session, KeyValue departed, KeyValue pending, KeyValue claim, KeyValue done, boolean ownsArenas, boolean hasOpened, KeyValue batch, KeyValue registered) {
    enum Verdict {
        /** No node of that name ever was. */
        UNKNOWN,
        /** It has a generation and has never owned or published anything, nor may the device know it: most likely it is joining for the first time, and a member in a moment. */
        NEW,
        /** A member, or with a session of which it registers again in a moment. */
        PRESENT,
        /** Departed, and owns nothing: nothing is to be done. A mark beside arenas is not believed. */
        LEFT,
        /** Fenced, and not back since. */
        FENCED,
        /** There is an intent to fence it. */
        PENDING,
        /** It vanished, and nobody has recorded so. */
        GONE
    }

    static NodeRecords read(MetadataStore store, Keys keys, String node, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        Outcome read = store.commit(new Txn(List.of(), List.of(Op.get(keys.generation(node)), Op.get(keys.membership(node)), Op.get(keys.session(node)), Op.get(keys.departed(node)),
                Op.get(keys.fencePending(node)), Op.get(keys.fenceClaim(node)), Op.get(keys.fenceDone(node)), Op.prefix(keys.arenasOf(node), 1), Op.prefix(keys.openedBy(node), 1), Op.get(keys.batch(node)), Op.get(keys.registered(node))), List.of()), timeoutNs);
        if (!(read instanceof Outcome.Committed(TxnResult r))) {
            throw new StoreUnavailableException("the records of node " + node + " can't be read: " + read);
        }
        return new NodeRecords(node, r.ranged(0).only(), r.ranged(1).only(), r.ranged(2).only(), r.ranged(3).only(), r.ranged(4).only(), r.ranged(5).only(), r.ranged(6).only(),
                r.ranged(7).count() > 0, r.ranged(8).count() > 0, r.ranged(9).only(), r.ranged(10).only());
    }

    Verdict verdict() {
        if (membership != null || session != null) {
            return Verdict.PRESENT;
        }
        if (pending != null) {
            return Verdict.PENDING;
        }
        if (departed != null && !ownsArenas && !Fault.DEPARTURE_NOT_HONOURED.on()) {
            return Verdict.LEFT;
        }
        if (done != null && !Fault.FENCED_AGAIN.on()) {
            return Verdict.FENCED;
        }
        if (generation == null) {
            return Verdict.UNKNOWN;
        }
        return generation.version() == 1 && batch == null && departed == null && !ownsArenas && !hasOpened && registered == null ? Verdict.NEW : Verdict.GONE;
    }

    /** The sessions that the device may accept writes of. All before the intent that was read with them. */
    List<Long> admitted() {
        return registration().getSessionsList();
    }

    /** On which those may run. */
    List<String> machines() {
        return registration().getMachinesList();
    }

    private Registered registration() {
        try {
            return registered == null ? Registered.getDefaultInstance() : Registered.parseFrom(registered.value());
        } catch (InvalidProtocolBufferException e) {
            throw new IllegalArgumentException("damaged record " + registered.key());
        }
    }

    static long modRevision(KeyValue kv) {
        return kv == null ? 0 : kv.modRevision();
    }
}
