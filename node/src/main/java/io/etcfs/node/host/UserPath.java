package io.etcfs.node.host;

import io.etcfs.linux.iscsi.IscsiAddress;
import java.nio.file.Path;

/**
 * Paths as users give them. The daemon's working directory is {@code /}, so they are relative to ETCFS_CWD, which the launcher sets to the
 * caller's, or without it to this process's.
 */
public final class UserPath {
    private UserPath() {}

    /** A device may be the address of a target, too: that stays as it is. */
    public static String ofDevice(String text) {
        return IscsiAddress.isMeant(text) ? text : of(text).toString();
    }

    public static Path of(String text) {
        String caller = System.getenv("ETCFS_CWD");
        return (caller == null || caller.isEmpty() ? Path.of(text).toAbsolutePath() : Path.of(caller).resolve(text)).normalize();
    }
}
