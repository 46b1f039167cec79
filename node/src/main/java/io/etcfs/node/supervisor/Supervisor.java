package io.etcfs.node.supervisor;

import io.etcfs.core.clock.Clock;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

/**
 * This process's side of lib/supervisor.sh: starts it, gives it a sign of life each second, tells it when the mount has ended, and starts another one where it has ended
 * itself.
 *
 * <p>A sign is given by a virtual thread after a look at the node that needs its one lock: where no virtual thread runs any more or that lock is not to be had, there is none.
 */
public final class Supervisor implements AutoCloseable {
    /** Where bin/etcfs has its parts. */
    public static final String LIB_VARIABLE = "ETCFS_LIB";

    private static final Logger LOG = System.getLogger(Supervisor.class.getName());
    private static final String SCRIPT = "supervisor.sh";
    private static final long BEAT_NS = 1_000_000_000L;
    /** One that ends at once is not started again more often than this. */
    private static final long RESTART_NS = 10_000_000_000L;
    private static final long END_WAIT_S = 2;

    /** The mount, as its connection to the kernel is seen from here. */
    public interface Mount {
        /** What ends the connection when it is written to. */
        Path abortFile() throws IOException;

        /** The connection is ended, and what {@link #abortFile} said may be another mount's. */
        boolean hasEnded();
    }

    /**
     * @param pid      of the process that watches, 0: there is none
     * @param starts   how many there have been
     * @param limitSec after how long without a sign it cuts the mount off
     */
    public record Status(long pid, int starts, int limitSec) {}

    private final Clock clock;
    private final String lib;
    private final int limitS;
    private final Path directory;
    private final Path logFile;
    private final Mount mount;
    private final Runnable lookAtNode;
    private final ReentrantLock lock = new ReentrantLock();
    private volatile Process process;
    private volatile int starts;
    private long startedAtNs;
    private boolean ended;

    /**
     * @param lib        the directory that has the script, or null: there is none
     * @param limitS     without a sign
     * @param logFile    of the daemon, or null: standard error
     * @param lookAtNode returns if the node is well
     */
    public Supervisor(Clock clock, String lib, int limitS, Path directory, Path logFile, Mount mount, Runnable lookAtNode) {
        this.clock = clock;
        this.lib = lib;
        this.limitS = limitS;
        this.directory = directory;
        this.logFile = logFile;
        this.mount = mount;
        this.lookAtNode = lookAtNode;
    }

    /** Goes on by itself until {@link #close}. */
    public void start() {
        if (lib == null || !Files.isReadable(Path.of(lib, SCRIPT))) {
            LOG.log(Level.WARNING, "nothing watches this daemon: no " + SCRIPT + ", start it by bin/etcfs");
            return;
        }
        Thread.ofVirtual().name("supervisor").start(() -> {
            try {
                while (beat()) {
                    clock.sleep(BEAT_NS);
                    lookAtNode.run();
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
    }

    public Status status() {
        Process now = process;
        return new Status(now != null && now.isAlive() ? now.pid() : 0, starts, limitS);
    }

    /** False: it is over. */
    private boolean beat() {
        lock.lock();
        try {
            if (ended || mount.hasEnded()) {
                return false;
            }
            if (process != null && !(process.isAlive() && say("\n"))) {
                LOG.log(Level.WARNING, "the supervisor (process " + process.pid() + ") has ended, another one is started");
                process.destroyForcibly();
                process = null;
            }
            if (process == null && (starts == 0 || clock.nowNs() - startedAtNs >= RESTART_NS)) {
                startProcess();
            }
            return true;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Twice: bash's {@code read -t} can take a character and then say that the time is over, and with its last one a line is lost. The next wait finds the other line there. Signs and waits
     * of a second each can meet at that moment many times in a row.
     */
    private boolean say(String line) {
        try {
            OutputStream to = process.getOutputStream();
            to.write(line.repeat(2).getBytes(StandardCharsets.US_ASCII));
            to.flush();
            return true;
        } catch (IOException e) {
            return false;
        }
    }

    /**
     * In a session of its own, so that a signal to the daemon's process group does not end both. Its standard output is opened here, and looked at afterwards: if the connection is there
     * still, it was ours that was opened.
     */
    private void startProcess() {
        starts++;
        startedAtNs = clock.nowNs();
        try {
            ProcessBuilder builder = new ProcessBuilder(List.of("setsid", "bash", Path.of(lib, SCRIPT).toString(), Integer.toString(limitS), Long.toString(ProcessHandle.current().pid()), directory.toString(),
                    logFile == null ? "-" : logFile.toString()));
            Map<String, String> environment = builder.environment();
            environment.keySet().retainAll(List.of("PATH"));
            environment.put("LC_ALL", "C");
            builder.directory(Path.of("/").toFile()).redirectOutput(mount.abortFile().toFile()).redirectError(ProcessBuilder.Redirect.INHERIT);
            process = builder.start();
            if (mount.hasEnded()) {
                say("end\n");
                ended = true;
            }
        } catch (IOException e) {
            LOG.log(Level.WARNING, "nothing watches this daemon, no supervisor could be started: " + e.getMessage());
        }
    }

    /** The mount has ended. */
    @Override
    public void close() {
        boolean locked = false;
        try {
            // One that was stopped for so long that its pipe is full is not waited for.
            locked = lock.tryLock(END_WAIT_S, TimeUnit.SECONDS);
            if (!locked || ended) {
                return;
            }
            ended = true;
            if (process != null && say("end\n") && !process.waitFor(END_WAIT_S, TimeUnit.SECONDS)) {
                LOG.log(Level.WARNING, "the supervisor (process " + process.pid() + ") does not end");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            if (locked) {
                lock.unlock();
            }
        }
    }
}
