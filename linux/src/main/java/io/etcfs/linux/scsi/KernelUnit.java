package io.etcfs.linux.scsi;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import io.etcfs.core.device.DeviceException;
import io.etcfs.linux.call.Descriptors;
import io.etcfs.linux.call.ErrorNumbers;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * A block device of the kernel that has reservations. Read by what its kind has for that: SG_IO (scsi/sg.h) or the NVMe passthrough (linux/nvme_ioctl.h). Its initiator, and so its registration, outlives
 * connections; a target that forgets them refuses the next write.
 */
public final class KernelUnit implements ReservedUnit, AutoCloseable {
    private static final long NVME_ID = 0x4e40;

    private final int fd;
    private final Reservations reservations;
    private final String boot;

    private KernelUnit(int fd, Reservations reservations, String boot) {
        this.fd = fd;
        this.reservations = reservations;
        this.boot = boot;
    }

    /** @throws DeviceException it can't be opened, or has none: the message is for the user */
    public static KernelUnit open(Path path) throws DeviceException {
        int fd = Descriptors.open(path.toString(), Descriptors.O_RDWR | Descriptors.O_CLOEXEC, 0);
        if (fd < 0) {
            throw new DeviceException(-fd, path + ": " + ErrorNumbers.describe(-fd));
        }
        int namespace = Descriptors.ioctl(fd, NVME_ID, 0L);
        KernelReservations.Device device = namespace > 0 ? new Nvme(fd, namespace) : new Scsi(fd);
        try {
            device.keys();
        } catch (DeviceException e) {
            Descriptors.close(fd);
            throw new DeviceException(e.errno(), path + " has no persistent reservations that can be read: " + e.getMessage());
        }
        return new KernelUnit(fd, new KernelReservations(path.toString(), device), namespace > 0 && isPcie(path) ? bootId() : "");
    }

    /** Whether all ways to the namespace are PCIe: what the kernel gives up there it has ended, by a reset of the controller. A fabric may still have it on its way then. */
    private static boolean isPcie(Path device) {
        try {
            // A controller, or with native multipath the subsystem of several.
            return arePcie(Path.of("/sys/class/block").resolve(device.toRealPath().getFileName()).resolve("device").toRealPath());
        } catch (IOException e) {
            return false;
        }
    }

    static boolean arePcie(Path owner) throws IOException {
        List<Path> transports = new ArrayList<>();
        try (DirectoryStream<Path> controllers = Files.newDirectoryStream(owner, "nvme*")) {
            controllers.forEach(c -> transports.add(c.resolve("transport")));
        }
        transports.add(owner.resolve("transport"));
        transports.removeIf(t -> !Files.exists(t));
        for (Path transport : transports) {
            if (!Files.readString(transport).strip().equals("pcie")) {
                return false;
            }
        }
        return !transports.isEmpty();
    }

    private static String bootId() {
        try {
            return Files.readString(Path.of("/proc/sys/kernel/random/boot_id")).strip();
        } catch (IOException e) {
            return "";
        }
    }

    @Override
    public String boot() {
        return boot;
    }

    @Override
    public Reservations reservations() {
        return reservations;
    }

    @Override
    public void admit(Admission admission) throws DeviceException {
        admission.admit(reservations);
    }

    @Override
    public void close() {
        Descriptors.close(fd);
    }

    private static int call(int fd, PrCall call) {
        try (Arena arena = Arena.ofConfined()) {
            return Descriptors.ioctl(fd, call.request(), arena.allocate(8 * 8, 8).copyFrom(MemorySegment.ofArray(call.argument())).address());
        }
    }

    /** A SCSI disk, or dm-multipath over such. */
    static final class Scsi implements KernelReservations.Device, ScsiUnit {
        private static final long SG_IO = 0x2285;
        private static final long SG_SCSI_RESET = 0x2284;
        /** Of the unit alone: where that fails, not of the target or the bus. */
        private static final int RESET_DEVICE_NO_ESCALATE = 1 | 0x100;
        private static final int HEADER_BYTES = 88;
        private static final int NO_DATA = -1;
        private static final int TO_DEVICE = -2;
        private static final int FROM_DEVICE = -3;
        private static final int TIMEOUT_MS = 10_000;
        private static final int SENSE_BYTES = 64;
        private static final int TRIES = 10;

