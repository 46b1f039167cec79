package io.etcfs.etcd;

import io.etcfs.core.store.Key;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Txn;
import io.etcfs.testkit.store.EtcdServers;
import io.etcfs.testkit.store.MonotonicClock;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** Stores for tests, and the transactions they send. */
final class TestStores {
    static final long SECOND_NS = 1_000_000_000L;

    private TestStores() {}

    static EtcdStore open(EtcdServers servers) {
        return open(EtcdOptions.of(servers.endpoints().toArray(String[]::new)));
    }

    static EtcdStore open(EtcdOptions options) {
        return new EtcdStore(options, new MonotonicClock(), (name, body) -> Thread.ofVirtual().name(name).start(body));
    }

    static Txn put(String key, String value) {
        return new Txn(List.of(), List.of(Op.put(Key.of(key), value.getBytes(StandardCharsets.UTF_8))), List.of());
    }
}
