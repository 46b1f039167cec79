package io.etcfs.linux.mount;

import io.etcfs.linux.call.ErrorNumbers;
import io.etcfs.linux.call.LinuxException;
import io.etcfs.linux.call.MountCalls;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Mounts of this filesystem, seen from outside. */
public final class Mounts {
    /** The type that mount(2) is called with, and that /proc/mounts shows. */
    public static final String TYPE = "fuse.etcfs";

    private static final int MAX_STACKED = 64;
    private static final long PROBE_MS = 2_000;

    /** The mount that is seen at an absolute path without symbolic links. */
    public static Optional<MountInfo> at(Path path) throws IOException {
        String wanted = path.toString();
        MountInfo found = null;
        for (MountInfo mount : MountInfo.ofThisProcess()) {
            if (mount.mountPoint().equals(wanted)) {
                found = mount;
            }
        }
        return Optional.ofNullable(found);
    }

    /**
     * Whether one of our mounts is at that path and its daemon is gone (ENOTCONN). It is asked for something that no cache answers; a daemon that does not
     * answer in 2 s counts as alive.
     */
    public static boolean isDead(Path path) throws IOException {
        Optional<MountInfo> mount = at(path.toAbsolutePath().normalize());
        if (mount.isEmpty() || !mount.get().type().equals(TYPE)) {
            return false;
        }
        CompletableFuture<Integer> answer = new CompletableFuture<>();
        Thread.ofPlatform().daemon().name("mount-probe").start(() -> answer.complete(MountCalls.statfs(path.toString())));
        try {
            int result = answer.get(PROBE_MS, TimeUnit.MILLISECONDS);
            return result == -ErrorNumbers.ENOTCONN || result == -ErrorNumbers.ECONNABORTED;
        } catch (TimeoutException e) {
            return false;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        } catch (ExecutionException e) {
            throw new IllegalStateException(e.getCause());
        }
    }

    /** Detaches what {@link #isDead} is true of, also several on top of each other. Returns how many there were. */
    public static int clearDead(Path path) throws IOException {
        int cleared = 0;
        while (cleared < MAX_STACKED && isDead(path)) {
            LinuxException.check(MountCalls.umount(path.toAbsolutePath().normalize().toString(), MountCalls.MNT_DETACH | MountCalls.UMOUNT_NOFOLLOW),
                    "umount " + path);
            cleared++;
        }
        return cleared;
    }

    /** Ends the connection of the mount that has this number (st_dev's minor one), if it is one of ours and of this source. False: there is none. */
    public static boolean cutOff(int connectionNumber, String source) throws IOException {
        for (MountInfo mount : MountInfo.ofThisProcess()) {
            if (mount.type().equals(TYPE) && mount.minor() == connectionNumber && mount.source().equals(source)) {
                FuseControl.abort(connectionNumber);
                return true;
            }
        }
        return false;
    }

    private Mounts() {}
}
