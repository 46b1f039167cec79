package io.etcfs.core.session;

import io.etcfs.core.clock.Monitor;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;

/** Asks etcd again and again for the same, for as long as there is time: what a node does when it leaves. */
final class Insist {
    private static final long RETRY_NS = 50_000_000L;
    private static final System.Logger LOG = System.getLogger(Insist.class.getName());

    /** True: it is done. It must do no harm to ask for it twice. */
    interface Request {
        boolean send() throws StoreUnavailableException, StoreRejectedException;
    }

    private Insist() {}

    /** False: it could not be done in time. Asked at least once. */
    static boolean on(String what, Monitor monitor, long untilNs, Request request) {
        while (true) {
            try {
                if (request.send()) {
                    return true;
                }
            } catch (StoreUnavailableException | StoreRejectedException e) {
                LOG.log(System.Logger.Level.WARNING, "could not {0}: {1}", what, e.getMessage());
            }
            if (monitor.nowNs() >= untilNs) {
                return false;
            }
            monitor.pause(RETRY_NS);
        }
    }
}
