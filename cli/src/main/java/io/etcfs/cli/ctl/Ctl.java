package io.etcfs.cli.ctl;

import io.etcfs.cli.EtcdArguments;
import io.etcfs.cli.Names;
import io.etcfs.cli.Version;
import io.etcfs.core.record.proto.Super;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreStatus;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.node.control.ControlClient;
import io.etcfs.node.control.ControlException;
import io.etcfs.node.daemon.EtcdConnection;
import io.etcfs.node.host.Refusal;
import io.etcfs.node.host.RunDirectory;
import io.etcfs.node.json.Json;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.function.Supplier;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.Spec;

/** The commands of {@code etcfsctl}. Options may stand before or after the command. Exit codes: 0 done, 1 failed, 2 usage; status and fsck have their own. */
@Command(name = "etcfsctl", description = "Show the state of a filesystem, and say what has become of a node.", mixinStandardHelpOptions = true, versionProvider = Version.class,
        synopsisSubcommandLabel = "COMMAND", subcommands = {FsckCommand.class, NodeCommand.class}, exitCodeOnInvalidInput = Ctl.USAGE, exitCodeListHeading = "Exit codes:%n",
        exitCodeList = {"0:done", "1:failed (status: degraded)", "2:usage", "3:status: down, or not known", "4, 8, 16:of fsck, see etcfsctl fsck --help"})
public final class Ctl implements Callable<Integer> {
    static final int USAGE = 2;
    private static final int DOWN = 3;
    /** Of the JSON: raised when a key changes its meaning or goes, not when one is added. */
    static final int SCHEMA = 1;
    private static final long REQUEST_TIMEOUT_NS = 5_000_000_000L;
    private static final Duration CONTROL_TIMEOUT = Duration.ofSeconds(5);

    enum Format { TABLE, JSON }

    /** Reads something of a filesystem that exists. */
    private interface Reading<T> {
        T read(Snapshot snapshot, Super superblock) throws StoreUnavailableException, StoreRejectedException;
    }

    @Spec
    private CommandSpec spec;

    @Mixin
    private EtcdArguments etcd;

    @Option(names = "--name", paramLabel = "NAME", scope = ScopeType.INHERIT, description = "Name of the filesystem.")
    private String name;

    @Option(names = {"-o", "--output"}, paramLabel = "table|json", defaultValue = "table", scope = ScopeType.INHERIT, description = "Form of the result. Default: ${DEFAULT-VALUE}.")
    private Format format;

    @Override
    public Integer call() {
        throw new ParameterException(spec.commandLine(), "a command is missing");
    }

    @Command(name = "status", description = "Nodes, etcd and space.", mixinStandardHelpOptions = true, versionProvider = Version.class, exitCodeOnInvalidInput = USAGE,
            exitCodeOnExecutionException = DOWN, exitCodeListHeading = "%nExit codes:%n",
            exitCodeList = {"0:healthy", "1:degraded: the lines below 'health' say by what", "2:usage", "3:down: etcd does not answer or has no such filesystem, or what is can't be found out"},
            footer = {"",
                "States of nodes:",
                "  up         a member with a session: its mount works",
                "  joining    a session, but no membership: it is about to register (again)",
                "  suspended  a member without a session: it is being mounted, or does not",
                "             reach etcd, and its operations wait; degraded",
                "  lost       gone without having left, and nobody has recorded it; degraded",
                "  vanished   gone, and not fenced: what it owned waits until it is fenced,",
                "             back, or declared dead; degraded",
                "  fenced     or declared dead: it owns nothing, and can be mounted again",
                "  departed   left in order, and owns nothing; listed with --all only",
                "",
                "Columns of nodes:",
                "  HOST        where its daemon runs",
                "  VERSION     of that daemon",
                "  SINCE       when it became a member",
                "  GENERATION  how often it was fenced or declared dead",
                "  SESSION     the revision of etcd that identifies its session",
                "  LEASE       etcd's lease of that session, in hexadecimal",
                "  BATCH       the number of its last transaction that others can see",
                "",
                "-o json has all nodes, and more of each."})
    int status(@Option(names = {"-a", "--all"}, description = "List nodes that have left, too.") boolean all) throws Refusal {
        requireName(spec);
        EtcdConnection connection = etcd.connection(USAGE);
        StatusReport report = readStatus(connection);
        show(report, () -> Tables.status(report, all));
        return report.health().exitCode();
    }

    private StatusReport readStatus(EtcdConnection connection) throws Refusal {
        StoreStatus status = null;
        try (MetadataStore store = connection.open(USAGE)) {
            status = store.status(REQUEST_TIMEOUT_NS);
            Snapshot snapshot = new Snapshot(store, name, REQUEST_TIMEOUT_NS);
            Super superblock = snapshot.superblock();
            return superblock == null ? StatusReport.down(noFilesystem(), status) : StatusReport.read(snapshot, status, superblock);
        } catch (StoreUnavailableException e) {
            return StatusReport.down(connection.unavailable(e), status);
        } catch (StoreRejectedException e) {
            return StatusReport.down("etcd refused a read (" + e.reason() + "): " + e.getMessage(), status);
        }
    }

