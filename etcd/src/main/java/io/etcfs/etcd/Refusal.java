package io.etcfs.etcd;

import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreRejectedException.Reason;
import io.grpc.Status;

/**
 * Which errors say for certain that a request has had no effect and never will. All others leave a transaction unknown.
 *
 * <p>"database space exceeded" is not among them: etcd also answers so after it has applied the transaction that crossed the quota
 * (server/etcdserver/apply, {@code quotaApplierV3.Txn}).
 */
final class Refusal {
    private static final String NO_SPACE = "mvcc: database space exceeded";

    private Refusal() {}

    /** Why the request was refused, or null if that is not certain. */
    static StoreRejectedException of(Status status) {
        String text = text(status);
        Reason reason = switch (status.getCode()) {
            case INVALID_ARGUMENT -> text.startsWith("etcdserver: ") ? invalid(text) : null;
            case NOT_FOUND -> text.equals("etcdserver: requested lease not found") ? Reason.LEASE_NOT_FOUND : null;
            case OUT_OF_RANGE -> outOfRange(text);
            // The server's own words: the message never reached etcd. The client's words for an answer that is too large are others.
            case RESOURCE_EXHAUSTED -> text.startsWith("grpc: received message larger than max") ? Reason.TOO_LARGE : null;
            case UNAUTHENTICATED -> text.startsWith("etcdserver: ") ? Reason.UNAUTHENTICATED : null;
            case PERMISSION_DENIED -> text.startsWith("etcdserver: ") ? Reason.UNAUTHENTICATED : null;
            default -> null;
        };
        return reason == null ? null : new StoreRejectedException(reason, text);
    }

    /** Also refused, if all it asks is to read. */
    static StoreRejectedException ofRead(Status status) {
        if (status.getCode() == Status.Code.RESOURCE_EXHAUSTED && text(status).startsWith("gRPC message exceeds maximum size")) {
            return new StoreRejectedException(Reason.TOO_LARGE, "the answer is too large: " + text(status));
        }
        return of(status);
    }

    static boolean noSpace(Status status) {
        return status.getCode() == Status.Code.RESOURCE_EXHAUSTED && text(status).contains(NO_SPACE);
    }

    /** The request was refused for its token only, and may be asked again with a new one. */
    static boolean ofToken(String text) {
        return text.contains("invalid auth token") || text.contains("revision of auth store is old") || text.contains("user name is empty");
    }

    private static Reason invalid(String text) {
        if (text.equals("etcdserver: request is too large") || text.equals("etcdserver: too many operations in txn request")) {
            return Reason.TOO_LARGE;
        }
        if (ofToken(text) || text.startsWith("etcdserver: authentication failed")) {
            return Reason.UNAUTHENTICATED;
        }
        return Reason.INVALID;
    }

    private static Reason outOfRange(String text) {
        return switch (text) {
            case "etcdserver: mvcc: required revision has been compacted" -> Reason.COMPACTED;
            case "etcdserver: mvcc: required revision is a future revision" -> Reason.FUTURE;
            case "etcdserver: too large lease TTL" -> Reason.INVALID;
            default -> null;
        };
    }

    static String text(Status status) {
        return status.getDescription() == null ? "" : status.getDescription();
    }
}
