package io.etcfs.node.daemon;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.label.Label;
import io.etcfs.core.label.LabelException;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Membership;
import io.etcfs.core.record.proto.Super;
import io.etcfs.core.session.StartException;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.OtherClusterException;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreStatus;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.fuse.protocol.UnsupportedKernelException;
import io.etcfs.linux.call.ErrorNumbers;
import io.etcfs.linux.call.LinuxException;
import io.etcfs.linux.clock.BootClock;
import io.etcfs.linux.mount.FuseMount;
import io.etcfs.linux.mount.FuseSession;
import io.etcfs.linux.mount.MountOptions;
import io.etcfs.linux.mount.Mounts;
import io.etcfs.linux.mount.TransportUnavailableException;
import io.etcfs.linux.process.LockFile;
import io.etcfs.linux.process.OwnProcess;
import io.etcfs.linux.process.ProcessStatus;
import io.etcfs.node.control.ControlClient;
import io.etcfs.node.control.ControlException;
import io.etcfs.node.control.ControlServer;
import io.etcfs.node.host.ExitCode;
import io.etcfs.node.host.MountPoint;
import io.etcfs.node.host.Refusal;
import io.etcfs.node.host.RunDirectory;
import io.etcfs.node.json.Json;
import io.etcfs.node.log.Log;
import io.etcfs.node.supervisor.Supervisor;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.lang.System.Logger;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Locale;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import sun.misc.Signal;

/**
 * A node of a filesystem, from the first check of its inputs to its clean leave. One for a process.
 *
 * <p>Order of the start: what is local and cheap is checked first; the lock file is taken before the device is opened; the mount comes last.
 * Whatever fails, what was done before is taken back in the opposite order, and the user gets one line.
 *
 * <p>Ends: by {@code umount}, SIGTERM or SIGINT, with a clean leave and code 0 (2 if something could not be published any more, or the node could not leave in order); or, when the node learns that it lost its fence or its journal, by cutting
 * off the kernel and stopping at once with code 77. SIGHUP opens the log file again and reads the log level from /etc/etcfs/log-level.
 */
public final class Daemon {
    private static final Logger LOG = System.getLogger(Daemon.class.getName());

    private static final long SECOND_NS = 1_000_000_000L;
    private static final long REQUEST_TIMEOUT_NS = 5 * SECOND_NS;
    private static final long OPERATION_DEADLINE_NS = 20 * SECOND_NS;
    /** How long an earlier daemon of this node may take to go. */
    private static final long LOCK_WAIT_NS = 30 * SECOND_NS;
    /** How long one that was killed may take, before its mount is cut off so that it can. */
    private static final long DYING_WAIT_NS = 4 * SECOND_NS;
    private static final long MOUNT_ENDS_NS = 2_000_000_000L;
    private static final long LEAVE_TIMEOUT_NS = 30 * SECOND_NS;
    private static final long BUSY_WAIT_NS = 10 * SECOND_NS;
    private static final long BUSY_RETRY_NS = SECOND_NS / 5;
    private static final long DETACHED_WAIT_S = 5;
    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(1);
    private static final Duration ABORT_LIMIT = Duration.ofSeconds(5);
    private static final int MAX_TXN_OPS = 128;
    private static final long BASE_HEAP_BYTES = 256L << 20;
    private static final long MIN_CACHE_BYTES = 16L << 20;
    private static final Path LOG_LEVEL_FILE = Path.of("/etc/etcfs/log-level");

    private final Options options;
    private final String version;
    private final BootClock clock = new BootClock();
    private final RunDirectory runDirectory = RunDirectory.ofThisHost();
    private final AtomicInteger stopSignals = new AtomicInteger();
    /** Somebody sees to it that what the first of them asked for is done. */
    private final AtomicBoolean stopTaken = new AtomicBoolean();
    /** How the node left; never, if it stopped. */
    private final CompletableFuture<Boolean> leftClean = new CompletableFuture<>();
    private volatile Log log;
    private volatile ClusterNode node;
    private volatile FuseSession session;
    private volatile Supervisor supervisor;
    private volatile ControlServer control;
    /** From here on the device may be written, and a lock on this node may say so. */
    private volatile boolean began;
    private volatile boolean published;
    private volatile boolean serving;
    private volatile boolean stopping;

