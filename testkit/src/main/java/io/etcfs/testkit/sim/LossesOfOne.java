package io.etcfs.testkit.sim;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * What one daemon may have lost when it ended: the last of its changes, in the order in which it made them. That is known of those that one program called after the
 * other had returned; of those that overlap any may have been the first.
 */
final class LossesOfOne {
    private final List<Op> changes;
    /** By how many are lost. */
    private final List<Set<Set<Op>>> bySize = new ArrayList<>();

    LossesOfOne(List<Op> changes) {
        this.changes = changes;
        bySize.add(Set.of(Set.of()));
    }

    int most() {
        return changes.size();
    }

    /** All ways to lose that many. */
    Set<Set<Op>> of(int count) {
        while (bySize.size() <= count) {
            Set<Set<Op>> larger = new LinkedHashSet<>();
            for (Set<Op> lost : bySize.getLast()) {
                for (Op op : changes) {
                    if (!lost.contains(op) && canBeLastButFor(op, lost)) {
                        Set<Op> one = new HashSet<>(lost);
                        one.add(op);
                        larger.add(one);
                    }
                }
            }
            bySize.add(larger);
        }
        return bySize.get(count);
    }

    private boolean canBeLastButFor(Op op, Set<Op> lost) {
        return changes.stream().allMatch(later -> later.called < op.returned || lost.contains(later));
    }
}
