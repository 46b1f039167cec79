package io.etcfs.etcd;

import io.etcfs.core.store.MetadataStore;
import io.etcfs.testkit.store.EtcdServers;
import io.etcfs.testkit.store.MetadataStoreContract;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

/** The store's contract, against one real etcd. */
class EtcdStoreTest extends MetadataStoreContract {
    private static EtcdServers servers;
    private static EtcdStore store;

    @BeforeAll
    static void start() throws Exception {
        servers = EtcdServers.start(1);
        store = TestStores.open(servers);
    }

    @AfterAll
    static void stop() {
        store.close();
        servers.close();
    }

    @Override
    protected MetadataStore store() {
        return store;
    }

    @Override
    protected void compact(long revision) throws Exception {
        store.compact(revision, 5_000_000_000L);
    }
}