    private Daemon(Options options, String version) {
        this.options = options;
        this.version = version;
    }

    /**
     * Mounts and serves until the mount has ended.
     *
     * @param ready is told the mount point once requests are answered
     * @return the process's exit code
     */
    public static int run(Options options, String version, Consumer<Path> ready) throws Refusal {
        Daemon daemon = new Daemon(options, version);
        try {
            try (Undo undo = new Undo()) {
                daemon.start(undo);
                ready.accept(daemon.session.mountPoint());
                daemon.serve();
            }
            return daemon.leftClean.getNow(false) ? ExitCode.OK : ExitCode.SYSTEM;
        } catch (InterruptedException e) {
            throw new Refusal(ExitCode.MOUNT_FAILED, "stopped by a signal before the filesystem was mounted");
        }
    }

    private void start(Undo undo) throws Refusal, InterruptedException {
        openLog();
        // Before the device: a login to a target ends the one of a daemon of this node that runs.
        LockFile lock = takeLock();
        undo.add("giving the lock back", () -> {
            if (!began) {
                lock.withdraw();
            }
        });
        Path mountPoint = prepareMountPoint();
        SharedDevice shared = openDevice();
        BlockDevice device = shared.device();
        undo.add("closing the device", device::close);
        Label label = readLabel(device);
        MetadataStore store = options.etcd().open(clock, new VirtualTasks(this::uncaught), ExitCode.MOUNT_FAILED);
        undo.add("closing the connections to etcd", store::close);
        Superblock superblock = readSuper(store, label, device.sizeBytes());
        handleSignals();
        began = true;
        undo.add("telling how it left", this::tellHowItLeft);
        node = startNode(store, shared, superblock);
        undo.add("leaving", () -> {
            LOG.log(Level.INFO, "leaving filesystem=" + options.filesystem() + " node=" + options.node());
            leftClean.complete(node.leave(LEAVE_TIMEOUT_NS) && published);
        });
        openControl(undo);
        openLogFile();
        mount(undo, mountPoint);
        tellOfMount(lock);
        supervise(undo);
        writePidFile(undo);
        serving = true;
        if (isStopWanted() && stopTaken.compareAndSet(false, true)) {
            throw new InterruptedException();
        }
        LOG.log(Level.INFO, "mounted filesystem=" + options.filesystem() + " node=" + options.node() + " directory=" + mountPoint + " device=" + options.device()
                + " transport=" + transport() + " version=" + version);
    }

    private void openLog() throws Refusal {
        try {
            OwnProcess.setUmask(022);
            OwnProcess.setName("etcfs");
            if (options.logFile() != null && options.logFile().getParent() != null) {
                Files.createDirectories(options.logFile().getParent());
            }
            log = Log.open(options.logFile(), options.logLevel());
        } catch (IOException e) {
            throw unwritableLog(e);
        }
    }

    /** Until now it is there only if something was logged. */
    private void openLogFile() throws Refusal {
        try {
            log.reopen();
        } catch (IOException e) {
            throw unwritableLog(e);
        }
    }

    private Refusal unwritableLog(IOException e) {
        return refusal("cannot write the log file " + options.logFile() + " (" + e.getMessage() + "): name another --log-file");
    }

    /** To those who asked, and have to get it before the process ends. */
    private void tellHowItLeft() throws InterruptedException {
        leftClean.complete(false);
        if (control != null) {
            control.awaitAnswers(ANSWER_LIMIT);
        }
    }

    private SharedDevice openDevice() throws Refusal {
        return SharedDevice.open(options.device(), options.filesystem() + "/" + options.node(), options.fencer(), () -> stopNow("the device can't be reached any more"), ExitCode.MOUNT_FAILED);
    }

    private Label readLabel(BlockDevice device) throws Refusal {
        try {
            return Label.read(device);
        } catch (LabelException e) {
            throw refusal(options.device() + " is not usable: " + e.getMessage() + ": name the right --device, or make a filesystem with etcfs mkfs");
        } catch (DeviceException e) {
            throw refusal("cannot read " + options.device() + ": " + e.getMessage());
        }
    }

    /** @param created its record's create revision */
    private record Superblock(Super fields, long created) {}

