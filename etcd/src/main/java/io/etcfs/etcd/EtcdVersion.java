package io.etcfs.etcd;

import io.etcfs.core.store.StoreStatus;
import java.util.Comparator;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A release of etcd. */
public record EtcdVersion(int major, int minor, int patch) implements Comparable<EtcdVersion> {
    /** Older ones renew leases that they no longer own, and lose watch events. */
    public static final EtcdVersion MINIMUM = new EtcdVersion(3, 5, 13);

    private static final Pattern FORM = Pattern.compile("(\\d{1,4})\\.(\\d{1,4})\\.(\\d{1,4})(?:[-+].*)?");

    /** @throws IllegalArgumentException the text is not a version */
    public static EtcdVersion parse(String text) {
        Matcher matcher = FORM.matcher(text);
        if (!matcher.matches()) {
            throw new IllegalArgumentException("'" + text + "' is not an etcd version");
        }
        return new EtcdVersion(Integer.parseInt(matcher.group(1)), Integer.parseInt(matcher.group(2)), Integer.parseInt(matcher.group(3)));
    }

    /** A line for each member that answered and is older than this. Members that did not answer can't be judged and are left out. */
    public List<String> complaints(StoreStatus status) {
        return status.members().stream()
            .filter(member -> member.error() == null && parse(member.version()).compareTo(this) < 0)
            .map(member -> "etcd member " + member.endpoint() + " is version " + member.version() + ", at least " + this + " is needed")
            .toList();
    }

    /** @throws IllegalStateException a member that answered is older; the message names it */
    public static void requireAtLeast(int major, int minor, int patch, StoreStatus status) {
        List<String> complaints = new EtcdVersion(major, minor, patch).complaints(status);
        if (!complaints.isEmpty()) {
            throw new IllegalStateException(String.join("; ", complaints));
        }
    }

    @Override
    public int compareTo(EtcdVersion other) {
        return Comparator.comparingInt(EtcdVersion::major).thenComparingInt(EtcdVersion::minor).thenComparingInt(EtcdVersion::patch).compare(this, other);
    }

    @Override
    public String toString() {
        return major + "." + minor + "." + patch;
    }
}
