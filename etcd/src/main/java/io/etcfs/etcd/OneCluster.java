package io.etcfs.etcd;

import io.etcfs.core.store.OtherClusterException;
import io.etcfs.etcd.wire.AuthenticateResponse;
import io.etcfs.etcd.wire.CompactionResponse;
import io.etcfs.etcd.wire.LeaseGrantResponse;
import io.etcfs.etcd.wire.LeaseKeepAliveResponse;
import io.etcfs.etcd.wire.LeaseRevokeResponse;
import io.etcfs.etcd.wire.RangeResponse;
import io.etcfs.etcd.wire.ResponseHeader;
import io.etcfs.etcd.wire.StatusResponse;
import io.etcfs.etcd.wire.TxnResponse;
import io.etcfs.etcd.wire.WatchResponse;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall;
import io.grpc.ForwardingClientCallListener;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Lets through what the cluster answers that answered first. An answer of another one ends its call as a failure, so that nobody gets to see it, and from then on {@link #require}
 * throws. All messages of all connections of a store pass here, those of watches too.
 */
final class OneCluster implements ClientInterceptor {
    /** An id of 0: an answer that does not say. */
    private final AtomicLong clusterId = new AtomicLong();
    private volatile String other;

    void require() {
        if (other != null) {
            throw new OtherClusterException(other);
        }
    }

    /** Whether a message from this address is of the cluster. */
    boolean admits(String from, Object message) {
        long id = header(message).getClusterId();
        if (id == 0 || clusterId.compareAndSet(0, id) || clusterId.get() == id) {
            return true;
        }
        other = from + " is in etcd cluster " + Long.toHexString(id) + ", who answered before was in " + Long.toHexString(clusterId.get());
        return false;
    }

    private static ResponseHeader header(Object message) {
        return switch (message) {
            case RangeResponse r -> r.getHeader();
            case TxnResponse r -> r.getHeader();
            case CompactionResponse r -> r.getHeader();
            case WatchResponse r -> r.getHeader();
            case LeaseGrantResponse r -> r.getHeader();
            case LeaseRevokeResponse r -> r.getHeader();
            case LeaseKeepAliveResponse r -> r.getHeader();
            case StatusResponse r -> r.getHeader();
            case AuthenticateResponse r -> r.getHeader();
            // Etcd fills in none elsewhere.
            default -> ResponseHeader.getDefaultInstance();
        };
    }

    @Override
    public <Q, R> ClientCall<Q, R> interceptCall(MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
        return new ForwardingClientCall.SimpleForwardingClientCall<>(next.newCall(method, options)) {
            @Override
            public void start(Listener<R> listener, Metadata headers) {
                super.start(new ForwardingClientCallListener.SimpleForwardingClientCallListener<>(listener) {
                    @Override
                    public void onMessage(R message) {
                        if (admits(next.authority(), message)) {
                            super.onMessage(message);
                        } else {
                            cancel("an answer of another cluster", null);
                        }
                    }
                }, headers);
            }
        };
    }
}