    private Superblock readSuper(MetadataStore store, Label label, long deviceBytes) throws Refusal {
        try {
            return readSuper(store, options.etcd().requireUsable(store, REQUEST_TIMEOUT_NS, ExitCode.MOUNT_FAILED), label, deviceBytes);
        } catch (OtherClusterException e) {
            throw refusal(e.getMessage() + ": name members of one cluster with --etcd");
        }
    }

    private Superblock readSuper(MetadataStore store, StoreStatus status, Label label, long deviceBytes) throws Refusal {
        for (StoreStatus.Member member : status.members()) {
            if (member.error() != null) {
                LOG.log(Level.WARNING, "etcd member does not answer, its version is not known endpoint=" + member.endpoint() + " error=" + member.error());
            }
        }
        try {
            KeyValue found = store.range(new Keys(options.filesystem()).superblock(), null, 0, false, 0, REQUEST_TIMEOUT_NS).only();
            if (found == null) {
                throw refusal("etcd has no filesystem '" + options.filesystem() + "': check the name and --etcd, or make it with etcfs mkfs");
            }
            Super superblock = Super.parseFrom(found.value());
            if (superblock.getFormatVersion() != Label.FORMAT_VERSION) {
                throw refusal("filesystem '" + options.filesystem() + "' has format " + superblock.getFormatVersion() + ", this program knows " + Label.FORMAT_VERSION + ": use another version");
            }
            if (status.clusterId() != superblock.getEtcdClusterId()) {
                throw refusal("filesystem '" + options.filesystem() + "' was made in etcd cluster " + Long.toHexString(superblock.getEtcdClusterId()) + ", this is "
                        + Long.toHexString(status.clusterId()) + ": name the right --etcd");
            }
            label.requireMatch(superblock, options.device(), deviceBytes);
            return new Superblock(superblock, found.createRevision());
        } catch (StoreUnavailableException e) {
            throw refusal(options.etcd().unavailable(e));
        } catch (StoreRejectedException e) {
            throw refusal("etcd refused a read (" + e.reason() + "): " + e.getMessage());
        } catch (LabelException e) {
            throw refusal(e.getMessage());
        } catch (InvalidProtocolBufferException e) {
            throw refusal("the superblock of '" + options.filesystem() + "' in etcd can't be read: " + e.getMessage());
        }
    }

    /** A daemon that was killed lets go of its lock a moment before its mount ends: each when the last of its threads does. */
    private Path prepareMountPoint() throws Refusal, InterruptedException {
        for (long until = clock.nowNs() + MOUNT_ENDS_NS; ; Thread.sleep(50)) {
            try {
                return MountPoint.prepare(options.mountPoint());
            } catch (Refusal refusal) {
                if (clock.nowNs() > until || !MountPoint.hasEtcfs(options.mountPoint())) {
                    throw refusal;
                }
            }
        }
    }

    /**
     * A daemon of this node that is just leaving is waited for; one that serves is not. Once the node has begun to work the lock is never released: it goes with the process,
     * when no device access is under way any more. One that was refused before that gives it back.
     */
    private LockFile takeLock() throws Refusal, InterruptedException {
        Path path = runDirectory.lockFile(options.filesystem(), options.node());
        try {
            runDirectory.create();
            Optional<LockFile> lock = LockFile.tryAcquire(path);
            if (lock.isEmpty() && !isServing()) {
                lock = LockFile.acquire(path, clock, clock.nowNs() + DYING_WAIT_NS);
                if (lock.isEmpty()) {
                    cutOffDying(path);
                    lock = LockFile.acquire(path, clock, clock.nowNs() + LOCK_WAIT_NS);
                }
            }
            if (lock.isPresent()) {
                lock.get().say("");
            }
            return lock.orElseThrow(() -> refusal("node '" + options.node() + "' of filesystem '" + options.filesystem() + "' already runs on this host (" + path
                    + " is locked): umount it, or give this one another --node"));
        } catch (IOException e) {
            throw refusal("cannot lock " + path + ": " + e.getMessage());
        }
    }

