package io.etcfs.cli.mount;

import io.etcfs.cli.Version;
import io.etcfs.linux.call.ErrorNumbers;
import io.etcfs.linux.call.LinuxException;
import io.etcfs.linux.call.MountCalls;
import io.etcfs.linux.mount.MountInfo;
import io.etcfs.linux.mount.Mounts;
import io.etcfs.linux.process.ProcessStatus;
import io.etcfs.node.control.ControlClient;
import io.etcfs.node.control.ControlException;
import io.etcfs.node.host.ExitCode;
import io.etcfs.node.host.MountPoint;
import io.etcfs.node.host.Refusal;
import io.etcfs.node.host.RunDirectory;
import io.etcfs.node.host.UserPath;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/**
 * Has the daemon publish everything, unmounts, and waits until the daemon has left: then the filesystem can be mounted again, also elsewhere. Exit
 * codes are those of umount(8).
 */
@Command(name = "umount", description = "Unmount a filesystem and wait until its node has left.", mixinStandardHelpOptions = true, versionProvider = Version.class,
        exitCodeOnInvalidInput = ExitCode.USAGE, exitCodeOnExecutionException = ExitCode.INTERNAL, exitCodeListHeading = "Exit codes, as of umount(8):%n",
        exitCodeList = {"0:unmounted, and the node has left", "1:usage, or not permitted", "2:unmounted, but the node has not left, or not in order: it counts as vanished until it is mounted again or declared dead",
            "4:a fault in this program", "32:not unmounted, as when the mount is busy or changes can't be published"})
public final class UmountCommand implements Callable<Integer> {
    private static final Duration CONTROL_TIMEOUT = Duration.ofSeconds(5);
    private static final Duration SYNC_TIMEOUT = Duration.ofSeconds(60);
    private static final Duration LEAVE_LIMIT = Duration.ofSeconds(60);
    private static final long LOOK_MS = 20;

    @Spec
    private CommandSpec spec;

    @Parameters(index = "0", paramLabel = "DIR", description = "Where it is mounted.")
    private String directory;

    @Override
    public Integer call() throws Refusal {
        MountInfo mount = mountedAt(UserPath.of(directory));
        Path path = Path.of(mount.mountPoint());
        RunDirectory run = RunDirectory.ofThisHost();
        List<Path> silent = new ArrayList<>();
        Optional<ControlClient.Mounted> daemon = ControlClient.daemons(run.path(), CONTROL_TIMEOUT, silent::add).stream()
                .filter(candidate -> candidate.directory().equals(path)).findFirst();
        if (daemon.isPresent()) {
            return unmount(path, daemon.get());
        }
        requireNone(mount, run, silent);
        unmount(path);
        say("unmounted " + path + ", which no daemon of this host served: if it was killed or stopped itself, its node counts as vanished until it is mounted again or declared dead");
        return ExitCode.SYSTEM;
    }

    private int unmount(Path path, ControlClient.Mounted daemon) throws Refusal {
        // Asked before anything else: once the mount has ended the daemon may take no more questions.
        try (ControlClient.Question left = askHowItLeaves(path, daemon)) {
            sync(path, daemon);
            unmount(path);
            Optional<ProcessHandle> process = ProcessHandle.of(daemon.pid());
            if (process.isPresent() && !ended(process.get())) {
                say("unmounted, but the daemon (process " + daemon.pid() + ") has not left after " + LEAVE_LIMIT.toSeconds() + " s: see its log");
                return ExitCode.SYSTEM;
            }
            if (!leftInOrder(left)) {
                say("unmounted, but node '" + daemon.node() + "' did not leave in order, its log says why: it counts as vanished, and keeps what it owned, until it is mounted again or declared dead");
                return ExitCode.SYSTEM;
            }
            return ExitCode.OK;
        }
    }

    private static ControlClient.Question askHowItLeaves(Path path, ControlClient.Mounted daemon) throws Refusal {
        try {
            return ControlClient.begin(daemon.socket(), "left");
        } catch (ControlException e) {
            throw new Refusal(ExitCode.MOUNT_FAILED, path + " stays mounted: " + e.getMessage());
        }
    }

    /** The daemon has ended. One of an earlier version does not know the question: nothing is known against it. */
    private static boolean leftInOrder(ControlClient.Question left) {
        try {
            return left.answer(CONTROL_TIMEOUT).equals("clean");
        } catch (ControlException.Gone e) {
            return false;
        } catch (ControlException e) {
            return true;
        }
    }

    private void say(String message) {
        spec.commandLine().getErr().println(spec.qualifiedName() + ": " + message);
        spec.commandLine().getErr().flush();
    }

    private static MountInfo mountedAt(Path given) throws Refusal {
        try {
            Path path = MountPoint.canonical(given);
            Optional<MountInfo> mount = Mounts.at(path);
            if (mount.isEmpty()) {
                throw new Refusal(ExitCode.MOUNT_FAILED, path + (Files.exists(path, LinkOption.NOFOLLOW_LINKS) ? ": not mounted" : ": does not exist"));
            }
            if (!mount.get().type().equals(Mounts.TYPE)) {
                throw new Refusal(ExitCode.MOUNT_FAILED, path + " has " + mount.get().source() + " (" + mount.get().type() + ") mounted, not EtcFS: use umount");
            }
            return mount.get();
        } catch (IOException e) {
            throw new Refusal(ExitCode.MOUNT_FAILED, given + ": does not exist");
        }
    }

    /** Which directory a daemon that does not answer has mounted is not known: by its filesystem it may be this one. */
    private static void requireNone(MountInfo mount, RunDirectory run, List<Path> silent) throws Refusal {
        for (Path socket : silent) {
            if (run.mayBeOf(socket, mount.source())) {
                throw new Refusal(ExitCode.MOUNT_FAILED, mount.mountPoint() + " stays mounted: the daemon at " + socket
                        + " does not answer, and what it has accepted may not be published: let it go on (kill -CONT), or give that up (kill -9) and umount again");
            }
        }
    }

    private static void sync(Path path, ControlClient.Mounted daemon) throws Refusal {
        try {
            ControlClient.ask(daemon.socket(), "sync " + SYNC_TIMEOUT.toMillis(), SYNC_TIMEOUT.plus(CONTROL_TIMEOUT));
        } catch (ControlException e) {
            throw new Refusal(ExitCode.MOUNT_FAILED, path + " stays mounted: " + e.getMessage());
        }
    }

    private static void unmount(Path path) throws Refusal {
        int result = MountCalls.umount(path.toString(), MountCalls.UMOUNT_NOFOLLOW);
        if (result == -ErrorNumbers.EBUSY) {
            throw new Refusal(ExitCode.MOUNT_FAILED, path + ": target is busy: end the programs that use it (fuser -vm " + path + " lists them)");
        }
        if (result == -ErrorNumbers.EPERM) {
            throw new Refusal(ExitCode.USAGE, path + ": must be root to unmount");
        }
        if (result < 0) {
            throw new Refusal(ExitCode.MOUNT_FAILED, path + ": " + new LinuxException(-result, "umount").getMessage());
        }
    }

    /** Looks by itself: the JDK looks less and less often at a process that is no child, sees its end up to 2 s late, and takes one for alive that init has not waited for yet. */
    private static boolean ended(ProcessHandle process) {
        long until = System.nanoTime() + LEAVE_LIMIT.toNanos();
        while (!ProcessStatus.hasEnded(process.pid())) {
            if (System.nanoTime() >= until) {
                return false;
            }
            try {
                Thread.sleep(LOOK_MS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return false;
            }
        }
        return true;
    }
}