        private final int fd;
        private final Reservations read = new ScsiReservations(this);

        Scsi(int fd) {
            this.fd = fd;
        }

        @Override
        public int call(PrCall call) {
            return KernelUnit.call(fd, call);
        }

        @Override
        public List<Long> keys() throws DeviceException {
            return read.keys();
        }

        @Override
        public int type() throws DeviceException {
            return read.type();
        }

        @Override
        public ScsiResult execute(ScsiCommand command) throws DeviceException {
            ScsiResult result = null;
            for (int i = 0; i < TRIES && (result == null || result.again()); i++) {
                result = executeOnce(command);
            }
            return result;
        }

        private ScsiResult executeOnce(ScsiCommand command) throws DeviceException {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment sense = arena.allocate(SENSE_BYTES, 8);
                MemorySegment header = header(command, arena.allocate(command.cdb().length, 8).copyFrom(MemorySegment.ofArray(command.cdb())), sense, arena);
                int result = Descriptors.ioctl(fd, SG_IO, header.address());
                if (result < 0) {
                    throw new DeviceException(-result, "SG_IO: " + ErrorNumbers.describe(-result));
                }
                return result(header, sense);
            }
        }

        /** struct sg_io_hdr. */
        static MemorySegment header(ScsiCommand command, MemorySegment cdb, MemorySegment sense, Arena arena) {
            MemorySegment header = arena.allocate(HEADER_BYTES, 8);
            header.set(JAVA_INT, 0, 'S');
            header.set(JAVA_INT, 4, switch (command.direction()) {
                case NONE -> NO_DATA;
                case OUT -> TO_DEVICE;
                case IN -> FROM_DEVICE;
            });
            header.set(JAVA_BYTE, 8, (byte) cdb.byteSize());
            header.set(JAVA_BYTE, 9, (byte) sense.byteSize());
            header.set(JAVA_INT, 12, (int) command.data().byteSize());
            header.set(JAVA_LONG, 16, command.data().address());
            header.set(JAVA_LONG, 24, cdb.address());
            header.set(JAVA_LONG, 32, sense.address());
            header.set(JAVA_INT, 40, TIMEOUT_MS);
            return header;
        }

        /** Sense data is of the fixed (70h, 71h) or the descriptor format (72h, 73h). */
        static ScsiResult result(MemorySegment header, MemorySegment sense) {
            if (header.get(java.lang.foreign.ValueLayout.JAVA_SHORT, 68) != 0) {
                return new ScsiResult(ScsiResult.LOST, 0, 0);
            }
            int status = header.get(JAVA_BYTE, 64) & 0xff;
            int written = header.get(JAVA_BYTE, 67) & 0xff;
            int format = sense.get(JAVA_BYTE, 0) & 0x7f;
            if (written >= 14 && (format == 0x70 || format == 0x71)) {
                return new ScsiResult(status, sense.get(JAVA_BYTE, 2) & 0x0f, (sense.get(JAVA_BYTE, 12) & 0xff) << 8 | sense.get(JAVA_BYTE, 13) & 0xff);
            }
            if (written >= 4 && (format == 0x72 || format == 0x73)) {
                return new ScsiResult(status, sense.get(JAVA_BYTE, 1) & 0x0f, (sense.get(JAVA_BYTE, 2) & 0xff) << 8 | sense.get(JAVA_BYTE, 3) & 0xff);
            }
            return new ScsiResult(status, 0, 0);
        }

