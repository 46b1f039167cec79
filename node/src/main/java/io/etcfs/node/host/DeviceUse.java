package io.etcfs.node.host;

import io.etcfs.linux.mount.MountInfo;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * What else this host does with a device or image file: mounted, swap, a loop device on it, or held by another device (LVM, RAID, multipath,
 * a mounted partition). Reads /proc and /sys below {@code root}, so that a test can show its own; so are the mounts given.
 */
public final class DeviceUse {
    private static final int S_IFMT = 0170000;
    private static final int S_IFBLK = 0060000;
    private static final int S_IFREG = 0100000;

    private final Path root;
    private final List<MountInfo> mounts;

    DeviceUse(Path root, List<MountInfo> mounts) {
        this.root = root;
        this.mounts = mounts;
    }

    public static DeviceUse ofThisHost() throws IOException {
        return new DeviceUse(Path.of("/"), MountInfo.ofThisProcess());
    }

    /**
     * Checks that {@code device} exists and is a block device or a regular file.
     *
     * @param exitCode of the refusal
     */
    public static void requireDevice(Path device, int exitCode) throws Refusal {
        int type;
        try {
            type = (int) stat(device).get("mode") & S_IFMT;
        } catch (IOException e) {
            throw new Refusal(exitCode, "device " + device + " does not exist: name an attached block device");
        }
        if (type != S_IFBLK && type != S_IFREG) {
            throw new Refusal(exitCode, device + " is neither a block device nor a regular file: name a block device");
        }
    }

    /** Why the device can't be overwritten now, as the rest of a sentence about it; empty if nothing is known to use it. */
    public Optional<String> find(Path device) throws IOException {
        Map<String, Object> stat = stat(device);
        boolean isBlock = ((int) stat.get("mode") & S_IFMT) == S_IFBLK;
        Path real = device.toRealPath();
        return isBlock ? blockDeviceUse(real, (long) stat.get("rdev")) : fileUse(real);
    }

    private static Map<String, Object> stat(Path device) throws IOException {
        return Files.readAttributes(device, "unix:mode,rdev");
    }

    private Optional<String> blockDeviceUse(Path device, long rdev) throws IOException {
        int major = (int) (rdev >>> 8 & 0xfff);
        int minor = (int) (rdev & 0xff | rdev >>> 12 & 0xfff00);
        for (MountInfo mount : mounts) {
            if (mount.major() == major && mount.minor() == minor || isSameFile(mount.source(), device)) {
                return Optional.of("is mounted on " + mount.mountPoint());
            }
        }
        Optional<String> swap = swapUse(device);
        if (swap.isPresent()) {
            return swap;
        }
        Path block = root.resolve("sys/dev/block/" + major + ":" + minor);
        Optional<String> holder = holder(block);
        if (holder.isPresent() || !Files.isDirectory(block)) {
            return holder;
        }
        try (DirectoryStream<Path> partitions = Files.newDirectoryStream(block)) {
            for (Path partition : partitions) {
                if (Files.exists(partition.resolve("partition"))) {
                    Optional<String> use = partitionUse(partition);
                    if (use.isPresent()) {
                        return use;
                    }
                }
            }
        }
        return Optional.empty();
    }

    /** Filesystems of several devices (btrfs) have device numbers of their own, and name one of them as their source. */
    private static boolean isSameFile(String source, Path device) {
        try {
            return source.startsWith("/") && Path.of(source).toRealPath().equals(device);
        } catch (IOException e) {
            return false;
        }
    }

    private Optional<String> partitionUse(Path partition) throws IOException {
        String name = partition.getFileName().toString();
        String[] numbers = Files.readString(partition.resolve("dev")).strip().split(":");
        int major = Integer.parseInt(numbers[0]);
        int minor = Integer.parseInt(numbers[1]);
        for (MountInfo mount : mounts) {
            if (mount.major() == major && mount.minor() == minor) {
                return Optional.of("has partition " + name + ", which is mounted on " + mount.mountPoint());
            }
        }
        return swapUse(Path.of("/dev", name)).or(() -> holder(partition)).map(use -> "has partition " + name + ", which " + use);
    }

    private Optional<String> fileUse(Path file) throws IOException {
        Optional<String> swap = swapUse(file);
        if (swap.isPresent()) {
            return swap;
        }
        Path blocks = root.resolve("sys/block");
        if (!Files.isDirectory(blocks)) {
            return Optional.empty();
        }
        try (DirectoryStream<Path> loops = Files.newDirectoryStream(blocks, "loop*")) {
            for (Path loop : loops) {
                Path backing = loop.resolve("loop/backing_file");
                if (Files.exists(backing) && Files.readString(backing).stripTrailing().equals(file.toString())) {
                    return Optional.of("is behind /dev/" + loop.getFileName());
                }
            }
        }
        return Optional.empty();
    }

    private Optional<String> swapUse(Path path) {
        return read("proc/swaps").lines().skip(1).filter(line -> line.startsWith(path + " ") || line.startsWith(path + "\t")).findFirst().map(line -> "is in use as swap space");
    }

    private static Optional<String> holder(Path block) {
        try (DirectoryStream<Path> holders = Files.newDirectoryStream(block.resolve("holders"))) {
            for (Path holder : holders) {
                return Optional.of("is part of /dev/" + holder.getFileName());
            }
        } catch (IOException e) {
            // No such directory: nothing can hold it.
            return Optional.empty();
        }
        return Optional.empty();
    }

    private String read(String path) {
        try {
            return Files.readString(root.resolve(path), StandardCharsets.ISO_8859_1);
        } catch (IOException e) {
            return "";
        }
    }
}
