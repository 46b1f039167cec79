package io.etcfs.etcd;

import io.grpc.ClientInterceptor;
import io.grpc.ManagedChannel;
import io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.NegotiationType;
import io.grpc.netty.NettyChannelBuilder;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import io.netty.util.concurrent.DefaultThreadFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Level;
import java.util.logging.Logger;
import javax.net.ssl.SSLException;

/**
 * The members of the cluster with a connection to each, and which one is asked first: the same one until it fails. Two of these do not share connections
 * or threads.
 */
final class Members implements AutoCloseable {
    /** Says at each start that there is no native transport. Held, since a logger nobody holds forgets its level. */
    private static final Logger TRANSPORT_METRICS = Logger.getLogger("io.grpc.netty.TcpMetrics");

    static {
        TRANSPORT_METRICS.setLevel(Level.WARNING);
    }

    private static final int MAX_INBOUND_BYTES = 64 << 20;
    private static final int CONNECT_TIMEOUT_MS = 2_000;

    /** Well above the 5 s below which etcd takes pings for an attack. */
    private static final long PING_AFTER_S = 10;
    private static final long PING_TIMEOUT_S = 3;

    private static final long READY_POLL_NS = 2_000_000L;

    private final EventLoopGroup threads;
    private final List<Member> all = new ArrayList<>();
    private final AtomicInteger preferred = new AtomicInteger();

    Members(String threadName, int threadCount, EtcdOptions options, ClientInterceptor... interceptors) {
        SslContext ssl = options.parsed().getFirst().tls() ? ssl(options) : null;
        threads = new NioEventLoopGroup(threadCount, new DefaultThreadFactory(threadName, true));
        for (Endpoint endpoint : options.parsed()) {
            all.add(new Member(all.size(), endpoint, channel(endpoint, ssl, interceptors)));
        }
    }

    private ManagedChannel channel(Endpoint endpoint, SslContext ssl, ClientInterceptor... interceptors) {
        NettyChannelBuilder builder = NettyChannelBuilder.forAddress(endpoint.host(), endpoint.port())
            .eventLoopGroup(threads)
            .channelType(NioSocketChannel.class)
            .withOption(ChannelOption.TCP_NODELAY, true)
            .withOption(ChannelOption.CONNECT_TIMEOUT_MILLIS, CONNECT_TIMEOUT_MS)
            // Answers are handed over on the connection's thread; whoever waits is a thread of its own.
            .directExecutor()
            // A request is sent once, also by the transport.
            .disableRetry()
            .disableServiceConfigLookUp()
            .proxyDetector(address -> null)
            .maxInboundMessageSize(MAX_INBOUND_BYTES)
            .idleTimeout(1, TimeUnit.DAYS)
            .keepAliveTime(PING_AFTER_S, TimeUnit.SECONDS)
            .keepAliveTimeout(PING_TIMEOUT_S, TimeUnit.SECONDS)
            .intercept(interceptors);
        if (ssl == null) {
            builder.negotiationType(NegotiationType.PLAINTEXT);
        } else {
            builder.sslContext(ssl);
        }
        return builder.build();
    }

    private static SslContext ssl(EtcdOptions options) {
        SslContextBuilder builder = GrpcSslContexts.configure(SslContextBuilder.forClient(), SslProvider.JDK);
        if (options.caFile() != null) {
            try {
                builder.trustManager(options.caFile().toFile());
            } catch (IllegalArgumentException e) {
                throw new IllegalArgumentException("etcd CA file " + options.caFile() + " holds no PEM certificate", e);
            }
        }
        if (options.certFile() != null) {
            try {
                builder.keyManager(options.certFile().toFile(), options.keyFile().toFile());
            } catch (IllegalArgumentException e) {
                throw new IllegalArgumentException(
                    "etcd client certificate " + options.certFile() + " or key " + options.keyFile() + " is not PEM (the key: unencrypted PKCS #8)", e);
            }
        }
        try {
            return builder.build();
        } catch (SSLException e) {
            throw new IllegalArgumentException("etcd TLS files can't be used: " + e.getMessage(), e);
        }
    }

    List<Member> all() {
        return all;
    }

    /** All members, the preferred one first. */
    List<Member> order() {
        int first = preferred.get();
        List<Member> order = new ArrayList<>(all.size());
        for (int i = 0; i < all.size(); i++) {
            order.add(all.get((first + i) % all.size()));
        }
        return order;
    }

    /** The first of the order that is connected, or null; starts to connect those that are not. */
    Member firstReady() {
        Member first = null;
        for (Member member : order()) {
            if (member.ready()) {
                first = first == null ? member : first;
            } else {
                member.connect();
            }
        }
        return first;
    }

    /** The member did not answer, or could not: the next that is connected is preferred from now on. */
    void failed(Member member) {
        if (all.size() == 1) {
            return;
        }
        int next = (member.index() + 1) % all.size();
        for (int i = 1; i < all.size(); i++) {
            int candidate = (member.index() + i) % all.size();
            if (all.get(candidate).ready()) {
                next = candidate;
                break;
            }
        }
        preferred.compareAndSet(member.index(), next);
    }

    /** As {@link #firstReady}, but waits for one; null if there is none in time. */
    Member awaitReady(long timeoutNs) throws InterruptedException {
        long startNs = System.nanoTime();
        Member member = firstReady();
        while (member == null && System.nanoTime() - startNs < timeoutNs) {
            TimeUnit.NANOSECONDS.sleep(READY_POLL_NS);
            member = firstReady();
        }
        return member;
    }

    void connectAll() {
        all.forEach(Member::connect);
    }

    @Override
    public void close() {
        all.forEach(member -> member.channel().shutdownNow());
        threads.shutdownGracefully(0, 1, TimeUnit.SECONDS);
    }
}
