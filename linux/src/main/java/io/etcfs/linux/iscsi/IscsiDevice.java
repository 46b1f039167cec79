package io.etcfs.linux.iscsi;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import io.etcfs.linux.call.ErrorNumbers;
import io.etcfs.linux.scsi.Reservations;
import io.etcfs.linux.scsi.ReservedUnit;
import io.etcfs.linux.scsi.ScsiCommand;
import io.etcfs.linux.scsi.ScsiResult;
import io.etcfs.linux.scsi.ScsiUnit;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.System.Logger.Level;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.zip.CRC32;

/**
 * A logical unit of an iSCSI target, over one login at a time. As with the kernel's own devices an access waits for a target that is away, and what was sent when the
 * connection broke is sent again; nothing is sent on a new one before all that the target had accepted on the last one has ended, so that no write lands after a later
 * one of the same blocks. An access that has waited for {@link #GONE_NS} ends the process, by what {@code gone} is: to answer it, one would have to know that it is over.
 *
 * <p>A registration may count for one connection only; the next has to be registered before it writes: {@link #admit}.
 */
public final class IscsiDevice implements BlockDevice, ScsiUnit, ReservedUnit {
    /** As the kernel's initiator gives up by default. */
    static final long GONE_NS = 120_000_000_000L;

    private static final long RECONNECT_MS = 500;
    private static final long AGAIN_MS = 5;
    private static final int MOST_AGAIN = 2_000;
    private static final int MOST_BYTES = 512 << 10;
    private static final int CAPACITY_BYTES = 32;
    private static final System.Logger LOG = System.getLogger(IscsiDevice.class.getName());

    /** @param admitted whether the admission was done on this connection */
    private record Login(IscsiConnection connection, boolean admitted) {}

    private final IscsiAddress address;
    private final String initiator;
    private final int isid;
    private final Runnable gone;
    /** Held by who replaces the connection, or has it admitted. */
    private final ReentrantLock lock = new ReentrantLock();
    private final CountDownLatch closed = new CountDownLatch(1);
    private volatile Login login;
    /** What has to be done on a new connection before anything is written on it. */
    private Admission admission = on -> {};
    private int blockBytes;
    /** As it was last asked for. */
    private volatile long sizeBytes;

    private IscsiDevice(IscsiAddress address, String name, Runnable gone) {
        this.address = address;
        this.initiator = initiatorName(name);
        this.isid = number(name);
        this.gone = gone;
    }

    /**
     * Logs in.
     *
     * @param name of who does, the same after each start: the target ends what an earlier login of that name has left
     * @param gone called when an access could not reach the target for too long, and must not return
     * @throws DeviceException the target can't be reached, refuses, or its blocks don't fit; EINVAL if the system has no libiscsi
     */
    public static IscsiDevice open(IscsiAddress address, String name, Runnable gone) throws DeviceException {
        IscsiDevice device = new IscsiDevice(address, name, gone);
        try {
            device.login = new Login(IscsiConnection.open(address, device.initiator, device.isid), true);
        } catch (UnsatisfiedLinkError e) {
            throw new DeviceException(ErrorNumbers.EINVAL, e.getMessage() + ": install libiscsi7");
        }
        try {
            device.adopt(device.askCapacity());
        } catch (DeviceException e) {
            device.close();
            throw e;
        }
        return device;
    }

