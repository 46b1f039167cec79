package io.etcfs.etcd;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnsafeByteOperations;
import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.OpResult;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.TxnResult;
import io.etcfs.core.store.WatchEvent;
import io.etcfs.etcd.wire.DeleteRangeRequest;
import io.etcfs.etcd.wire.Event;
import io.etcfs.etcd.wire.PutRequest;
import io.etcfs.etcd.wire.RangeRequest;
import io.etcfs.etcd.wire.RangeResponse;
import io.etcfs.etcd.wire.RequestOp;
import io.etcfs.etcd.wire.ResponseOp;
import io.etcfs.etcd.wire.TxnRequest;
import io.etcfs.etcd.wire.TxnResponse;
import java.util.ArrayList;
import java.util.List;

/** The port's values to etcd's messages and back. Arrays are shared, not copied, on the way out: callers do not change what they have handed over. */
final class Wire {
    private Wire() {}

    static ByteString bytes(byte[] bytes) {
        return UnsafeByteOperations.unsafeWrap(bytes);
    }

    static ByteString bytes(Key key) {
        return key == null ? ByteString.EMPTY : bytes(key.bytes());
    }

    static TxnRequest txn(Txn txn) {
        TxnRequest.Builder request = branches(txn);
        if (comparesOnly(txn)) {
            // Without it a member would answer from what it knows, however far it is behind: etcd takes such a transaction for one that is content with that.
            request.addFailure(op(Op.get(txn.compares().getFirst().key())));
        }
        return request.build();
    }

    private static TxnRequest.Builder branches(Txn txn) {
        TxnRequest.Builder request = TxnRequest.newBuilder();
        for (Compare compare : txn.compares()) {
            request.addCompare(compare(compare));
        }
        for (Op op : txn.success()) {
            request.addSuccess(op(op));
        }
        for (Op op : txn.failure()) {
            request.addFailure(op(op));
        }
        return request;
    }

    private static boolean comparesOnly(Txn txn) {
        return txn.success().isEmpty() && txn.failure().isEmpty() && !txn.compares().isEmpty();
    }

    private static io.etcfs.etcd.wire.Compare compare(Compare compare) {
        io.etcfs.etcd.wire.Compare.Builder wire = io.etcfs.etcd.wire.Compare.newBuilder()
            .setKey(bytes(compare.key()))
            .setRangeEnd(bytes(compare.rangeEnd()))
            .setResult(switch (compare.relation()) {
                case EQUAL -> io.etcfs.etcd.wire.Compare.Result.EQUAL;
                case NOT_EQUAL -> io.etcfs.etcd.wire.Compare.Result.NOT_EQUAL;
                case GREATER -> io.etcfs.etcd.wire.Compare.Result.GREATER;
                case LESS -> io.etcfs.etcd.wire.Compare.Result.LESS;
            });
        return switch (compare.target()) {
            case CREATE_REVISION -> wire.setTarget(io.etcfs.etcd.wire.Compare.Target.CREATE).setCreateRevision(compare.number()).build();
            case MOD_REVISION -> wire.setTarget(io.etcfs.etcd.wire.Compare.Target.MOD).setModRevision(compare.number()).build();
            case VERSION -> wire.setTarget(io.etcfs.etcd.wire.Compare.Target.VERSION).setVersion(compare.number()).build();
            case VALUE -> wire.setTarget(io.etcfs.etcd.wire.Compare.Target.VALUE).setValue(bytes(compare.value())).build();
            case LEASE -> wire.setTarget(io.etcfs.etcd.wire.Compare.Target.LEASE).setLease(compare.number()).build();
        };
    }

    private static RequestOp op(Op op) {
        RequestOp.Builder wire = RequestOp.newBuilder();
        return switch (op) {
            case Op.Put put -> wire.setRequestPut(PutRequest.newBuilder().setKey(bytes(put.key())).setValue(bytes(put.value())).setLease(put.leaseId())).build();
            case Op.Delete delete -> wire.setRequestDeleteRange(DeleteRangeRequest.newBuilder().setKey(bytes(delete.key())).setRangeEnd(bytes(delete.end()))).build();
            case Op.Range range -> wire.setRequestRange(range(range.key(), range.end(), range.limit(), range.keysOnly(), 0)).build();
            case Op.Nested nested -> wire.setRequestTxn(branches(nested.txn())).build();
        };
    }

    static RangeRequest range(Key key, Key end, long limit, boolean keysOnly, long atRevision) {
        return RangeRequest.newBuilder()
            .setKey(bytes(key))
            .setRangeEnd(bytes(end))
            .setLimit(limit)
            .setKeysOnly(keysOnly)
            .setRevision(atRevision)
            .build();
    }

    /** @param txn what it answers */
    static TxnResult txnResult(Txn txn, TxnResponse response) {
        TxnResult result = txnResult(response, response.getHeader().getRevision());
        return comparesOnly(txn) ? new TxnResult(result.revision(), result.succeeded(), List.of()) : result;
    }

    /** Nested answers carry no revision of their own: it is the outer one's. */
    private static TxnResult txnResult(TxnResponse response, long revision) {
        List<OpResult> results = new ArrayList<>(response.getResponsesCount());
        for (ResponseOp op : response.getResponsesList()) {
            results.add(switch (op.getResponseCase()) {
                case RESPONSE_RANGE -> ranged(op.getResponseRange());
                case RESPONSE_PUT -> new OpResult.Put();
                case RESPONSE_DELETE_RANGE -> new OpResult.Deleted(op.getResponseDeleteRange().getDeleted());
                case RESPONSE_TXN -> new OpResult.Nested(txnResult(op.getResponseTxn(), revision));
                case RESPONSE_NOT_SET -> throw new IllegalArgumentException("etcd answered a transaction with an unknown kind of result");
            });
        }
        return new TxnResult(revision, response.getSucceeded(), List.copyOf(results));
    }

    private static OpResult.Ranged ranged(RangeResponse response) {
        return new OpResult.Ranged(keyValues(response), response.getMore(), response.getCount());
    }

    static List<KeyValue> keyValues(RangeResponse response) {
        List<KeyValue> out = new ArrayList<>(response.getKvsCount());
        for (io.etcfs.etcd.wire.KeyValue kv : response.getKvsList()) {
            out.add(keyValue(kv));
        }
        return List.copyOf(out);
    }

    private static KeyValue keyValue(io.etcfs.etcd.wire.KeyValue kv) {
        return new KeyValue(Key.of(kv.getKey().toByteArray()), kv.getValue().toByteArray(), kv.getCreateRevision(), kv.getModRevision(), kv.getVersion(), kv.getLease());
    }

    static WatchEvent event(Event event) {
        return new WatchEvent(event.getType() == Event.EventType.DELETE ? WatchEvent.Kind.DELETE : WatchEvent.Kind.PUT, keyValue(event.getKv()));
    }
}
