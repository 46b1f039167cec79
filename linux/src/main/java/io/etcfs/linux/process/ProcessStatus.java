package io.etcfs.linux.process;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;

/** /proc/PID/status (proc_pid_status(5)). */
public final class ProcessStatus {
    private static final long SIGKILL_BIT = 1L << 8;

    /**
     * Whether the process or thread has a SIGKILL pending, or is gone or a zombie. A signal that kills by default becomes a pending SIGKILL of each thread.
     *
     * @param pid 0, as the kernel names a caller that has no number in our pid namespace: nothing is known, false
     */
    public static boolean isDying(int pid) {
        if (pid == 0) {
            return false;
        }
        try {
            return isDying(Files.readAllLines(Path.of("/proc", Integer.toString(pid), "status"), StandardCharsets.ISO_8859_1));
        } catch (NoSuchFileException e) {
            return true;
        } catch (IOException e) {
            // ESRCH: it ended while the file was read.
            return !Files.exists(Path.of("/proc", Integer.toString(pid)));
        }
    }

    /** Whether the process is gone, with all its threads: to be waited for by its parent at most, which init can be slow to do. */
    public static boolean hasEnded(long pid) {
        Path directory = Path.of("/proc", Long.toString(pid));
        try {
            return hasEnded(Files.readAllLines(directory.resolve("status"), StandardCharsets.ISO_8859_1));
        } catch (IOException e) {
            return !Files.exists(directory);
        }
    }

    static boolean hasEnded(List<String> status) {
        boolean dead = false;
        boolean alone = false;
        for (String line : status) {
            dead |= line.startsWith("State:") && (line.substring(6).strip().startsWith("Z") || line.substring(6).strip().startsWith("X"));
            // Its first thread may have ended before others.
            alone |= line.startsWith("Threads:") && line.substring(8).strip().equals("1");
        }
        return dead && alone;
    }

    /**
     * Whether a signal is pending that the thread will take: one of its own that it does not block, or, if it is the only thread, one of its process. False if it
     * is gone.
     */
    public static boolean isSignalled(int pid) {
        if (pid == 0) {
            return false;
        }
        try {
            return isSignalled(Files.readAllLines(Path.of("/proc", Integer.toString(pid), "status"), StandardCharsets.ISO_8859_1));
        } catch (IOException e) {
            return false;
        }
    }

    static boolean isSignalled(List<String> status) {
        long pending = 0;
        long shared = 0;
        long blocked = 0;
        long ignored = 0;
        boolean alone = false;
        for (String line : status) {
            if (line.startsWith("Threads:")) {
                alone = line.substring(8).strip().equals("1");
            } else if (line.startsWith("SigPnd:")) {
                pending = mask(line);
            } else if (line.startsWith("ShdPnd:")) {
                shared = mask(line);
            } else if (line.startsWith("SigBlk:")) {
                blocked = mask(line);
            } else if (line.startsWith("SigIgn:")) {
                ignored = mask(line);
            }
        }
        return ((pending | (alone ? shared : 0)) & ~blocked & ~ignored) != 0;
    }

    private static long mask(String line) {
        return Long.parseUnsignedLong(line.substring(7).strip(), 16);
    }

    static boolean isDying(List<String> status) {
        for (String line : status) {
            if (line.startsWith("State:")) {
                String state = line.substring(6).strip();
                if (state.startsWith("Z") || state.startsWith("X")) {
                    return true;
                }
            } else if (line.startsWith("SigPnd:") || line.startsWith("ShdPnd:")) {
                if ((Long.parseUnsignedLong(line.substring(7).strip(), 16) & SIGKILL_BIT) != 0) {
                    return true;
                }
            }
        }
        return false;
    }

    private ProcessStatus() {}
}
