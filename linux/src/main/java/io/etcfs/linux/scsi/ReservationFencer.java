package io.etcfs.linux.scsi;

import io.etcfs.core.device.DeviceException;
import io.etcfs.core.fence.Fencer;
import io.etcfs.core.fence.Severing;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.linux.call.ErrorNumbers;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * Persistent reservations: each session registers its create revision as a key, and a node is severed by taking its keys away. PREEMPT alone leaves what the unit had accepted before
 * to its end, so that a reset of the unit follows, whose answer waits for that; PREEMPT AND ABORT is not used, as not every target has it.
 *
 * <p>The reservation is never released. Its holder leaves without unregistering: else there would be none for a moment, and whoever was severed could write.
 */
public final class ReservationFencer implements Fencer {
    /** No session has it: revisions of etcd are not negative. */
    private static final long CLEARING_KEY = 0x8000_0000_0000_0001L;
    private static final long RETRY_NS = 200_000_000L;
    /** Of asking etcd: for a new session, which would not live longer; for one that has writes waiting. */
    private static final int FEW_TRIES = 10;
    private static final int MANY_TRIES = 300;
    private static final String NOT_SETTLED = "the unit does not say that what it had accepted has ended (it does not reset)";

    /** Such a node writes as whatever its host is registered for: that no key of it is left says nothing. */
    private static final String NEVER_REGISTERED = "it is not recorded that the node registered with the device (was it mounted with --no-fencer?), so it can't be cut off: "
            + "mount it again, or see to it that it has ended and declare it dead (etcfsctl node declare-dead)";

    private final ReservedUnit unit;
    private final Reservations usual;
    /** The key that this node has registered; 0: none yet. */
    private volatile long own;

    public ReservationFencer(ReservedUnit unit) {
        this.unit = unit;
        this.usual = unit.reservations();
    }

    @Override
    public boolean registers() {
        return true;
    }

    @Override
    public String boot() {
        return unit.boot();
    }

    /** With its next key in the place of the last one, whose writes may be under way, nobody could sever it: so a unit that can't end those is left as it is. */
    @Override
    public void prepare(List<Long> older) throws DeviceException {
        if (!usual.settle(false)) {
            throw new DeviceException(ErrorNumbers.EBUSY, "this node did not leave in order, and " + NOT_SETTLED + ": mount it again once another node has fenced it (etcfsctl status), or declare it dead (etcfsctl node declare-dead)");
        }
    }

    @Override
    public void admit(long session, List<Long> older, boolean quiet, Standing standing) throws DeviceException {
        boolean[] olderEnded = new boolean[1];
        boolean[] admitted = new boolean[1];
        unit.admit(reservations -> {
            int tries = admitted[0] ? MANY_TRIES : FEW_TRIES;
            // What does not stand any more spares itself the rest.
            require(standing, tries);
            reservations.register(session, older);
            reserve(reservations, session);
            if (!olderEnded[0]) {
                boolean taken = preempt(reservations, session, older);
                if (!quiet && !reservations.settle(taken)) {
                    throw new DeviceException(ErrorNumbers.EIO, NOT_SETTLED);
                }
                olderEnded[0] = true;
            }
            List<Long> keys = reservations.keys();
            if (!keys.contains(session) || older.stream().anyMatch(keys::contains)) {
                throw new DeviceException(ErrorNumbers.EIO, "the registrations read back differently from what was made: " + hex(keys));
            }
            require(standing, tries);
            admitted[0] = true;
        });
        own = session;
    }

    /** Takes a unit from whoever has it reserved. Nobody is held back any more: for a device that is made new. */
    public static void clear(ReservedUnit unit) throws DeviceException {
        Reservations reservations = unit.reservations();
        List<Long> keys = reservations.keys();
        if (reservations.type() != Reservations.NO_TYPE || !keys.isEmpty()) {
            reservations.register(CLEARING_KEY, keys);
            reservations.clear(CLEARING_KEY);
        }
    }

    private static void require(Standing standing, int tries) throws DeviceException {
        for (int i = 0; i < tries; i++) {
            try {
                if (!standing.stands()) {
                    throw new DeviceException(ErrorNumbers.EIO, "the session has ended");
                }
                return;
            } catch (StoreUnavailableException | StoreRejectedException e) {
                LockSupport.parkNanos(RETRY_NS);
            }
        }
        throw new DeviceException(ErrorNumbers.EIO, "etcd does not say whether the session is there");
    }

    private static void reserve(Reservations reservations, long key) throws DeviceException {
        int type = reservations.type();
        if (type == Reservations.NO_TYPE && !reservations.reserve(key)) {
            type = reservations.type();
        }
        if (type != Reservations.NO_TYPE && type != Reservations.WRITE_EXCLUSIVE_REGISTRANTS_ONLY) {
            throw new DeviceException(ErrorNumbers.EBUSY, "the unit is reserved otherwise, with type " + type + ": release that first");
        }
    }

    /** Whether each victim was there, and it was this that took it away. */
    private static boolean preempt(Reservations reservations, long own, List<Long> victims) throws DeviceException {
        List<Long> present = reservations.keys();
        boolean all = true;
        for (long victim : victims) {
            if (victim != own) {
                all &= present.contains(victim) && reservations.preempt(own, victim);
            }
        }
        return all;
    }

    @Override
    public Severing sever(Vanished vanished) {
        long key = own;
        if (key == 0) {
            return new Severing(false, "this node has not registered with the device");
        }
        List<Long> victims = vanished.registered().stream().filter(s -> s < vanished.before()).toList();
        if (victims.isEmpty()) {
            return new Severing(false, NEVER_REGISTERED);
        }
        try {
            boolean taken = preempt(usual, key, victims);
            if (!usual.settle(taken)) {
                return new Severing(false, NOT_SETTLED);
            }
            return readBack(usual, key, victims);
        } catch (DeviceException e) {
            return new Severing(false, e.getMessage());
        }
    }

    private static Severing readBack(Reservations reservations, long own, List<Long> victims) throws DeviceException {
        int type = reservations.type();
        List<Long> keys = reservations.keys();
        List<Long> left = new ArrayList<>(victims);
        left.retainAll(keys);
        if (type != Reservations.WRITE_EXCLUSIVE_REGISTRANTS_ONLY || !keys.contains(own)) {
            return new Severing(false, "the unit is not reserved as it should be: type " + type + ", keys " + hex(keys));
        }
        return left.isEmpty() ? new Severing(true, "keys " + hex(victims) + " are not registered any more, and what they had begun has ended") : new Severing(false, "keys " + hex(left) + " are still registered");
    }

    private static List<String> hex(List<Long> keys) {
        return keys.stream().map(Long::toHexString).toList();
    }
}
