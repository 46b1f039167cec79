package io.etcfs.cli.mount;

import io.etcfs.cli.EtcdArguments;
import io.etcfs.cli.Names;
import io.etcfs.cli.Size;
import io.etcfs.cli.Version;
import io.etcfs.linux.mount.Transport;
import io.etcfs.node.daemon.Daemon;
import io.etcfs.node.daemon.FencerChoice;
import io.etcfs.node.daemon.Options;
import io.etcfs.node.daemon.SharedDevice;
import io.etcfs.node.host.ExitCode;
import io.etcfs.node.host.Refusal;
import io.etcfs.node.host.UserPath;
import io.etcfs.node.log.Log;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.logging.Level;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Becomes the daemon. Exit codes are those of mount(8), and 77 for a node that had to stop. */
@Command(name = "mount", description = "Mount a filesystem.", mixinStandardHelpOptions = true, versionProvider = Version.class, exitCodeOnInvalidInput = ExitCode.USAGE,
        exitCodeOnExecutionException = ExitCode.MOUNT_FAILED, exitCodeListHeading = "Exit codes, as of mount(8):%n",
        exitCodeList = {"0:mounted, and the root can be listed", "1:usage", "2:(the daemon's own) unmounted, but not in order: it counts as vanished, or its last changes are lost", "32:not mounted",
            "77:(the daemon's own) the node stopped itself"})
public final class MountCommand implements Callable<Integer> {
    private static final long MIN_CACHE_BYTES = 16L << 20;
    private static final long MAX_CACHE_BYTES = 64L << 30;
    private static final int MIN_HANG_LIMIT_S = 5;
    private static final int MAX_HANG_LIMIT_S = 86_400;

    @Parameters(index = "0", paramLabel = "NAME", description = "Name of the filesystem, as given to etcfs mkfs.")
    private String name;

    @Parameters(index = "1", paramLabel = "DIR", description = "Directory to mount it on.")
    private String directory;

    @Mixin
    private EtcdArguments etcd;

    @Option(names = "--device", paramLabel = "DEVICE", required = true, description = "The shared device, as this host calls it, or iscsi://ADDRESS[:PORT]/TARGET/LUN for a target that is used without the kernel's initiator.")
    private String device;

    @Option(names = "--node", paramLabel = "NODE", description = "Name of this node, unique in the filesystem and the same at every mount. Default: the host's name.")
    private String node;

    @Option(names = "--foreground", description = "Stay in the foreground and log to standard error.")
    private boolean foreground;

    @Option(names = "--background", hidden = true, description = "Report to the launcher on standard output.")
    private boolean background;

    @Option(names = "--fencer", paramLabel = "KIND", defaultValue = "auto", description = "How a node that vanished is cut off from the device, before what it owned is given to others: pr (persistent reservations; on disks of the kernel tried with Linux's own targets only), ebs (EC2 "
            + "detaches the volume from its instance by force), none (not at all: its space stays its own until it is back or declared dead), auto (pr on an iscsi:// device; elsewhere it has to be said). "
            + "The same on all nodes. Default: ${DEFAULT-VALUE}.")
    private String fencer;

    @Option(names = "--no-fencer", description = "The same as --fencer none.")
    private boolean noFencer;

    @Option(names = "--ebs-volume", paramLabel = "VOLUME", description = "With --fencer ebs, where the device does not tell it: the volume, as vol-0123456789abcdef0.")
    private String ebsVolume;

    @Option(names = "--transport", paramLabel = "TRANSPORT", defaultValue = "auto", description = "How requests come from the kernel: dev (/dev/fuse), uring (FUSE over io_uring), "
            + "or auto, which is uring where the kernel offers it. Linux 6.14 or newer offers it while /sys/module/fuse/parameters/enable_uring is Y. Default: ${DEFAULT-VALUE}.")
    private String transport;

    @Option(names = "--cache-size", paramLabel = "SIZE", converter = Size.class, description = "About how much memory the names, attributes and extents may take that are cached but not in use, in bytes or with K, M, G or T; "
            + "at least 16M. The heap is made for it: 256M and twice that. Default: 1/64 of the machine's memory, from 64M to 512M.")
    private Long cacheSize;

    @Option(names = "--hang-limit", paramLabel = "SECONDS", defaultValue = "60", description = "Cut the mount off when its daemon has given no sign of life for that long (it was stopped, or hangs): "
            + "calls in it then fail with ENOTCONN in place of waiting for ever. From 5 to 86400; 0: never. Default: ${DEFAULT-VALUE}.")
    private int hangLimitS;

