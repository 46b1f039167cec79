package io.etcfs.linux.process;

import io.etcfs.linux.call.ProcessCalls;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** What this process sets for itself. */
public final class OwnProcess {
    private static final int NAME_BYTES = 15;

    /** The name that ps(1) and pgrep(1) show, cut to 15 bytes. Names of threads are the virtual machine's. */
    public static void setName(String name) throws IOException {
        byte[] bytes = name.getBytes(StandardCharsets.UTF_8);
        byte[] cut = bytes.length <= NAME_BYTES ? bytes : java.util.Arrays.copyOf(bytes, NAME_BYTES);
        Files.write(Path.of("/proc/self/comm"), cut);
    }

    /** The name of the calling thread (PR_SET_NAME), which the virtual machine sets only for threads that it starts. */
    public static void setThreadName(String name) {
        ProcessCalls.setThreadName(name);
    }

    /** Returns the mask before. */
    public static int setUmask(int mask) {
        return ProcessCalls.setUmask(mask);
    }

    private OwnProcess() {}
}
