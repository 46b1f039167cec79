package io.etcfs.node.host;

/** Something was refused or failed before it had an effect. The message is one line for the user; {@code exitCode} is the process's. */
public final class Refusal extends Exception {
    private final int exitCode;

    public Refusal(int exitCode, String message) {
        super(message.replace('\n', ' '));
        this.exitCode = exitCode;
    }

    public int exitCode() {
        return exitCode;
    }
}
