package io.etcfs.etcd;

import io.grpc.ConnectivityState;
import io.grpc.ManagedChannel;
import java.util.concurrent.atomic.AtomicLong;

/** One member of the cluster and a connection to it, which comes back by itself. */
final class Member {
    /** The transport waits up to two minutes between attempts; this is how often it is told not to. */
    private static final long HURRY_EVERY_NS = 500_000_000L;

    private final int index;
    private final Endpoint endpoint;
    private final ManagedChannel channel;
    private final AtomicLong hurriedAtNs = new AtomicLong(System.nanoTime() - HURRY_EVERY_NS);

    Member(int index, Endpoint endpoint, ManagedChannel channel) {
        this.index = index;
        this.endpoint = endpoint;
        this.channel = channel;
    }

    int index() {
        return index;
    }

    Endpoint endpoint() {
        return endpoint;
    }

    ManagedChannel channel() {
        return channel;
    }

    boolean ready() {
        return channel.getState(false) == ConnectivityState.READY;
    }

    /** Connects if there is no connection, soon also if earlier attempts failed. */
    void connect() {
        if (channel.getState(true) == ConnectivityState.TRANSIENT_FAILURE) {
            long nowNs = System.nanoTime();
            long lastNs = hurriedAtNs.get();
            if (nowNs - lastNs >= HURRY_EVERY_NS && hurriedAtNs.compareAndSet(lastNs, nowNs)) {
                channel.resetConnectBackoff();
            }
        }
    }

    @Override
    public String toString() {
        return endpoint.toString();
    }
}
