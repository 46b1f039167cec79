package io.etcfs.node.host;

import io.etcfs.linux.mount.MountInfo;
import io.etcfs.linux.mount.Mounts;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/** Looks at the directory that a filesystem is to be mounted on, without ever hanging on what is mounted there already. */
public final class MountPoint {
    private static final String AUTOFS = "autofs";

    private MountPoint() {}

    /**
     * The path by which the kernel lists a mount on {@code given}. The last component is not looked up if something is mounted there: on a
     * filesystem whose daemon is dead that fails.
     */
    public static Path canonical(Path given) throws IOException {
        Path absolute = given.toAbsolutePath().normalize();
        if (absolute.getParent() == null) {
            return absolute;
        }
        Path path = absolute.getParent().toRealPath().resolve(absolute.getFileName());
        return Mounts.at(path).isEmpty() && Files.isSymbolicLink(path) ? path.toRealPath() : path;
    }

    /**
     * Checks that a filesystem can be mounted on {@code given}, and takes away EtcFS mounts whose daemon is gone. An autofs trigger may be there: it
     * waits to be covered.
     *
     * @return the canonical path
     */
    public static Path prepare(Path given) throws Refusal {
        Path path;
        try {
            path = canonical(given);
        } catch (IOException e) {
            throw refusal("mount point " + given + " does not exist: create the directory first");
        }
        try {
            Mounts.clearDead(path);
            Optional<MountInfo> present = Mounts.at(path);
            if (present.isPresent() && present.get().type().equals(Mounts.TYPE)) {
                throw refusal("mount point " + path + " already has filesystem '" + present.get().source() + "' mounted: umount it or name another directory");
            }
            if (present.isPresent() && !present.get().type().equals(AUTOFS)) {
                throw refusal("mount point " + path + " is busy: it already has " + present.get().source() + " (" + present.get().type()
                        + ") mounted: umount it or name another directory");
            }
        } catch (IOException e) {
            throw refusal("cannot look at mount point " + path + ": " + e.getMessage());
        }
        if (!Files.exists(path)) {
            throw refusal("mount point " + given + " does not exist: create the directory first");
        }
        if (!Files.isDirectory(path)) {
            throw refusal("mount point " + given + " is not a directory: name a directory");
        }
        return path;
    }

    /** Whether an EtcFS is mounted there, dead or alive. */
    public static boolean hasEtcfs(Path given) {
        try {
            return Mounts.at(canonical(given)).filter(m -> m.type().equals(Mounts.TYPE)).isPresent();
        } catch (IOException e) {
            return false;
        }
    }

    private static Refusal refusal(String message) {
        return new Refusal(ExitCode.MOUNT_FAILED, message);
    }
}
