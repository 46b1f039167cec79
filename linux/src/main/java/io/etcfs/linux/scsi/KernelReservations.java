package io.etcfs.linux.scsi;

import io.etcfs.core.device.DeviceException;
import io.etcfs.linux.call.ErrorNumbers;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;

/**
 * By the kernel's calls (linux/pr.h), which change and can't read. The initiator is the host: what one of its processes registers counts for all. So a key that is not this node's is never
 * replaced: whoever severs the other node would find its key gone, and its writes would go on under ours.
 */
final class KernelReservations implements Reservations {
    private static final int TRIES = 4;
    private static final long RETRY_NS = 50_000_000L;

    /** What the calls are made on. */
    interface Device {
        /** Minus an errno, or what the kernel says. */
        int call(PrCall call);

        /** What is registered, and the reservation's type as SPC-4 counts. */
        List<Long> keys() throws DeviceException;

        int type() throws DeviceException;

        /** Has all end that the unit had accepted. False: it can't. */
        boolean reset() throws DeviceException;
    }

    private final String name;
    private final Device device;
    /** The key that was registered last; 0: none. */
    private long own;

    /** @param name of the device, for messages */
    KernelReservations(String name, Device device) {
        this.name = name;
        this.device = device;
    }

    @Override
    public synchronized void register(long key, List<Long> older) throws DeviceException {
        Set<Long> mine = new LinkedHashSet<>(List.of(own, key));
        mine.addAll(older.reversed());
        mine.add(0L);
        for (long old : mine) {
            if (done(PrCall.register(old, key))) {
                own = key;
                return;
            }
        }
        throw new DeviceException(ErrorNumbers.EBUSY, name + ": this host is registered with another key: it can have one node of a device only, so end the other one; a key that was left behind goes with sg_persist --register or --clear");
    }

    @Override
    public boolean reserve(long key) throws DeviceException {
        return done(PrCall.reserve(key));
    }

    @Override
    public boolean preempt(long own, long victim) throws DeviceException {
        return done(PrCall.preemptAndAbort(own, victim));
    }

    /** A preempting that aborts has answered when that is over. Who finds the key gone does not know whether it is. */
    @Override
    public boolean settle(boolean taken) throws DeviceException {
        return taken || device.reset();
    }

    @Override
    public void clear(long own) throws DeviceException {
        if (!done(PrCall.clear(own))) {
            throw new DeviceException(ErrorNumbers.EBADE, name + ": clear: reservation conflict");
        }
    }

    @Override
    public List<Long> keys() throws DeviceException {
        return device.keys();
    }

    @Override
    public int type() throws DeviceException {
        return device.type();
    }

    /** False: a conflict. A call that is repeated does no harm: at worst it finds done what it had done, and what is there is read afterwards. */
    private boolean done(PrCall call) throws DeviceException {
        int result = 0;
        for (int i = 0; i < TRIES; i++) {
            result = device.call(call);
            switch (PrStatus.of(result)) {
                case DONE -> {
                    return true;
                }
                case CONFLICT -> {
                    return false;
                }
                case UNSUPPORTED -> throw new DeviceException(-result, name + " has no persistent reservations (" + call.name() + ": " + ErrorNumbers.describe(-result) + ")");
                case FORBIDDEN -> throw new DeviceException(-result, name + ": " + call.name() + " is not allowed: it takes root, and a whole device, no partition");
                case FAILED, LOST -> LockSupport.parkNanos(RETRY_NS);
            }
        }
        throw new DeviceException(ErrorNumbers.EIO, name + ": " + call.name() + ": " + (result < 0 ? ErrorNumbers.describe(-result) : "status " + Integer.toHexString(result)));
    }
}
