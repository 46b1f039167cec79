package io.etcfs.aws;

import io.etcfs.core.device.DeviceException;
import io.etcfs.core.fence.Fencer;
import io.etcfs.core.fence.Severing;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/**
 * Cuts an instance off from the volume: detaches it by force and waits until EC2 says that it is detached. All nodes on that instance lose it.
 *
 * <p>EC2's answers may be older than what it was asked for. So an instance counts as detached only after it was asked to be, when two answers in a row say so that know of this node's own
 * attachment.
 */
final class EbsFencer implements Fencer {
    private static final int EIO = 5;
    private static final int ANSWERS = 2;
    private static final int STANDING_TRIES = 10;
    private static final Duration STANDING_RETRY = Duration.ofMillis(200);

    /** {@code every}: between two looks, doubled for as long as EC2 throttles. {@code limit}: for one instance, after which it is not confirmed. */
    record Patience(Duration every, Duration limit) {}

    /** A controller gives up on a fencer after a minute. */
    static final Patience PATIENCE = new Patience(Duration.ofSeconds(2), Duration.ofSeconds(40));

    private final Volume volume;
    private final String instance;
    private final Patience patience;
    /** Machines of this node's earlier sessions that are cut off: an admission that took too long goes on after them. */
    private final Set<String> cutOff = ConcurrentHashMap.newKeySet();
    private volatile boolean attached;

    /** @param instance that this node runs on */
    EbsFencer(Volume volume, String instance, Patience patience) {
        this.volume = volume;
        this.instance = instance;
        this.patience = patience;
    }

    @Override
    public boolean registers() {
        return true;
    }

    @Override
    public String machine() {
        return instance + "/" + volume.id();
    }

    @Override
    public void admit(long session, List<Long> older, boolean quiet, Standing standing) throws DeviceException {
        admit(session, older, List.of(), quiet, standing);
    }

    /** What ran on this instance before has ended: the lock of the node's name is held by this process. */
    @Override
    public void admit(long session, List<Long> older, List<String> machines, boolean quiet, Standing standing) throws DeviceException {
        require(standing);
        if (!attached) {
            requireAttached();
        }
        for (String machine : machines) {
            if (!quiet && !machine.equals(machine()) && !cutOff.contains(machine)) {
                Severing severing = cutOff(machine);
                if (!severing.confirmed()) {
                    throw new DeviceException(EIO, "its last process ran on " + machine + ", which is not cut off: " + severing.saw());
                }
                cutOff.add(machine);
            }
        }
        require(standing);
    }

    private static void require(Standing standing) throws DeviceException {
        for (int i = 0; i < STANDING_TRIES; i++) {
            try {
                if (!standing.stands()) {
                    throw new DeviceException(EIO, "the session has ended");
                }
                return;
            } catch (StoreUnavailableException | StoreRejectedException e) {
                LockSupport.parkNanos(STANDING_RETRY.toNanos());
            }
        }
        throw new DeviceException(EIO, "etcd does not say whether the session is there");
    }

    private void requireAttached() throws DeviceException {
        try {
            String state = volume.attachments().get(instance);
            if (!"attached".equals(state)) {
                throw new DeviceException(EIO, "volume " + volume.id() + " is not attached to this instance, " + instance + (state == null ? "" : " (" + state + ")"));
            }
            attached = true;
        } catch (Ec2Exception e) {
            throw new DeviceException(EIO, e.getMessage());
        }
    }

    @Override
    public Severing sever(Vanished vanished) {
        if (vanished.machines().isEmpty()) {
            return new Severing(false, "it is not recorded on which instance the node ran: was it mounted with --fencer ebs?");
        }
        for (String machine : vanished.machines()) {
            Severing severing = cutOff(machine);
            if (!severing.confirmed()) {
                return severing;
            }
        }
        return new Severing(true, "detached from " + String.join(", ", vanished.machines()));
    }

    private Severing cutOff(String machine) {
        int slash = machine.indexOf('/');
        String victim = slash < 0 ? machine : machine.substring(0, slash);
        if (!machine.substring(slash + 1).equals(volume.id())) {
            return new Severing(false, "it had volume " + machine.substring(slash + 1) + ", this node has " + volume.id());
        }
        if (victim.equals(instance)) {
            return new Severing(false, "it ran on the instance that this node runs on, " + instance);
        }
        long until = System.nanoTime() + patience.limit().toNanos();
        long wait = patience.every().toNanos();
        boolean asked = false;
        int agreeing = 0;
        String saw;
        while (true) {
            try {
                if (!asked) {
                    volume.detach(victim);
                    asked = true;
                }
                Map<String, String> attachments = volume.attachments();
                String state = attachments.getOrDefault(victim, "detached");
                wait = patience.every().toNanos();
                if (!"attached".equals(attachments.get(instance))) {
                    agreeing = 0;
                    saw = "EC2 does not show volume " + volume.id() + " attached to this node's instance, " + instance + ": its answer is not believed";
                } else if (state.equals("detached")) {
                    if (++agreeing == ANSWERS) {
                        return new Severing(true, "volume " + volume.id() + " is detached from " + victim);
                    }
                    saw = "volume " + volume.id() + " seems to be detached from " + victim;
                } else {
                    agreeing = 0;
                    saw = "volume " + volume.id() + " is still '" + state + "' at " + victim;
                }
            } catch (Ec2Exception e) {
                saw = e.getMessage();
                switch (e.kind()) {
                    case NOT_ATTACHED -> asked = true;
                    case THROTTLED -> wait = 2 * wait;
                    case OTHER -> {
                        return new Severing(false, saw);
                    }
                }
            }
            if (System.nanoTime() + wait >= until) {
                return new Severing(false, saw);
            }
            LockSupport.parkNanos(wait);
        }
    }
}