    @Option(names = "--pid-file", paramLabel = "FILE", description = "Where to write the daemon's process id.")
    private String pidFile;

    @Option(names = "--log-file", paramLabel = "FILE", description = "Default: /var/log/etcfs/NAME-NODE.log, in the foreground standard error.")
    private String logFile;

    @Option(names = "--log-level", paramLabel = "LEVEL", defaultValue = "info", description = "error, warn, info, debug or trace. Default: ${DEFAULT-VALUE}.")
    private String logLevel;

    @Option(names = "-o", paramLabel = "WORD", split = ",", description = "ro, noatime and the other words of mount(8) for every filesystem.")
    private List<String> words = new ArrayList<>();

    @Override
    public Integer call() throws Refusal {
        Options options = options();
        requireRoot();
        return Daemon.run(options, Version.current(), background ? MountCommand::reportReady : mountPoint -> { });
    }

    /** Before a log file that can't be written says it less clearly. */
    private static void requireRoot() throws Refusal {
        try {
            if (!Integer.valueOf(0).equals(Files.getAttribute(Path.of("/proc/self"), "unix:uid"))) {
                throw new Refusal(ExitCode.USAGE, "must be root to mount");
            }
        } catch (IOException e) {
            throw new Refusal(ExitCode.USAGE, "/proc/self can't be looked at (" + e.getMessage() + "): mount /proc first");
        }
    }

    /** Checks what can be checked without looking at anything but the arguments. */
    Options options() throws Refusal {
        Names.requireFilesystem("filesystem name", name, ExitCode.USAGE);
        String nodeName = node == null ? hostName() : node;
        Names.requireNode("--node", nodeName, ExitCode.USAGE);
        SharedDevice.requireName(device, ExitCode.USAGE);
        if (noFencer && !fencer.equals("auto") && !fencer.equals("none")) {
            throw new Refusal(ExitCode.USAGE, "--no-fencer and --fencer " + fencer + ": give one of them");
        }
        FencerChoice choice = FencerChoice.of(noFencer ? "none" : fencer, device, ebsVolume, ExitCode.USAGE);
        if (hangLimitS != 0 && (hangLimitS < MIN_HANG_LIMIT_S || hangLimitS > MAX_HANG_LIMIT_S)) {
            throw new Refusal(ExitCode.USAGE, "--hang-limit " + hangLimitS + " is neither 0 nor a number of seconds from " + MIN_HANG_LIMIT_S + " to " + MAX_HANG_LIMIT_S);
        }
        Level level = Log.levelOf(logLevel).orElseThrow(() -> new Refusal(ExitCode.USAGE, "--log-level '" + logLevel + "' is none of error, warn, info, debug, trace"));
        Transport wanted = Arrays.stream(Transport.values()).filter(t -> t.name().toLowerCase(Locale.ROOT).equals(transport)).findFirst()
                .orElseThrow(() -> new Refusal(ExitCode.USAGE, "--transport '" + transport + "' is none of auto, dev, uring"));
        Path log = logFile != null ? UserPath.of(logFile) : background ? Path.of("/var/log/etcfs", name + "-" + nodeName + ".log") : null;
        return new Options(name, UserPath.of(directory), etcd.connection(ExitCode.USAGE), UserPath.ofDevice(device), choice, nodeName, MountWords.flags(words), wanted, pidFile == null ? null : UserPath.of(pidFile),
                log, level, cacheBytes(cacheSize), hangLimitS, background);
    }

    private static long cacheBytes(Long size) throws Refusal {
        if (size != null && (size < MIN_CACHE_BYTES || size > MAX_CACHE_BYTES)) {
            throw new Refusal(ExitCode.USAGE, "--cache-size " + Size.text(size) + " is not usable: from " + Size.text(MIN_CACHE_BYTES) + " to " + Size.text(MAX_CACHE_BYTES));
        }
        return size == null ? 0 : size;
    }

    private static String hostName() throws Refusal {
        try {
            return Files.readString(Path.of("/proc/sys/kernel/hostname")).strip();
        } catch (IOException e) {
            throw new Refusal(ExitCode.USAGE, "the host's name can't be read (" + e.getMessage() + "): give --node");
        }
    }

    /** The launcher goes after this. What the caller can read of us must end with it: closed, these streams become /dev/null. */
    private static void reportReady(Path mountPoint) {
        System.out.println("ready " + mountPoint);
        System.out.close();
        System.err.close();
    }
}