    /** The name of the initiator by which {@code name} logs in. An iSCSI name has lower-case letters, digits, '-' and '.' only: the number tells apart what looks the same then. */
    public static String initiatorName(String name) {
        return "iqn.2025-01.io.etcfs:" + name.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9.-]", "-") + String.format("-%08x", number(name));
    }

    private static int number(String name) {
        CRC32 crc = new CRC32();
        crc.update(name.getBytes(StandardCharsets.UTF_8));
        return (int) crc.getValue();
    }

    /** @param last the unit's last block, in its own blocks of {@code blockBytes} */
    private record Capacity(long last, int blockBytes) {
        static Capacity of(MemorySegment answer) {
            return new Capacity(answer.get(ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN), 0), answer.get(ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN), 8));
        }

        long usableBytes() {
            return (last + 1) * blockBytes & -BLOCK_BYTES;
        }
    }

    /** Waits for the target, as an access does. */
    private Capacity askCapacity() throws DeviceException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment answer = arena.allocate(CAPACITY_BYTES, 8);
            require("read capacity", execute(ScsiCommand.readCapacity(answer)));
            return Capacity.of(answer);
        }
    }

    private void adopt(Capacity first) throws DeviceException {
        blockBytes = first.blockBytes;
        if (blockBytes <= 0 || BLOCK_BYTES % blockBytes != 0) {
            throw new DeviceException(ErrorNumbers.EINVAL, address + " has blocks of " + blockBytes + " bytes, which do not fit into " + BLOCK_BYTES);
        }
        sizeBytes = first.usableBytes();
    }

    @Override
    public Reservations reservations() {
        return Reservations.of(this);
    }

    @Override
    public void admit(Admission wanted) throws DeviceException {
        lock.lock();
        try {
            admission = wanted;
            login = new Login(login.connection, false);
            admit();
        } finally {
            lock.unlock();
        }
    }

    /** Asked for each time, as a unit can grow, but not waited for: while the target is away it is what it was. */
    @Override
    public long sizeBytes() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment answer = arena.allocate(CAPACITY_BYTES, 8);
            ScsiResult result = answered(login.connection, ScsiCommand.readCapacity(answer), () -> true);
            Capacity capacity = Capacity.of(answer);
            if (result.good() && capacity.blockBytes == blockBytes) {
                sizeBytes = capacity.usableBytes();
            }
        } catch (DeviceException e) {
            LOG.log(Level.DEBUG, "its size can''t be asked for: {0}", e.getMessage());
        }
        return sizeBytes;
    }

    /** It may have one: what its mode pages say is not asked. */
    @Override
    public boolean hasVolatileCache() {
        return true;
    }

    @Override
    public void read(long offsetBytes, MemorySegment target) throws DeviceException {
        check(offsetBytes, target);
        for (long done = 0; done < target.byteSize(); done += MOST_BYTES) {
            long bytes = Math.min(MOST_BYTES, target.byteSize() - done);
            require("read", execute(ScsiCommand.read((offsetBytes + done) / blockBytes, (int) (bytes / blockBytes), target.asSlice(done, bytes))));
        }
    }

    @Override
    public void write(long offsetBytes, MemorySegment source) throws DeviceException {
        write(offsetBytes, source, () -> true);
    }

    @Override
    public void write(long offsetBytes, MemorySegment source, BooleanSupplier may) throws DeviceException {
        check(offsetBytes, source);
        for (long done = 0; done < source.byteSize(); done += MOST_BYTES) {
            long bytes = Math.min(MOST_BYTES, source.byteSize() - done);
            require("write", execute(ScsiCommand.write((offsetBytes + done) / blockBytes, (int) (bytes / blockBytes), source.asSlice(done, bytes)), may));
        }
    }

    @Override
    public void flush() throws DeviceException {
        require("flush", execute(ScsiCommand.synchronizeCache()));
    }

    private void check(long offset, MemorySegment buffer) throws DeviceException {
        long length = buffer.byteSize();
        if (!buffer.isNative() || ((offset | length | buffer.address()) & (BLOCK_BYTES - 1)) != 0) {
            throw new IllegalArgumentException("not aligned: " + length + " bytes at " + offset + ", buffer " + buffer);
        }
        if (offset < 0) {
            throw new IllegalArgumentException(length + " bytes at " + offset);
        }
        // Others may use what it has grown by before this node has asked.
        if (offset > sizeBytes - length) {
            Capacity now = askCapacity();
            if (now.blockBytes == blockBytes) {
                sizeBytes = now.usableBytes();
            }
            if (offset > sizeBytes - length) {
                throw new DeviceException(ErrorNumbers.EIO, address + " has " + sizeBytes + " bytes, " + length + " are wanted at " + offset);
            }
        }
    }

    private void require(String what, ScsiResult result) throws DeviceException {
        if (!result.good()) {
            throw new DeviceException(result.status() == ScsiResult.RESERVATION_CONFLICT ? ErrorNumbers.EBADE : ErrorNumbers.EIO, address + ": " + what + ": " + result);
        }
    }

    // ---- commands

    @Override
    public ScsiResult execute(ScsiCommand command) throws DeviceException {
        return execute(command, () -> true);
    }

    private ScsiResult execute(ScsiCommand command, BooleanSupplier may) throws DeviceException {
        long until = System.nanoTime() + GONE_NS;
        while (true) {
            IscsiConnection on = connection(command.direction() == ScsiCommand.Direction.OUT);
            ScsiResult result = answered(on, command, may);
            if (result.status() != ScsiResult.LOST) {
                return result;
            }
            reconnect(on, until);
        }
    }

    /** @param may asked before the command is sent, each time: what was sent before is over then, answered or ended with its connection */
    private ScsiResult answered(IscsiConnection on, ScsiCommand command, BooleanSupplier may) throws DeviceException {
        for (int i = 0; ; i++) {
            if (!may.getAsBoolean()) {
                throw new DeviceException(DeviceException.LATE, address + ": not sent");
            }
            ScsiResult result = on.execute(command);
            if (!result.again() || i == MOST_AGAIN) {
                return result;
            }
            if (i > 1) {
                pause(AGAIN_MS);
            }
        }
    }

    @Override
    public boolean reset() throws DeviceException {
        IscsiConnection on = connection(false);
        ScsiResult result = on.reset();
        if (result.status() == ScsiResult.LOST) {
            // Whether it was done is not known; each new connection begins with another one.
            reconnect(on, System.nanoTime() + GONE_NS);
            return true;
        }
        return result.good();
    }

    private IscsiConnection connection(boolean toWrite) throws DeviceException {
        Login now = login;
        if (toWrite && !now.admitted) {
            lock.lock();
            try {
                return admit();
            } finally {
                lock.unlock();
            }
        }
        return now.connection;
    }

    /** The present connection, admitted. Lock held. */
    private IscsiConnection admit() throws DeviceException {
        while (!login.admitted) {
            IscsiConnection on = login.connection;
            admission.admit(Reservations.of(new OnOneConnection(on)));
            if (login.connection == on) {
                login = new Login(on, true);
            }
        }
        return login.connection;
    }

    /** For {@link Admission}: what one connection was told holds for no other. */
    private final class OnOneConnection implements ScsiUnit {
        private final IscsiConnection on;

        OnOneConnection(IscsiConnection on) {
            this.on = on;
        }

        @Override
        public ScsiResult execute(ScsiCommand command) throws DeviceException {
            ScsiResult result = answered(on, command, () -> true);
            if (result.status() == ScsiResult.LOST) {
                throw lost();
            }
            return result;
        }

        @Override
        public boolean reset() throws DeviceException {
            ScsiResult result = on.reset();
            if (result.status() == ScsiResult.LOST) {
                throw lost();
            }
            return result.good();
        }

        private DeviceException lost() throws DeviceException {
            reconnect(on, System.nanoTime() + GONE_NS);
            return new DeviceException(ErrorNumbers.ENOTCONN, address + ": the connection was lost");
        }
    }

    /** Puts another connection in place of one that is of no more use, if nobody has yet, and has all that the target accepted before ended. */
    private void reconnect(IscsiConnection old, long until) throws DeviceException {
        lock.lock();
        try {
            if (login.connection != old) {
                return;
            }
            LOG.log(Level.WARNING, "{0}: the connection is lost", address);
            old.close();
            while (true) {
                if (System.nanoTime() > until) {
                    LOG.log(Level.ERROR, "{0} can not be reached any more", address);
                    gone.run();
                }
                pause(RECONNECT_MS);
                try {
                    IscsiConnection next = IscsiConnection.open(address, initiator, isid);
                    if (next.reset().good()) {
                        login = new Login(next, false);
                        if (closed.getCount() == 0) {
                            next.close();
                        }
                        requireOpen();
                        LOG.log(Level.INFO, "{0}: connected again", address);
                        return;
                    }
                    next.close();
                } catch (DeviceException e) {
                    LOG.log(Level.DEBUG, "not connected: {0}", e.getMessage());
                }
            }
        } finally {
            lock.unlock();
        }
    }

    /** An interrupt does not end it: what waits here may be under way. */
    private void pause(long ms) throws DeviceException {
        boolean interrupted = false;
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ms);
        try {
            while (closed.getCount() > 0 && System.nanoTime() < until) {
                try {
                    if (closed.await(until - System.nanoTime(), TimeUnit.NANOSECONDS)) {
                        break;
                    }
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
        requireOpen();
    }

    private void requireOpen() throws DeviceException {
        if (closed.getCount() == 0) {
            throw new DeviceException(ErrorNumbers.ENODEV, address + " is closed");
        }
    }

    @Override
    public void close() {
        closed.countDown();
        login.connection.close();
    }
}
