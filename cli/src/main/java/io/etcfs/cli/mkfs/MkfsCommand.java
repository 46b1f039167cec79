package io.etcfs.cli.mkfs;

import io.etcfs.cli.EtcdArguments;
import io.etcfs.cli.Names;
import io.etcfs.cli.Size;
import io.etcfs.cli.Version;
import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.label.Mkfs;
import io.etcfs.core.label.MkfsException;
import io.etcfs.core.record.proto.Super;
import io.etcfs.core.space.ArenaSize;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.linux.call.Descriptors;
import io.etcfs.linux.call.ErrorNumbers;
import io.etcfs.linux.call.LinuxException;
import io.etcfs.linux.iscsi.IscsiAddress;
import io.etcfs.node.daemon.EtcdConnection;
import io.etcfs.node.daemon.FencerChoice;
import io.etcfs.node.daemon.SharedDevice;
import io.etcfs.node.host.DeviceUse;
import io.etcfs.node.host.Refusal;
import io.etcfs.node.host.UserPath;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Instant;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/**
 * Checks all that can be checked, in the order from the cheapest and most local on, and changes nothing before. A device that is in use on this host
 * is refused even with {@code --force}.
 */
@Command(name = "mkfs", description = "Make a filesystem on a device, with its metadata in etcd.", mixinStandardHelpOptions = true, versionProvider = Version.class,
        exitCodeOnInvalidInput = MkfsCommand.USAGE, exitCodeListHeading = "Exit codes:%n", exitCodeList = {"0:made", "1:failed or refused; nothing was changed", "2:usage"})
public final class MkfsCommand implements Callable<Integer> {
    static final int USAGE = 2;
    private static final long REQUEST_TIMEOUT_NS = 5_000_000_000L;
    private static final int S_IFMT = 0170000;
    private static final int S_IFBLK = 0060000;

    @Spec
    private CommandSpec spec;

    @Parameters(index = "0", paramLabel = "DEVICE", description = "The block device that all nodes share, or iscsi://ADDRESS[:PORT]/TARGET/LUN; an image file for a try.")
    private String device;

    @Option(names = "--name", paramLabel = "NAME", required = true, description = "Name of the filesystem, by which it is mounted.")
    private String name;

    @Mixin
    private EtcdArguments etcd;

    @Option(names = "--force", description = "Overwrite what the device seems to hold, end its reservations, and delete a filesystem of that name that no node has mounted.")
    private boolean force;

    @Option(names = "--arena-size", paramLabel = "SIZE", converter = Size.class, description = "Unit in which nodes claim space, in bytes or with K, M, G or T: a multiple of 16M. Default: by the device's size, at most 1 GiB.")
    private long arenaSize;

    @Override
    public Integer call() throws Refusal {
        String named = UserPath.ofDevice(device);
        boolean isPath = !IscsiAddress.isMeant(named);
        try {
            Names.requireFilesystem("--name", name, USAGE);
            requireArenaSize();
            EtcdConnection connection = etcd.connection(USAGE);
            SharedDevice.requireName(named, USAGE);
            if (isPath) {
                DeviceUse.requireDevice(Path.of(named), 1);
                requireUnused(Path.of(named));
            }
            SharedDevice shared = SharedDevice.open(named, "mkfs", FencerChoice.NONE, MkfsCommand::gone, 1);
            try (BlockDevice opened = shared.device()) {
                Optional<String> signature = force || !isPath ? Optional.empty() : Blkid.find(Path.of(named));
                if (signature.isPresent()) {
                    throw new Refusal(1, named + " holds " + signature.get() + ": name another device, or --force to overwrite it");
                }
                try (MetadataStore store = connection.open(USAGE)) {
                    connection.requireUsable(store, REQUEST_TIMEOUT_NS, 1);
                    Super made = new Mkfs(store, opened, REQUEST_TIMEOUT_NS, shared::seize).make(request(named));
                    report(named, made);
                }
            }
            return 0;
        } catch (MkfsException e) {
            throw new Refusal(1, e.getMessage());
        } catch (IOException e) {
            throw new Refusal(1, "cannot look at " + named + ": " + e.getMessage());
        }
    }

    private Mkfs.Request request(String named) {
        byte[] nameHashKey = new byte[16];
        new SecureRandom().nextBytes(nameHashKey);
        Instant now = Instant.now();
        return new Mkfs.Request(name, named, force, arenaSize, UUID.randomUUID(), nameHashKey, now.getEpochSecond() * 1_000_000_000L + now.getNano());
    }

    /** Whether it fits the device is seen when that is open. */
    private void requireArenaSize() throws Refusal {
        if (arenaSize < 0 || arenaSize % ArenaSize.MIN_BYTES != 0) {
            throw new Refusal(USAGE, "--arena-size " + Size.text(arenaSize) + " is not usable: a multiple of " + Size.text(ArenaSize.MIN_BYTES));
        }
    }

    private static void requireUnused(Path path) throws IOException, Refusal {
        Optional<String> use = DeviceUse.ofThisHost().find(path);
        if (use.isPresent()) {
            throw new Refusal(1, path + " " + use.get() + ": free it or name another device; --force does not help");
        }
        boolean isBlock = ((int) Files.getAttribute(path, "unix:mode") & S_IFMT) == S_IFBLK;
        if (isBlock) {
            // The kernel lets nobody open a block device exclusively that a filesystem, a volume or swap space lies on.
            int fd = Descriptors.open(path.toString(), Descriptors.O_RDWR | Descriptors.O_EXCL | Descriptors.O_CLOEXEC, 0);
            if (fd == -ErrorNumbers.EBUSY) {
                throw new Refusal(1, path + " is in use on this host (by a node of EtcFS, a mounted filesystem, a volume or swap space): free it or name another device; --force does not help");
            }
            LinuxException.check(fd, "open " + path);
            Descriptors.close(fd);
        }
    }

    private static void gone() {
        System.err.println("etcfs mkfs: the device can't be reached any more");
        Runtime.getRuntime().halt(1);
    }

    private void report(String named, Super made) {
        var uuid = made.getFilesystemUuid().asReadOnlyByteBuffer();
        spec.commandLine().getOut().println("made filesystem '" + made.getName() + "' on " + named + ": uuid " + new UUID(uuid.getLong(), uuid.getLong()) + ", "
                + made.getDeviceSize() + " bytes, arenas of " + made.getArenaSize());
    }
}