    /**
     * A daemon that was killed does not end while one of its threads waits in the kernel for its own mount: for a lock there of a call that only the daemon could answer. Its supervisor cuts
     * the mount off; this is for where that was killed, too.
     */
    private void cutOffDying(Path lockFile) throws IOException {
        String[] said = Files.readString(lockFile).strip().split(" ");
        if (said.length == 2 && ProcessStatus.isDying(Integer.parseInt(said[0])) && Mounts.cutOff(Integer.parseInt(said[1]), options.filesystem())) {
            LOG.log(Level.WARNING, "an earlier daemon of this node was killed and can't end, as it waits for its own mount: that is cut off process=" + said[0]);
        }
    }

    private boolean isServing() {
        try {
            return ControlClient.ask(runDirectory.socket(options.filesystem(), options.node()), "mount", Duration.ofSeconds(2)).contains("state=serving");
        } catch (ControlException e) {
            return false;
        }
    }

    private ClusterNode startNode(MetadataStore store, SharedDevice shared, Superblock superblock) throws Refusal, InterruptedException {
        var ports = new ClusterNode.Ports(store, shared.device(), clock, new VirtualTasks(this::uncaught), new SplittableRandom(), shared.fencer());
        var settings = new ClusterNode.Settings(options.filesystem(), options.node(), UUID.randomUUID().toString(), membership(shared.fencer().machine()), OPERATION_DEADLINE_NS, MAX_TXN_OPS, cacheBytes());
        ClusterNode started = new ClusterNode(ports, settings, superblock.fields(), superblock.created());
        started.onStop(this::stopNow);
        started.processes(ProcessStatus::isDying);
        try {
            started.start(this::isStopWanted);
        } catch (StartException e) {
            if (isStopWanted()) {
                throw new InterruptedException();
            }
            throw refusal(e.getMessage());
        }
        if (isStopWanted()) {
            started.leave(LEAVE_TIMEOUT_NS);
            throw new InterruptedException();
        }
        return started;
    }

    /** Half of what the heap has beyond what a daemon takes that caches nothing. bin/etcfs sizes the heap by the same rule. */
    private long cacheBytes() {
        return options.cacheBytes() > 0 ? options.cacheBytes() : Math.max(MIN_CACHE_BYTES, (Runtime.getRuntime().maxMemory() - BASE_HEAP_BYTES) / 2);
    }

    private Membership membership(String machine) throws Refusal {
        try {
            String host = Files.readString(Path.of("/proc/sys/kernel/hostname")).strip();
            return Membership.newBuilder()
                    .setHost(host)
                    .setInstanceId(machine)
                    .setAddress(addressOf(host))
                    .setBootId(Files.readString(Path.of("/proc/sys/kernel/random/boot_id")).strip())
                    .setSinceNs(clock.realtimeNs())
                    .setVersion(version)
                    .build();
        } catch (IOException e) {
            throw refusal("cannot read the host's name: " + e.getMessage());
        }
    }

    private static String addressOf(String host) {
        try {
            return InetAddress.getByName(host).getHostAddress();
        } catch (IOException e) {
            return "";
        }
    }

    private void openControl(Undo undo) throws Refusal {
        Path path = runDirectory.socket(options.filesystem(), options.node());
        try {
            control = ControlServer.open(path, this::control);
            undo.add("closing the control socket", control::close);
        } catch (IOException e) {
            throw refusal("cannot open the control socket " + path + ": " + e.getMessage());
        }
    }

    private void mount(Undo undo, Path mountPoint) throws Refusal {
        try {
            session = FuseMount.mount(MountOptions.of(options.filesystem(), mountPoint).withFlags(options.mountFlags()).withTransport(options.transport()), kernel -> {
                node.attachKernel(kernel);
                return node;
            }, this::uncaught);
            undo.add("unmounting", session::close);
            session.start();
        } catch (UnsupportedKernelException e) {
            throw refusal("the kernel is too old: " + e.getMessage());
        } catch (TransportUnavailableException e) {
            throw refusal("--transport uring: " + e.getMessage());
        } catch (LinuxException e) {
            throw refusal("cannot mount (" + e.getMessage() + ")" + (e.errno() == ErrorNumbers.EPERM ? ": run it as root" : e.errno() == ErrorNumbers.ENOENT || e.errno() == ErrorNumbers.ENODEV
                    ? ": load the kernel's fuse module" : ""));
        } catch (IOException e) {
            throw refusal("cannot mount on " + mountPoint + ": " + e.getMessage());
        }
    }

