package io.etcfs.cli;

import io.etcfs.core.record.Keys;
import io.etcfs.node.host.Refusal;

/** Names of filesystems and nodes as users give them: one rule, and one way to say what is wrong. */
public final class Names {
    private Names() {}

    /**
     * @param what     the option or argument, as in the message
     * @param exitCode of the refusal: the command's for wrong usage
     */
    public static String requireFilesystem(String what, String name, int exitCode) throws Refusal {
        try {
            return Keys.requireFilesystemName(name);
        } catch (IllegalArgumentException e) {
            throw unusable(what, name, exitCode);
        }
    }

    /** The same for a node's. */
    public static String requireNode(String what, String name, int exitCode) throws Refusal {
        try {
            return Keys.requireNodeName(name);
        } catch (IllegalArgumentException e) {
            throw unusable(what, name, exitCode);
        }
    }

    private static Refusal unusable(String what, String name, int exitCode) {
        return new Refusal(exitCode, what + " '" + name + "' is not usable: 1 to 63 letters, digits, '.', '_' or '-', the first a letter or digit");
    }
}
