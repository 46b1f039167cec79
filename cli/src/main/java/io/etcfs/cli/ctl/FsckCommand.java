package io.etcfs.cli.ctl;

import io.etcfs.cli.Version;
import io.etcfs.core.check.Checker;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreRejectedException.Reason;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.node.daemon.EtcdConnection;
import io.etcfs.node.host.Refusal;
import java.util.concurrent.Callable;
import java.util.function.Consumer;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParentCommand;
import picocli.CommandLine.Spec;

/** {@code etcfsctl fsck}: reads everything as of one revision and has the {@link Checker} look at it. Exit codes are those of fsck(8). */
@Command(name = "fsck", mixinStandardHelpOptions = true, versionProvider = Version.class, exitCodeOnInvalidInput = FsckCommand.USAGE, exitCodeOnExecutionException = FsckCommand.FAILED,
        description = {"Check that all records of the filesystem in etcd agree with each other.%n",
            "Reads only, and repairs nothing. Everything is read as of one revision, at which every change is there as a whole or not at all: so it says the same of a"
                    + " filesystem that nodes work on as of one that nobody has mounted. Bytes on the device are not looked at.%n",
            "Damage breaks a promise that the filesystem makes or needs. What is left over does no harm but takes room. Notes are as they may be. -o json has, for each"
                    + " finding, the rule that it breaks.%n"},
        exitCodeListHeading = "Exit codes, as of fsck(8):%n",
        exitCodeList = {"0:no damage", "4:damage was found, and left as it is", "8:it could not be looked at: etcd does not answer, or has no such filesystem", "16:usage"})
final class FsckCommand implements Callable<Integer> {
    static final int DAMAGED = 4;
    static final int FAILED = 8;
    static final int USAGE = 16;
    /** How often it begins again when etcd forgot the revision meanwhile. */
    private static final int ATTEMPTS = 3;
    private static final long PAGE_TIMEOUT_NS = 20_000_000_000L;

    @Spec
    private CommandSpec spec;

    @ParentCommand
    private Ctl ctl;

    @Override
    public Integer call() throws Refusal {
        String name = ctl.requireName(spec, USAGE);
        EtcdConnection connection = ctl.connection(USAGE);
        try (MetadataStore store = connection.open(USAGE)) {
            FsckReport report = read(store, name, this::say);
            if (report.counts().keys() == 0) {
                throw new Refusal(FAILED, ctl.noFilesystem());
            }
            ctl.show(report, () -> Tables.fsck(report));
            return report.result() == FsckReport.Result.CLEAN ? 0 : DAMAGED;
        } catch (StoreUnavailableException e) {
            throw new Refusal(FAILED, connection.unavailable(e));
        } catch (StoreRejectedException e) {
            throw new Refusal(FAILED, e.reason() == Reason.COMPACTED
                    ? "etcd's history was compacted faster than it could be read, " + ATTEMPTS + " times: try again when etcd has less to do, or unmount all nodes"
                    : "etcd refused a read (" + e.reason() + "): " + e.getMessage());
        }
    }

    private void say(String message) {
        spec.commandLine().getErr().println(spec.qualifiedName() + ": " + message);
        spec.commandLine().getErr().flush();
    }

    /** Reads and checks a filesystem; again from the beginning, having said so, as often as etcd forgot the revision meanwhile. */
    static FsckReport read(MetadataStore store, String name, Consumer<String> say) throws StoreUnavailableException, StoreRejectedException {
        for (int attempt = 1; ; attempt++) {
            try {
                Snapshot snapshot = new Snapshot(store, name, PAGE_TIMEOUT_NS);
                KeyValue superblock = snapshot.get(snapshot.keys().superblock());
                Checker checker = new Checker(snapshot.keys(), superblock, snapshot.revision());
                snapshot.each(snapshot.keys().prefix(), checker::accept);
                return FsckReport.of(name, snapshot.keys().prefix(), checker.finish());
            } catch (StoreRejectedException e) {
                if (e.reason() != Reason.COMPACTED || attempt == ATTEMPTS) {
                    throw e;
                }
                say.accept("etcd's history was compacted while it was being read: beginning again (" + (attempt + 1) + " of " + ATTEMPTS + ")");
            }
        }
    }
}
