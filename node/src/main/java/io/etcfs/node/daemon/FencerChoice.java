package io.etcfs.node.daemon;

import io.etcfs.linux.iscsi.IscsiAddress;
import io.etcfs.node.host.Refusal;
import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/**
 * How nodes that vanish are to be cut off from the device.
 *
 * @param volume of EBS, or null: the device tells it
 */
public record FencerChoice(Kind kind, String volume) {
    /** As users name them. */
    public enum Kind {
        /** Not at all. */
        NONE,
        /** Persistent reservations. */
        PR,
        /** EC2 detaches the volume from their instance. */
        EBS
    }

    public static final FencerChoice NONE = new FencerChoice(Kind.NONE, null);

    /**
     * @param name     of a kind, or auto: reservations where the device is known to have them
     * @param exitCode of the refusal, if there is no such kind or the device can't have it
     */
    public static FencerChoice of(String name, String device, String volume, int exitCode) throws Refusal {
        boolean iscsi = IscsiAddress.isMeant(device);
        Kind kind;
        if (name.equals("auto")) {
            if (!iscsi) {
                throw new Refusal(exitCode, "it has to be said how nodes that vanish are cut off from " + device + ": give --fencer " + names(" or ") + "; with none (--no-fencer) nothing of others is "
                        + "overwritten either, but what a vanished node had allocated waits until it is mounted again or declared dead");
            }
            kind = Kind.PR;
        } else {
            kind = Arrays.stream(Kind.values()).filter(k -> k.name().toLowerCase(Locale.ROOT).equals(name)).findFirst()
                    .orElseThrow(() -> new Refusal(exitCode, "--fencer '" + name + "' is none of auto, " + names(", ")));
        }
        if (kind == Kind.EBS && iscsi) {
            throw new Refusal(exitCode, "--fencer ebs: " + device + " is no EBS volume");
        }
        if (volume != null && kind != Kind.EBS) {
            throw new Refusal(exitCode, "--ebs-volume is for --fencer ebs only");
        }
        return new FencerChoice(kind, volume);
    }

    private static String names(String between) {
        return Arrays.stream(Kind.values()).map(k -> k.name().toLowerCase(Locale.ROOT)).sorted().collect(Collectors.joining(between));
    }
}
