package io.etcfs.node.host;

import java.nio.file.Path;

/**
 * Paths as users give them. The daemon's working directory is {@code /}, so they are relative to ETCFS_CWD, which the launcher sets to the
 * caller's, or without it to this process's.
 */
public final class UserPath {
    private UserPath() {}

    public static Path of(String text) {
        String caller = System.getenv("ETCFS_CWD");
        return (caller == null || caller.isEmpty() ? Path.of(text).toAbsolutePath() : Path.of(caller).resolve(text)).normalize();
    }
}
