package io.etcfs.cli;

import io.etcfs.cli.ctl.Ctl;

/** {@code etcfsctl}: shows the state of a filesystem. */
public final class Etcfsctl {
    private Etcfsctl() {}

    public static void main(String[] arguments) {
        System.exit(Program.run(new Ctl(), arguments));
    }
}
