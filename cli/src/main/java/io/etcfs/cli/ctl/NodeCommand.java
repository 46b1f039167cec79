package io.etcfs.cli.ctl;

import io.etcfs.cli.Names;
import io.etcfs.cli.Version;
import io.etcfs.core.fence.DeclareDead;
import io.etcfs.core.record.Keys;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.linux.clock.BootClock;
import io.etcfs.node.daemon.EtcdConnection;
import io.etcfs.node.host.Refusal;
import java.io.Console;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.ParentCommand;
import picocli.CommandLine.Spec;

/** {@code etcfsctl node}: what an operator can say of a node. */
@Command(name = "node", mixinStandardHelpOptions = true, versionProvider = Version.class, exitCodeOnInvalidInput = Ctl.USAGE, synopsisSubcommandLabel = "COMMAND",
        description = "What an operator says of a node.")
final class NodeCommand implements Callable<Integer> {
    private static final long REQUEST_TIMEOUT_NS = 5_000_000_000L;
    /** A controller whose fencer hangs is given up, by itself, after a minute. */
    private static final long TIMEOUT_NS = 75_000_000_000L;

    @Spec
    private CommandSpec spec;

    @ParentCommand
    private Ctl ctl;

    @Override
    public Integer call() {
        throw new ParameterException(spec.commandLine(), "a command is missing");
    }

    /** {@code result}: done, or dead_before. */
    record DeadReport(String node, String result) {}

    @Command(name = "declare-dead", mixinStandardHelpOptions = true, versionProvider = Version.class, exitCodeOnInvalidInput = Ctl.USAGE,
            description = {"Give what a node owned to the others, on your word that it can't write to the device any more.%n",
                "For a node that vanished, that no fencer has confirmed to be cut off, and that does not come back. Make sure first that its daemon has ended or its machine is off or"
                        + " has lost the device: one that still writes destroys files that others write from now on. It may be mounted again later, and then begins as a new one.%n"},
            exitCodeListHeading = "Exit codes:%n", exitCodeList = {"0:it is dead, and owns nothing", "1:not done", "2:usage"})
    int declareDead(@Parameters(paramLabel = "NODE", description = "Name of the node.") String node,
            @Option(names = {"-y", "--yes"}, description = "Do not ask.") boolean yes) throws Refusal {
        String name = ctl.requireName(spec);
        Names.requireNode("NODE", node, Ctl.USAGE);
        EtcdConnection connection = ctl.connection(Ctl.USAGE);
        try (MetadataStore store = connection.open(Ctl.USAGE)) {
            Keys keys = new Keys(name);
            if (store.range(keys.superblock(), null, 0, true, 0, REQUEST_TIMEOUT_NS).only() == null) {
                throw new Refusal(1, ctl.noFilesystem());
            }
            DeclareDead dead = new DeclareDead(store, new BootClock(), keys);
            DeclareDead.Result result = dead.look(node);
            if (result == DeclareDead.Result.DONE) {
                confirm(node, yes);
                result = dead.run(node, "etcfsctl", TIMEOUT_NS);
            }
            return report(node, result);
        } catch (StoreUnavailableException e) {
            throw new Refusal(1, connection.unavailable(e));
        } catch (StoreRejectedException e) {
            throw new Refusal(1, "etcd refused a request (" + e.reason() + "): " + e.getMessage());
        } catch (InterruptedException e) {
            throw new Refusal(1, "interrupted: what was done of it stays, and the rest is done by the next try");
        }
    }

    private static void confirm(String node, boolean yes) throws Refusal {
        if (yes) {
            return;
        }
        Console console = System.console();
        if (console == null || !console.isTerminal()) {
            throw new Refusal(1, "nobody is there to confirm it: give -y if node '" + node + "' can't write to the device any more");
        }
        String answer = console.readLine("Node '%s' gives all it owned to the others. If it can still write to the device, files will be destroyed. Type its name to go on: ", node);
        if (answer == null || !answer.strip().equals(node)) {
            throw new Refusal(1, "not done");
        }
    }

    private int report(String node, DeclareDead.Result result) throws Refusal {
        switch (result) {
            case DONE, DEAD_BEFORE -> {
                DeadReport report = new DeadReport(node, result == DeclareDead.Result.DONE ? "done" : "dead_before");
                ctl.show(report, () -> "node '" + node + "' " + (result == DeclareDead.Result.DONE ? "is dead, and owns nothing any more" : "was fenced or declared dead before") + "\n");
                return 0;
            }
            case UNKNOWN -> throw new Refusal(1, "there never was a node '" + node + "': etcfsctl status lists them");
            case ALIVE -> throw new Refusal(1, "node '" + node + "' is there: umount it, or stop it and wait for 10 s");
            case LEFT -> throw new Refusal(1, "node '" + node + "' left in order and owns nothing: there is nothing to do");
            case BUSY -> throw new Refusal(1, "a node is about to fence '" + node + "' and does not get done with it: try again, etcfsctl status tells which");
        }
        throw new IllegalStateException();
    }
}