    /** For {@link #cutOffDying}. */
    private void tellOfMount(LockFile lock) throws Refusal {
        try {
            lock.say(ProcessHandle.current().pid() + " " + session.connectionNumber() + "\n");
        } catch (IOException e) {
            throw refusal("cannot write the lock file " + runDirectory.lockFile(options.filesystem(), options.node()) + ": " + e.getMessage());
        }
    }

    private void supervise(Undo undo) {
        if (options.hangLimitS() == 0) {
            return;
        }
        FuseSession mounted = session;
        supervisor = new Supervisor(clock, System.getenv(Supervisor.LIB_VARIABLE), options.hangLimitS(), mounted.mountPoint(), options.logFile(), new Supervisor.Mount() {
            @Override
            public Path abortFile() throws IOException {
                return mounted.abortFile();
            }

            @Override
            public boolean hasEnded() {
                return mounted.hasEnded();
            }
        }, node::pulse);
        supervisor.start();
        undo.add("ending the supervisor", supervisor::close);
    }

    private void writePidFile(Undo undo) throws Refusal {
        if (options.pidFile() == null) {
            return;
        }
        try {
            Files.writeString(options.pidFile(), ProcessHandle.current().pid() + "\n");
            undo.add("removing the pid file", () -> Files.deleteIfExists(options.pidFile()));
        } catch (IOException e) {
            throw refusal("cannot write the pid file " + options.pidFile() + " (" + e.getMessage() + "): name another --pid-file");
        }
    }

    private void serve() throws InterruptedException {
        FuseSession.Ending ending = session.awaitUnmounted();
        while (stopping) {
            // The process is halted, with the mount in its place.
            Thread.sleep(ABORT_LIMIT);
        }
        if (ending == FuseSession.Ending.ABORTED) {
            session.stayInPlace();
        }
        serving = false;
        if (supervisor != null) {
            supervisor.close();
        }
        LOG.log(Level.INFO, "mount ended how=" + ending.name().toLowerCase(Locale.ROOT));
        try {
            node.sync(LEAVE_TIMEOUT_NS);
            published = true;
        } catch (FsException e) {
            LOG.log(Level.ERROR, "changes of the last moments are lost: they could not be published errno=" + e.errno());
        }
    }

    private String control(String command, String argument) throws ControlException {
        return switch (command) {
            case "mount" -> "filesystem=" + options.filesystem() + "\tnode=" + options.node() + "\tdirectory=" + (session == null ? options.mountPoint() : session.mountPoint())
                    + "\tpid=" + ProcessHandle.current().pid() + "\tstate=" + (serving ? "serving" : "changing");
            case "status" -> Json.of(status());
            case "sync" -> sync(argument);
            case "left" -> leftClean.join() ? "clean" : "unclean";
            case "log-level" -> setLevel(argument);
            case "stop" -> {
                Thread.ofVirtual().name("stop").start(this::unmountForSignal);
                yield "";
            }
            default -> throw new ControlException("unknown command '" + command + "'");
        };
    }

    private record Status(String filesystem, String node, String directory, String device, long pid, String version, boolean serving, String transport, Object cluster,
            Object kernel, Supervisor.Status supervisor, Memory memory) {}

    /** The Java heap: with garbage, taken from the system, and at most. */
    private record Memory(long heapUsedBytes, long heapCommittedBytes, long heapMaxBytes) {
        static Memory now() {
            Runtime r = Runtime.getRuntime();
            return new Memory(r.totalMemory() - r.freeMemory(), r.totalMemory(), r.maxMemory());
        }
    }

    private String transport() {
        return session == null ? null : session.transport().name().toLowerCase(Locale.ROOT);
    }

    private Status status() {
        FuseSession mounted = session;
        return new Status(options.filesystem(), options.node(), (mounted == null ? options.mountPoint() : mounted.mountPoint()).toString(), options.device(),
                ProcessHandle.current().pid(), version, serving, transport(), node.status(), mounted == null ? null : mounted.statistics(), supervisor == null ? null : supervisor.status(), Memory.now());
    }

