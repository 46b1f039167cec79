package io.etcfs.testkit.sim;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/** Makes a run that fails smaller, as long as it still fails: fewer epochs, machines, operations and kinds of trouble. */
public final class Shrinker {
    private static final int MAX_RUNS = 150;

    private Shrinker() {}

    /** The smallest that was found; {@code failed} itself if nothing smaller fails. */
    public static World.Result shrink(World.Result failed) {
        World.Result smallest = failed;
        int runs = 0;
        boolean smaller = true;
        while (smaller) {
            smaller = false;
            for (World.Plan plan : smallerThan(smallest.plan())) {
                if (++runs > MAX_RUNS) {
                    return smallest;
                }
                World.Result r = World.run(plan);
                if (r.failure() != null) {
                    smallest = r;
                    smaller = true;
                    break;
                }
            }
        }
        return smallest;
    }

    private static List<World.Plan> smallerThan(World.Plan p) {
        List<World.Plan> plans = new ArrayList<>();
        for (Weather.Kind kind : p.weather()) {
            Set<Weather.Kind> fewer = EnumSet.copyOf(p.weather());
            fewer.remove(kind);
            plans.add(new World.Plan(p.seed(), fewer, p.rare(), p.workload(), p.broken(), p.machines(), p.epochs(), p.operations()));
        }
        for (int epochs = 1; epochs < p.epochs(); epochs++) {
            plans.add(new World.Plan(p.seed(), p.weather(), p.rare(), p.workload(), p.broken(), p.machines(), epochs, p.operations()));
        }
        for (int operations : new int[] {p.operations() / 2, p.operations() * 3 / 4, p.operations() - 1}) {
            if (operations > 0 && operations < p.operations()) {
                plans.add(new World.Plan(p.seed(), p.weather(), p.rare(), p.workload(), p.broken(), p.machines(), p.epochs(), operations));
            }
        }
        if (p.machines() > 2) {
            plans.add(new World.Plan(p.seed(), p.weather(), p.rare(), p.workload(), p.broken(), p.machines() - 1, p.epochs(), p.operations()));
        }
        for (var way : p.rare()) {
            var fewer = EnumSet.copyOf(p.rare());
            fewer.remove(way);
            plans.add(new World.Plan(p.seed(), p.weather(), fewer, p.workload(), p.broken(), p.machines(), p.epochs(), p.operations()));
        }
        return plans;
    }
}
