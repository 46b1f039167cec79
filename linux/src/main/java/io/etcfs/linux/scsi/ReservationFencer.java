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

    private final ReservedUnit unit;
    /** The key that this node has registered; 0: none yet. */
    private volatile long own;

    public ReservationFencer(ReservedUnit unit) {
        this.unit = unit;
    }

    @Override
    public boolean registers() {
        return true;
    }

    @Override
    public void admit(long session, List<Long> older, boolean quiet, Standing standing) throws DeviceException {
        boolean[] olderEnded = new boolean[1];
        boolean[] admitted = new boolean[1];
        unit.admit(on -> {
            Reservations reservations = new Reservations(on);
            int tries = admitted[0] ? MANY_TRIES : FEW_TRIES;
            // What does not stand any more spares itself the rest.
            require(standing, tries);
            reservations.register(session);
            reserve(reservations, session);
            if (!olderEnded[0]) {
                preempt(reservations, session, older);
                if (!quiet && !on.reset()) {
                    throw new DeviceException(ErrorNumbers.EIO, "the target does not reset the unit");
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
    public static void clear(ScsiUnit unit) throws DeviceException {
        Reservations reservations = new Reservations(unit);
        if (reservations.type() != Reservations.NO_TYPE || !reservations.keys().isEmpty()) {
            reservations.register(CLEARING_KEY);
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

    private static void preempt(Reservations reservations, long own, List<Long> victims) throws DeviceException {
        List<Long> present = reservations.keys();
        for (long victim : victims) {
            if (victim != own && present.contains(victim)) {
                reservations.preempt(own, victim);
            }
        }
    }

    @Override
    public Severing sever(Vanished vanished) {
        long key = own;
        if (key == 0) {
            return new Severing(false, "this node has not registered with the device");
        }
        List<Long> victims = vanished.registered().stream().filter(s -> s < vanished.before()).toList();
        try {
            Reservations reservations = new Reservations(unit);
            preempt(reservations, key, victims);
            if (!unit.reset()) {
                return new Severing(false, "the target does not reset the unit");
            }
            return readBack(reservations, key, victims);
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
        return left.isEmpty() ? new Severing(true, "keys " + hex(victims) + " are not registered any more, and the unit was reset") : new Severing(false, "keys " + hex(left) + " are still registered");
    }

    private static List<String> hex(List<Long> keys) {
        return keys.stream().map(Long::toHexString).toList();
    }
}
