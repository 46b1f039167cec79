package io.etcfs.linux.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

class ProcessStatusTest {
    private static List<String> status(String state, String thread, String shared) {
        return List.of("Name:\tx", "State:\t" + state, "SigQ:\t0/1", "SigPnd:\t" + thread, "ShdPnd:\t" + shared, "SigBlk:\tffffffffffffffff");
    }

    @Test
    void pendingSigkillOrNoLongerThere() {
        String none = "0000000000000000";
        assertFalse(ProcessStatus.isDying(status("S (sleeping)", none, none)));
        assertFalse(ProcessStatus.isDying(status("D (disk sleep)", "fffffffffffffeff", "fffffffffffffeff")));
        assertTrue(ProcessStatus.isDying(status("D (disk sleep)", "0000000000000100", none)));
        assertTrue(ProcessStatus.isDying(status("D (disk sleep)", none, "8000000000000100")));
        assertTrue(ProcessStatus.isDying(status("Z (zombie)", none, none)));
        assertTrue(ProcessStatus.isDying(status("X (dead)", none, none)));
    }

    @Test
    void aSignalThatTheThreadWillTake() {
        String none = "0000000000000000";
        for (String threads : List.of("1", "2")) {
            assertFalse(ProcessStatus.isSignalled(signals(threads, none, none, none, none)));
            assertTrue(ProcessStatus.isSignalled(signals(threads, "0000000000002000", none, none, none)));
            assertFalse(ProcessStatus.isSignalled(signals(threads, "0000000000002000", none, "0000000000002000", none)), "blocked");
            assertFalse(ProcessStatus.isSignalled(signals(threads, "0000000000002000", none, none, "0000000000002000")), "ignored");
            assertEquals(threads.equals("1"), ProcessStatus.isSignalled(signals(threads, none, "0000000000002000", none, none)), "another thread can take it");
        }
    }

    private static List<String> signals(String threads, String thread, String shared, String blocked, String ignored) {
        return List.of("Threads:\t" + threads, "SigPnd:\t" + thread, "ShdPnd:\t" + shared, "SigBlk:\t" + blocked, "SigIgn:\t" + ignored);
    }

    @Test
    void realProcesses() throws Exception {
        assertFalse(ProcessStatus.isDying(0));
        assertFalse(ProcessStatus.isDying((int) ProcessHandle.current().pid()));
        Process process = new ProcessBuilder("sleep", "60").start();
        assertFalse(ProcessStatus.isDying((int) process.pid()));
        process.destroyForcibly().waitFor();
        assertTrue(ProcessStatus.isDying((int) process.pid()));
    }

    @Test
    void whoIsOnlyToBeWaitedForHasEnded() throws Exception {
        assertFalse(ProcessStatus.hasEnded(ProcessHandle.current().pid()));
        assertTrue(ProcessStatus.hasEnded(List.of("State:\tZ (zombie)", "Threads:\t1")));
        assertFalse(ProcessStatus.hasEnded(List.of("State:\tZ (zombie)", "Threads:\t3")), "its first thread has");
        Process process = new ProcessBuilder("sleep", "60").start();
        assertFalse(ProcessStatus.hasEnded(process.pid()));
        process.destroyForcibly().waitFor();
        assertTrue(ProcessStatus.hasEnded(process.pid()));
    }

    @Test
    void namesAreCut() throws Exception {
        String before = Files.readString(Path.of("/proc/self/comm")).strip();
        try {
            OwnProcess.setName("etcfs-daemon-of-a-test");
            assertEquals("etcfs-daemon-of", Files.readString(Path.of("/proc/self/comm")).strip());
        } finally {
            OwnProcess.setName(before);
        }
        Thread thread = Thread.ofPlatform().start(() -> {
            OwnProcess.setThreadName("renamed");
            try {
                assertEquals("renamed", Files.readString(Path.of("/proc/thread-self/comm")).strip());
            } catch (java.io.IOException e) {
                throw new IllegalStateException(e);
            }
        });
        thread.join();
    }

    @Test
    void umaskIsTheProcesss() {
        int before = OwnProcess.setUmask(0123);
        assertEquals(0123, OwnProcess.setUmask(before));
    }
}