        @Override
        public boolean reset() {
            try (Arena arena = Arena.ofConfined()) {
                return Descriptors.ioctl(fd, SG_SCSI_RESET, arena.allocateFrom(JAVA_INT, RESET_DEVICE_NO_ESCALATE).address()) == 0;
            }
        }
    }

    /** A namespace with the Reservation Report of NVMe. Its types are numbered otherwise. There is no reset of a namespace: who finds a key gone that another one took does not know the rest. */
    static final class Nvme implements KernelReservations.Device {
        private static final long IO_COMMAND = 0xc048_4e43L;
        private static final int COMMAND_BYTES = 72;
        private static final int RESERVATION_REPORT = 0x0e;
        private static final int REPORT_BYTES = 4096 * 16;
        private static final int EXTENDED = 1;
        private static final int TIMEOUT_MS = 10_000;
        /** By their numbers there: none, write exclusive, exclusive access, both registrants only, both all registrants. */
        private static final int[] TYPES = {Reservations.NO_TYPE, 1, 3, 5, 6, 7, 8};

        private final int fd;
        private final int namespace;

        Nvme(int fd, int namespace) {
            this.fd = fd;
            this.namespace = namespace;
        }

        @Override
        public int call(PrCall call) {
            return KernelUnit.call(fd, call);
        }

        private interface Reading<T> {
            T read(MemorySegment report, boolean extended) throws DeviceException;
        }

        /** A controller whose host identifier has 128 bits takes the extended form only, one with 64 bits the other. */
        private <T> T report(Reading<T> reading) throws DeviceException {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment report = arena.allocate(REPORT_BYTES, 4096);
                int result = 0;
                for (boolean extended : new boolean[] {true, false}) {
                    result = Descriptors.ioctl(fd, IO_COMMAND, command(namespace, extended, report, arena).address());
                    if (result == 0) {
                        return reading.read(report, extended);
                    }
                }
                throw new DeviceException(result < 0 ? -result : ErrorNumbers.EIO, "reservation report: " + (result < 0 ? ErrorNumbers.describe(-result) : "NVMe status " + Integer.toHexString(result)));
            }
        }

        /** struct nvme_passthru_cmd. */
        static MemorySegment command(int namespace, boolean extended, MemorySegment report, Arena arena) {
            MemorySegment command = arena.allocate(COMMAND_BYTES, 8);
            command.set(JAVA_BYTE, 0, (byte) RESERVATION_REPORT);
            command.set(JAVA_INT, 4, namespace);
            command.set(JAVA_LONG, 24, report.address());
            command.set(JAVA_INT, 36, (int) report.byteSize());
            command.set(JAVA_INT, 40, (int) report.byteSize() / 4 - 1);
            command.set(JAVA_INT, 44, extended ? EXTENDED : 0);
            command.set(JAVA_INT, 64, TIMEOUT_MS);
            return command;
        }

        @Override
        public List<Long> keys() throws DeviceException {
            return report(Nvme::keys);
        }

        @Override
        public int type() throws DeviceException {
            return report((report, extended) -> type(report));
        }

        static List<Long> keys(MemorySegment report, boolean extended) throws DeviceException {
            int count = report.get(JAVA_BYTE, 5) & 0xff | (report.get(JAVA_BYTE, 6) & 0xff) << 8;
            int begin = extended ? 64 : 24;
            int each = extended ? 64 : 24;
            int key = extended ? 8 : 16;
            if (begin + (long) each * count > report.byteSize()) {
                throw new DeviceException(ErrorNumbers.EIO, "more controllers are registered than can be read: " + count);
            }
            List<Long> keys = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                keys.add(report.get(JAVA_LONG_UNALIGNED, begin + (long) each * i + key));
            }
            return keys;
        }

        static int type(MemorySegment report) throws DeviceException {
            int type = report.get(JAVA_BYTE, 4) & 0xff;
            if (type >= TYPES.length) {
                throw new DeviceException(ErrorNumbers.EIO, "reservation type " + type + " is not known");
            }
            return TYPES[type];
        }

        @Override
        public boolean reset() {
            return false;
        }
    }
}
