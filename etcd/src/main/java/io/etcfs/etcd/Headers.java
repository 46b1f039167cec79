package io.etcfs.etcd;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.etcfs.etcd.wire.AuthGrpc;
import io.etcfs.etcd.wire.MaintenanceGrpc;
import java.util.function.Supplier;

/**
 * What each request carries beside its message: the token of the login, and the wish to be refused at once by a member that knows no leader, also in the
 * middle of a stream. Without it a member that is cut off from the others would keep its clients waiting.
 */
final class Headers implements ClientInterceptor {
    private static final Metadata.Key<String> TOKEN = Metadata.Key.of("token", Metadata.ASCII_STRING_MARSHALLER);
    private static final Metadata.Key<String> HAS_LEADER = Metadata.Key.of("hasleader", Metadata.ASCII_STRING_MARSHALLER);

    private final Supplier<String> token;

    Headers(Supplier<String> token) {
        this.token = token;
    }

    @Override
    public <Q, R> ClientCall<Q, R> interceptCall(MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
        boolean login = method.getServiceName().equals(AuthGrpc.SERVICE_NAME);
        boolean needsLeader = !method.getServiceName().equals(MaintenanceGrpc.SERVICE_NAME);
        return new ForwardingClientCall.SimpleForwardingClientCall<>(next.newCall(method, options)) {
            @Override
            public void start(Listener<R> listener, Metadata headers) {
                String current = token.get();
                if (!login && !current.isEmpty()) {
                    headers.put(TOKEN, current);
                }
                if (needsLeader) {
                    headers.put(HAS_LEADER, "true");
                }
                super.start(listener, headers);
            }
        };
    }
}
