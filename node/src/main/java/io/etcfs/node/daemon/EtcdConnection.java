package io.etcfs.node.daemon;

import io.etcfs.core.clock.Clock;
import io.etcfs.core.clock.Tasks;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.StoreStatus;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.etcd.EtcdOptions;
import io.etcfs.etcd.EtcdStore;
import io.etcfs.etcd.EtcdVersion;
import io.etcfs.linux.clock.BootClock;
import io.etcfs.node.host.Refusal;
import java.util.List;

/**
 * Which etcd, and whether old releases of it are accepted.
 *
 * @param allowOld take members older than {@link EtcdVersion#MINIMUM}
 */
public record EtcdConnection(EtcdOptions options, boolean allowOld) {
    private static final int STATUS_ATTEMPTS = 3;

    /**
     * Begins to connect; whether etcd answers shows in the first request.
     *
     * @param exitCode of the refusal, if a TLS file has not the form it must have
     */
    public MetadataStore open(Clock clock, Tasks tasks, int exitCode) throws Refusal {
        try {
            return new EtcdStore(options, clock, tasks);
        } catch (IllegalArgumentException e) {
            throw new Refusal(exitCode, e.getMessage() + ": check the --etcd options");
        }
    }

    /** The same, for a command that asks a few things and ends. */
    public MetadataStore open(int exitCode) throws Refusal {
        return open(new BootClock(), (name, body) -> Thread.ofVirtual().name(name).start(body), exitCode);
    }

    /**
     * Asks all members for their state, and requires that those that answer are new enough.
     *
     * @param exitCode of the refusal
     */
    public StoreStatus requireUsable(MetadataStore store, long timeoutNs, int exitCode) throws Refusal {
        StoreStatus status = null;
        for (int attempt = 1; status == null; attempt++) {
            try {
                status = store.status(timeoutNs);
            } catch (StoreUnavailableException e) {
                // The first connection of a process, on a machine that is just booting or otherwise busy, can take longer than any answer.
                if (attempt == STATUS_ATTEMPTS) {
                    throw new Refusal(exitCode, unavailable(e));
                }
            }
        }
        List<String> complaints = EtcdVersion.MINIMUM.complaints(status);
        if (!allowOld && !complaints.isEmpty()) {
            throw new Refusal(exitCode, String.join("; ", complaints) + ": upgrade etcd, or for tests give --etcd-allow-old");
        }
        return status;
    }

    /** One line for a user whose etcd can't be reached. */
    public String unavailable(StoreUnavailableException e) {
        return "etcd does not answer (" + e.getMessage() + "): check --etcd and that the cluster has a leader";
    }
}
