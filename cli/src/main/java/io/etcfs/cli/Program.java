package io.etcfs.cli;

import io.etcfs.core.store.OtherClusterException;
import io.etcfs.node.host.Refusal;
import java.io.PrintWriter;
import java.util.Arrays;
import java.util.List;
import java.util.logging.LogManager;
import java.util.stream.Collectors;
import picocli.CommandLine;
import picocli.CommandLine.MissingParameterException;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.TypeConversionException;
import picocli.CommandLine.UnmatchedArgumentException;

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
                .registerConverter(Integer.class, Program::wholeNumber)
                .registerConverter(int.class, Program::wholeNumber)
                .setParameterExceptionHandler(Program::usageError)
                .setExecutionExceptionHandler(Program::failure);
    }

    private static int wholeNumber(String text) {
        try {
            return Integer.parseInt(text);
        } catch (NumberFormatException e) {
            throw new TypeConversionException("'" + text + "' is not a whole number");
        }
    }

    private static int usageError(ParameterException e, String[] arguments) {
        CommandLine command = e.getCommandLine();
        String message = e.getMessage();
        // What is missing may be there, misspelt.
        List<String> unmatched = e instanceof UnmatchedArgumentException u ? u.getUnmatched() : e instanceof MissingParameterException ? command.getUnmatchedArguments() : List.of();
        String unknown = unmatched.stream().filter(Program::isOption).findFirst().orElse(null);
        if (unknown != null) {
            message = unknownOption(command, unknown);
        } else if (e instanceof UnmatchedArgumentException && !unmatched.isEmpty()) {
            message = unknownWord(command, unmatched.getFirst());
        } else if (command.getCommandSpec().parent() == null && arguments.length == 0) {
            message = "a command is missing";
        }
        print(command, message + "; see '" + command.getCommandSpec().qualifiedName() + " --help'");
        return command.getCommandSpec().exitCodeOnInvalidInput();
    }

    private static boolean isOption(String argument) {
        return argument.startsWith("-") && argument.length() > 1;
    }

    private static String unknownOption(CommandLine command, String argument) {
        String name = argument.replaceFirst("=.*", "");
        List<String> names = command.getCommandSpec().options().stream().filter(option -> !option.hidden()).flatMap(option -> Arrays.stream(option.names())).toList();
        return "there is no option '" + name + "'" + meant(Nearest.to(name, names));
    }

    private static String unknownWord(CommandLine command, String argument) {
        var subcommands = command.getSubcommands().keySet();
        return subcommands.isEmpty() ? "'" + argument + "' is one argument too many" : "there is no command '" + argument + "'" + meant(Nearest.to(argument, subcommands));
    }

    private static String meant(List<String> near) {
        return near.isEmpty() ? "" : " (did you mean " + near.stream().map(name -> "'" + name + "'").collect(Collectors.joining(" or ")) + "?)";
    }

    private static int failure(Exception e, CommandLine command, CommandLine.ParseResult parsed) {
        switch (e) {
            case Refusal refusal -> {
                print(command, refusal.getMessage());
                return refusal.exitCode();
            }
            case OtherClusterException other -> {
                print(command, other.getMessage() + ": name members of one cluster with --etcd");
                return command.getCommandSpec().exitCodeOnExecutionException();
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
        err.println(command.getCommandSpec().qualifiedName() + ": " + message.replace('\n', ' ').replaceAll("\\p{Cntrl}", "?"));
        err.flush();
    }
}
