package io.etcfs.cli;

import io.etcfs.cli.mkfs.MkfsCommand;
import io.etcfs.cli.mount.MountCommand;
import io.etcfs.cli.mount.UmountCommand;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/**
 * {@code etcfs}: makes, mounts and unmounts filesystems. Started by bin/etcfs to become a daemon ({@code mount --background}) it reports on standard output, as
 * the launcher's comment says; after {@code ready} that is /dev/null.
 */
@Command(name = "etcfs", description = "A POSIX cluster filesystem on a shared block device, with its metadata in etcd.", mixinStandardHelpOptions = true,
        versionProvider = Version.class, subcommands = {MkfsCommand.class, MountCommand.class, UmountCommand.class, Etcfs.VersionCommand.class},
        synopsisSubcommandLabel = "COMMAND", exitCodeOnInvalidInput = 2, footer = "Exit codes: etcfs COMMAND --help.")
public final class Etcfs implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        throw new ParameterException(spec.commandLine(), "a command is missing");
    }

    public static void main(String[] arguments) {
        boolean reports = arguments.length > 1 && arguments[0].equals("mount") && arguments[1].equals("--background");
        if (reports) {
            System.out.println("pid " + ProcessHandle.current().pid());
        }
        int exitCode = Program.run(new Etcfs(), arguments);
        if (reports) {
            System.out.println("failed " + exitCode);
        }
        System.exit(exitCode);
    }

    @Command(name = "version", description = "Print the version.", mixinStandardHelpOptions = true, versionProvider = Version.class)
    static final class VersionCommand implements Callable<Integer> {
        @Spec
        private CommandSpec spec;

        @Override
        public Integer call() {
            spec.commandLine().getOut().println("etcfs " + Version.current());
            return 0;
        }
    }
}
