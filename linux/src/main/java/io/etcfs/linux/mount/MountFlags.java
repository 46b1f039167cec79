package io.etcfs.linux.mount;

import java.util.Collection;

/** MS_* of mount(2) by the words that mount(8) has for them. */
public final class MountFlags {
    public static final long RDONLY = 1;
    public static final long NOSUID = 1 << 1;
    public static final long NODEV = 1 << 2;
    public static final long NOEXEC = 1 << 3;
    public static final long SYNCHRONOUS = 1 << 4;
    public static final long DIRSYNC = 1 << 7;
    public static final long NOSYMFOLLOW = 1 << 8;
    public static final long NOATIME = 1 << 10;
    public static final long NODIRATIME = 1 << 11;
    public static final long RELATIME = 1 << 21;
    public static final long STRICTATIME = 1 << 24;
    public static final long LAZYTIME = 1 << 25;

    /**
     * Applies words like "ro" and "nodev" in their order to 0.
     *
     * @param others gets the words that are not flags
     */
    public static long parse(Iterable<String> words, Collection<String> others) {
        long flags = 0;
        for (String word : words) {
            long next = apply(flags, word);
            if (next < 0) {
                others.add(word);
            } else {
                flags = next;
            }
        }
        return flags;
    }

    private static long apply(long flags, String word) {
        return switch (word) {
            case "defaults", "" -> flags;
            case "ro" -> flags | RDONLY;
            case "rw" -> flags & ~RDONLY;
            case "nosuid" -> flags | NOSUID;
            case "suid" -> flags & ~NOSUID;
            case "nodev" -> flags | NODEV;
            case "dev" -> flags & ~NODEV;
            case "noexec" -> flags | NOEXEC;
            case "exec" -> flags & ~NOEXEC;
            case "sync" -> flags | SYNCHRONOUS;
            case "async" -> flags & ~SYNCHRONOUS;
            case "dirsync" -> flags | DIRSYNC;
            case "nosymfollow" -> flags | NOSYMFOLLOW;
            case "symfollow" -> flags & ~NOSYMFOLLOW;
            case "noatime" -> flags | NOATIME;
            case "atime" -> flags & ~NOATIME;
            case "nodiratime" -> flags | NODIRATIME;
            case "diratime" -> flags & ~NODIRATIME;
            case "relatime" -> flags | RELATIME;
            case "norelatime" -> flags & ~RELATIME;
            case "strictatime" -> flags | STRICTATIME;
            case "nostrictatime" -> flags & ~STRICTATIME;
            case "lazytime" -> flags | LAZYTIME;
            case "nolazytime" -> flags & ~LAZYTIME;
            default -> -1;
        };
    }

    private MountFlags() {}
}