    private String sync(String argument) throws ControlException {
        try {
            node.sync(argument.isEmpty() ? OPERATION_DEADLINE_NS : TimeUnit.MILLISECONDS.toNanos(Long.parseLong(argument)));
            return "";
        } catch (FsException e) {
            throw new ControlException("could not publish what was written (" + e.errno() + "): check that etcd and the device answer");
        } catch (NumberFormatException e) {
            throw new ControlException("'" + argument + "' is not a number of ms");
        }
    }

    private String setLevel(String name) throws ControlException {
        log.setLevel(Log.levelOf(name).orElseThrow(() -> new ControlException("log level '" + name + "' is none of error, warn, info, debug, trace")));
        return "";
    }

    private void handleSignals() {
        Signal.handle(new Signal("TERM"), signal -> stopSignal());
        Signal.handle(new Signal("INT"), signal -> stopSignal());
        Signal.handle(new Signal("HUP"), signal -> rereadLogging());
    }

    private boolean isStopWanted() {
        return stopSignals.get() > 0;
    }

    /** A start is not interrupted, it looks itself: what it has begun by then is to be taken back in order. */
    private void stopSignal() {
        stopSignals.incrementAndGet();
        if (serving && stopTaken.compareAndSet(false, true)) {
            unmountForSignal();
        }
    }

    /** Waits a while for a busy mount, less after a second signal, then takes it from its place and cuts off who still has files open. */
    private void unmountForSignal() {
        try {
            long untilNs = clock.nowNs() + BUSY_WAIT_NS;
            while (true) {
                try {
                    session.unmount();
                    return;
                } catch (LinuxException e) {
                    if (e.errno() != ErrorNumbers.EBUSY) {
                        throw e;
                    }
                }
                if (clock.nowNs() >= untilNs || stopSignals.get() > 1) {
                    break;
                }
                clock.sleep(BUSY_RETRY_NS);
            }
            LOG.log(Level.WARNING, "the mount is busy, detaching it directory=" + session.mountPoint());
            session.detach();
            if (session.awaitUnmounted(DETACHED_WAIT_S, TimeUnit.SECONDS).isEmpty()) {
                LOG.log(Level.WARNING, "files are still open, cutting their processes off");
                session.abort();
            }
        } catch (IOException e) {
            LOG.log(Level.ERROR, "cannot unmount: " + e.getMessage());
            session.abort();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void rereadLogging() {
        try {
            log.reopen();
            log.setLevel(Files.exists(LOG_LEVEL_FILE) ? Log.levelOf(Files.readString(LOG_LEVEL_FILE).strip()).orElse(options.logLevel()) : options.logLevel());
        } catch (IOException e) {
            LOG.log(Level.WARNING, "cannot open the log again: " + e.getMessage());
        }
    }

    private void uncaught(Thread thread, Throwable thrown) {
        LOG.log(Level.ERROR, "thread " + thread.getName() + " ended", thrown);
        stopNow("internal error: " + thrown);
    }

    /**
     * Nothing may reach the device or be answered from now on: no undo, no shutdown hooks. The mount stays where it is and fails every call; taken away,
     * programs would go on in the directory below it. The next mount there clears it.
     */
    private void stopNow(String reason) {
        Thread.ofPlatform().daemon().name("stop-limit").start(() -> {
            try {
                Thread.sleep(ABORT_LIMIT);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            Runtime.getRuntime().halt(ExitCode.STOPPED);
        });
        LOG.log(Level.ERROR, "stopping: " + reason);
        stopping = true;
        if (session == null) {
            System.err.println("etcfs mount: the node stopped: " + reason);
            if (options.background()) {
                System.out.println("failed " + ExitCode.MOUNT_FAILED);
            }
        } else {
            session.abort();
        }
        try {
            Files.deleteIfExists(runDirectory.socket(options.filesystem(), options.node()));
            if (options.pidFile() != null) {
                Files.deleteIfExists(options.pidFile());
            }
        } catch (IOException e) {
            LOG.log(Level.DEBUG, "files of a stopped daemon stay: " + e.getMessage());
        }
        Runtime.getRuntime().halt(ExitCode.STOPPED);
    }

    private static Refusal refusal(String message) {
        return new Refusal(ExitCode.MOUNT_FAILED, message);
    }
}