    @Command(name = "df", description = "Space of the device and of each node.", mixinStandardHelpOptions = true, versionProvider = Version.class, exitCodeOnInvalidInput = USAGE)
    int df() throws Refusal {
        SpaceReport report = read((snapshot, superblock) -> SpaceReport.read(snapshot, superblock));
        show(report, () -> Tables.space(report));
        return 0;
    }

    @Command(name = "tokens", description = "Who holds, wants and last held which directory's token.", mixinStandardHelpOptions = true, versionProvider = Version.class,
            exitCodeOnInvalidInput = USAGE)
    int tokens() throws Refusal {
        TokensReport report = read((snapshot, superblock) -> TokensReport.read(snapshot));
        show(report, () -> Tables.tokens(report));
        return 0;
    }

    @Command(name = "locks", description = {"File locks of processes, held and waited for. Those of a file that one node alone locks are a second old at most."},
            mixinStandardHelpOptions = true, versionProvider = Version.class, exitCodeOnInvalidInput = USAGE)
    int locks(@Option(names = "--paths", description = "Find the files' names, which reads all names of the filesystem.") boolean paths) throws Refusal {
        LocksReport report = read((snapshot, superblock) -> LocksReport.read(snapshot, paths));
        show(report, () -> Tables.locks(report));
        return 0;
    }

    /** {@code error}: null if it was done. */
    record Synced(String node, String directory, String error) {}

    record SyncReport(List<Synced> nodes) {}

    @Command(name = "sync", description = "Have every daemon of the filesystem on this host publish what it has accepted, and wait.", mixinStandardHelpOptions = true,
            versionProvider = Version.class, exitCodeOnInvalidInput = USAGE)
    int sync(@Option(names = "--timeout", paramLabel = "SECONDS", defaultValue = "60", description = "Default: ${DEFAULT-VALUE}.") int timeoutSeconds) throws Refusal {
        requireName(spec);
        List<Synced> synced = new ArrayList<>();
        List<Synced> silent = new ArrayList<>();
        RunDirectory directory = RunDirectory.ofThisHost();
        for (ControlClient.Mounted daemon : ControlClient.daemons(directory.path(), CONTROL_TIMEOUT, socket -> {
            if (directory.mayBeOf(socket, name)) {
                silent.add(new Synced("?", "?", "the daemon at " + socket + " does not answer: what it has accepted may not be published"));
            }
        })) {
            if (daemon.filesystem().equals(name)) {
                synced.add(sync(daemon, Duration.ofSeconds(timeoutSeconds)));
            }
        }
        synced.addAll(silent);
        if (synced.isEmpty()) {
            throw new Refusal(1, "no daemon of filesystem '" + name + "' runs on this host: mount it first");
        }
        SyncReport report = new SyncReport(synced);
        show(report, () -> Tables.sync(report));
        return synced.stream().allMatch(one -> one.error() == null) ? 0 : 1;
    }

    private static Synced sync(ControlClient.Mounted daemon, Duration timeout) {
        try {
            ControlClient.ask(daemon.socket(), "sync " + timeout.toMillis(), timeout.plus(CONTROL_TIMEOUT));
            return new Synced(daemon.node(), daemon.directory().toString(), null);
        } catch (ControlException e) {
            return new Synced(daemon.node(), daemon.directory().toString(), e.getMessage());
        }
    }

    /** @param usageCode of the refusal, where the options make no sense */
    EtcdConnection connection(int usageCode) throws Refusal {
        return etcd.connection(usageCode);
    }

    private <T> T read(Reading<T> reading) throws Refusal {
        requireName(spec);
        EtcdConnection connection = etcd.connection(USAGE);
        try (MetadataStore store = connection.open(USAGE)) {
            Snapshot snapshot = new Snapshot(store, name, REQUEST_TIMEOUT_NS);
            Super superblock = snapshot.superblock();
            if (superblock == null) {
                throw new Refusal(1, noFilesystem());
            }
            return reading.read(snapshot, superblock);
        } catch (StoreUnavailableException e) {
            throw new Refusal(1, connection.unavailable(e));
        } catch (StoreRejectedException e) {
            throw new Refusal(1, "etcd refused a read (" + e.reason() + "): " + e.getMessage());
        }
    }

    String requireName(CommandSpec command) throws Refusal {
        return requireName(command, USAGE);
    }

    /**
     * @param command   the one that the name is needed for
     * @param usageCode of the refusal, where it can't be a name
     */
    String requireName(CommandSpec command, int usageCode) throws Refusal {
        if (name == null) {
            throw new ParameterException(command.commandLine(), "Missing required option: '--name=NAME'");
        }
        return Names.requireFilesystem("--name", name, usageCode);
    }

    String noFilesystem() {
        return "etcd has no filesystem '" + name + "': check --name and --etcd, or make it with etcfs mkfs";
    }

    void show(Record report, Supplier<String> table) {
        PrintWriter out = spec.commandLine().getOut();
        if (format == Format.JSON) {
            out.println(json(report));
        } else {
            out.print(table.get());
        }
        out.flush();
    }

    /** The report with the schema's number before its own keys. */
    static String json(Record report) {
        return Json.of(Map.of("schema", SCHEMA)).replaceFirst("}$", ",") + Json.of(report).substring(1);
    }
}
