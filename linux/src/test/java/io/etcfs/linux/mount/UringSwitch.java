package io.etcfs.linux.mount;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.etcfs.core.clock.Clock;
import io.etcfs.linux.clock.BootClock;
import io.etcfs.linux.process.LockFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;

/**
 * Whether new mounts are offered FUSE over io_uring. It is the whole machine's, so it is on only while a test mounts, and as it was before afterwards. Whoever
 * else does this waits meanwhile ({@code ./dev} takes the same lock).
 */
final class UringSwitch {
    private static final Path PARAMETER = Path.of("/sys/module/fuse/parameters/enable_uring");
    private static final Path LOCK = Path.of("/run/lock/etcfs-enable-uring");

    /** Skips the test where there is nothing to switch. */
    static void assumeThere() {
        assumeTrue(Files.isWritable(PARAMETER), "no FUSE over io_uring here: " + PARAMETER + " is not writable (Linux 6.14, as root)");
    }

    static <T> T on(Callable<T> action) throws Exception {
        return with("Y", action);
    }

    static <T> T off(Callable<T> action) throws Exception {
        return with("N", action);
    }

    private static <T> T with(String value, Callable<T> action) throws Exception {
        Clock clock = new BootClock();
        try (LockFile lock = LockFile.acquire(LOCK, clock, clock.nowNs() + TimeUnit.SECONDS.toNanos(20)).orElseThrow()) {
            String before = Files.readString(PARAMETER).strip();
            Files.writeString(PARAMETER, value);
            try {
                return action.call();
            } finally {
                Files.writeString(PARAMETER, before);
            }
        }
    }

    private UringSwitch() {}
}
