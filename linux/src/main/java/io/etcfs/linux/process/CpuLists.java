package io.etcfs.linux.process;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;

/** Which CPUs there are: /sys/devices/system/cpu. */
public final class CpuLists {
    private static final Path ROOT = Path.of("/sys/devices/system/cpu");

    /** Those that can ever be there, without a reboot. */
    public static BitSet possible() throws IOException {
        return parse(Files.readString(ROOT.resolve("possible"), StandardCharsets.US_ASCII));
    }

    public static BitSet online() throws IOException {
        return parse(Files.readString(ROOT.resolve("online"), StandardCharsets.US_ASCII));
    }

    /** As in {@code 0-3,8,10-11}. */
    static BitSet parse(String list) {
        BitSet cpus = new BitSet();
        for (String range : list.strip().split(",")) {
            if (!range.isEmpty()) {
                String[] ends = range.split("-");
                cpus.set(Integer.parseInt(ends[0]), Integer.parseInt(ends[ends.length - 1]) + 1);
            }
        }
        return cpus;
    }

    private CpuLists() {}
}
