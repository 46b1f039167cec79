package io.etcfs.cli;

import io.etcfs.node.host.Refusal;
import java.io.PrintWriter;
import java.util.logging.LogManager;
import picocli.CommandLine;

/**
 * Runs a command line. Results and help go to standard output, everything else to standard error. A failure is one line there,
 * {@code PROGRAM COMMAND: what is wrong: what to do}; a stack trace is printed only for a fault in the program itself, with ETCFS_DEBUG set.
 */
public final class Program {
    private Program() {}

    /**
     * Libraries log nothing here: what matters comes back as an exception. The daemon sets up its own log.
     *
     * @return the exit code
     */
    static int run(Object program, String... arguments) {
        LogManager.getLogManager().reset();
        return commandLine(program).execute(arguments);
    }

    public static CommandLine commandLine(Object program) {
        return new CommandLine(program)
                .setCaseInsensitiveEnumValuesAllowed(true)
                .setUsageHelpAutoWidth(true)
                .setAbbreviatedOptionsAllowed(false)
                .setColorScheme(CommandLine.Help.defaultColorScheme(CommandLine.Help.Ansi.OFF))
                .setParameterExceptionHandler(Program::usageError)
                .setExecutionExceptionHandler(Program::failure);
    }

    private static int usageError(CommandLine.ParameterException e, String[] arguments) {
        CommandLine command = e.getCommandLine();
        String message = e.getMessage();
        if (command.getCommandSpec().parent() == null && arguments.length == 0) {
            message = "a command is missing";
        }
        print(command, message + "; see '" + command.getCommandSpec().qualifiedName() + " --help'");
        return command.getCommandSpec().exitCodeOnInvalidInput();
    }

    private static int failure(Exception e, CommandLine command, CommandLine.ParseResult parsed) {
        switch (e) {
            case Refusal refusal -> {
                print(command, refusal.getMessage());
                return refusal.exitCode();
            }
            default -> {
                print(command, "internal error: " + e);
                if (System.getenv("ETCFS_DEBUG") != null) {
                    e.printStackTrace(command.getErr());
                }
                return command.getCommandSpec().exitCodeOnExecutionException();
            }
        }
    }

    private static void print(CommandLine command, String message) {
        PrintWriter err = command.getErr();
        err.println(command.getCommandSpec().qualifiedName() + ": " + message.replace('\n', ' '));
        err.flush();
    }
}
