package io.etcfs.linux.iscsi;

import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A logical unit: {@code iscsi://PORTAL/TARGET/LUN}.
 *
 * @param portal address and port, as libiscsi takes them
 * @param target its iSCSI name
 */
public record IscsiAddress(String portal, String target, int lun) {
    private static final String SCHEME = "iscsi://";
    private static final String DEFAULT_PORT = ":3260";
    private static final Pattern FORM = Pattern.compile("iscsi://((?:\\[[0-9a-fA-F:.]+]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?)/((?:iqn|eui|naa)\\.[A-Za-z0-9.:_-]{1,220})/([0-9]{1,3})");

    /** Whether somebody meant to write one, be it in the wrong way. */
    public static boolean isMeant(String device) {
        return device.regionMatches(true, 0, SCHEME, 0, SCHEME.indexOf('/'));
    }

    public static Optional<IscsiAddress> parse(String device) {
        Matcher m = FORM.matcher(device);
        if (!m.matches() || Integer.parseInt(m.group(4)) > 255) {
            return Optional.empty();
        }
        return Optional.of(new IscsiAddress(m.group(2) == null ? m.group(1) + DEFAULT_PORT : m.group(1), m.group(3), Integer.parseInt(m.group(4))));
    }

    @Override
    public String toString() {
        return SCHEME + portal + "/" + target + "/" + lun;
    }
}
