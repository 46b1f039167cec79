package io.etcfs.cli.mount;

import io.etcfs.linux.mount.MountFlags;
import io.etcfs.node.host.ExitCode;
import io.etcfs.node.host.Refusal;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/**
 * The words of {@code -o}: flags of mount(2), and words that fstab(5) lines have for others. The kernel is always told allow_other and
 * default_permissions.
 */
final class MountWords {
    private static final Set<String> IGNORED = Set.of("_netdev", "nofail", "noauto", "auto", "user", "users", "nouser", "owner", "group", "allow_other", "default_permissions");

    private MountWords() {}

    /** Returns MS_* flags. */
    static long flags(List<String> words) throws Refusal {
        List<String> others = new ArrayList<>();
        long flags = MountFlags.parse(words, others);
        others.removeIf(word -> IGNORED.contains(word) || word.startsWith("x-") || word.equals("comment") || word.startsWith("comment="));
        if (!others.isEmpty()) {
            throw new Refusal(ExitCode.USAGE, "unknown mount option '" + others.getFirst() + "' after -o: leave it out");
        }
        return flags;
    }
}
