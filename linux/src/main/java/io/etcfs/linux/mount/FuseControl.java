package io.etcfs.linux.mount;

import io.etcfs.linux.call.Descriptors;
import io.etcfs.linux.call.ErrorNumbers;
import io.etcfs.linux.call.LinuxException;
import io.etcfs.linux.call.MountCalls;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;

/** The control filesystem of FUSE at /sys/fs/fuse/connections. It has everybody's connections. */
final class FuseControl {
    private static final String ROOT = "/sys/fs/fuse/connections";

    /** Mounts it if it isn't. */
    static void prepare() throws IOException {
        if (Mounts.at(Path.of(ROOT)).isEmpty()) {
            int result = MountCalls.mount("fusectl", ROOT, "fusectl", MountFlags.NOSUID | MountFlags.NODEV | MountFlags.NOEXEC, "");
            if (result != -ErrorNumbers.EBUSY) {
                LinuxException.check(result, "mount fusectl at " + ROOT);
            }
        }
    }

    /** Whoever writes to it ends the connection. Open, it is bound to that connection, whoever has the number later. */
    static Path abortFile(int connectionNumber) {
        return Path.of(ROOT, Integer.toString(connectionNumber), "abort");
    }

    /** Ends the connection. That there is none is no error. */
    static void abort(int connectionNumber) throws IOException {
        prepare();
        String file = abortFile(connectionNumber).toString();
        if (!Files.exists(Path.of(file))) {
            return;
        }
        int fd = LinuxException.check(Descriptors.open(file, Descriptors.O_WRONLY | Descriptors.O_CLOEXEC, 0), "open " + file);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment one = arena.allocateFrom("1");
            long written = Descriptors.write(fd, one.address(), 1);
            LinuxException.check((int) written, "write " + file);
        } finally {
            Descriptors.close(fd);
        }
    }

    /** The read-ahead of a mount. */
    static void setReadAhead(MountInfo mount, int kb) throws IOException {
        Files.writeString(Path.of("/sys/class/bdi/" + mount.major() + ":" + mount.minor() + "/read_ahead_kb"), Integer.toString(kb));
    }

    private FuseControl() {}
}
