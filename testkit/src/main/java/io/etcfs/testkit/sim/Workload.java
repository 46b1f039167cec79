package io.etcfs.testkit.sim;

import io.etcfs.core.fault.Rare;
import java.util.Random;
import java.util.Set;

/** What the programs of a run do. Drawn apart from all else, as with {@link Weather}. */
public enum Workload {
    /** A bit of everything, by a taste of each epoch's own. */
    MIXED,
    /** Names of one directory come and go, and are looked for at once. */
    NAMES,
    /** One or two files are opened, closed, removed and made again on all machines, and used without a name. */
    OPENS,
    /** Programs of each machine read and write the same few pages. */
    PAGES;

    /** So many times as long as other runs, where the weather lets them. */
    int longer() {
        return switch (this) {
            case OPENS -> 3;
            case PAGES -> 2;
            case MIXED, NAMES -> 1;
        };
    }

    static Workload draw(long seed, Set<Weather.Kind> weather, Set<Rare> rare) {
        if (usual(seed, weather, rare) == MIXED && !weather.contains(Weather.Kind.LATE_WRITES) && !weather.contains(Weather.Kind.GOES)) {
            return switch (new Random(seed ^ 0x09e45).nextInt(8)) {
                case 0 -> OPENS;
                case 1 -> PAGES;
                default -> MIXED;
            };
        }
        return usual(seed, weather, rare);
    }

    /** Of those that are not for a few rules only. */
    static Workload usual(long seed, Set<Weather.Kind> weather, Set<Rare> rare) {
        boolean names = new Random(seed ^ 0x4a3e5).nextInt(rare.contains(Rare.DIRECTORIES_IN_PART) ? 2 : 6) == 0;
        return names && !weather.contains(Weather.Kind.LATE_WRITES) ? NAMES : MIXED;
    }
}
