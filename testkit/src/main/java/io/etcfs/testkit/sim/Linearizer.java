package io.etcfs.testkit.sim;

import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Whether what programs saw is what one filesystem would have shown them: is there an order of the operations, each somewhere between its call and its return, that
 * leads the {@link Reference} from one state to another? (Wing and Gong's search, remembering where it has been.)
 */
final class Linearizer {
    private static final int MAX_STATES = 200_000;

    private final Reference start;
    private final List<Op> ops;
    private final Reference stored;
    private final Set<State> seen = new HashSet<>();
    private int furthest;
    private Op stuckAt;
    private String difference;

    private record State(BitSet done, Reference at) {}

    /** @param stored what it has to end at, or null */
    Linearizer(Reference start, List<Op> ops, Reference stored) {
        this.start = start;
        this.ops = ops;
        this.stored = stored;
    }

    boolean found() {
        return search(new BitSet(ops.size()), start);
    }

    /** Where the search got, at best. */
    String story() {
        return difference != null ? difference : "no order explains " + stuckAt + " (" + furthest + " of " + ops.size() + " operations before it)";
    }

    private boolean search(BitSet done, Reference at) {
        long firstReturn = Long.MAX_VALUE;
        Op first = null;
        boolean left = false;
        for (int i = done.nextClearBit(0); i < ops.size(); i = done.nextClearBit(i + 1)) {
            Op op = ops.get(i);
            if (!op.unknown()) {
                left = true;
                if (op.returned < firstReturn) {
                    firstReturn = op.returned;
                    first = op;
                }
            }
        }
        if (done.cardinality() >= furthest && first != null) {
            furthest = done.cardinality();
            stuckAt = first;
        }
        if (!left) {
            String d = stored == null ? null : at.difference(stored);
            if (d == null) {
                return true;
            }
            difference = d;
        }
        if (seen.size() > MAX_STATES || !seen.add(new State((BitSet) done.clone(), at))) {
            return false;
        }
        for (int pass = 0; pass < 2; pass++) {
            // Those with a known answer first: an unknown one is taken in where nothing else helps.
            for (int i = done.nextClearBit(0); i < ops.size(); i = done.nextClearBit(i + 1)) {
                Op op = ops.get(i);
                if (op.called > firstReturn || op.unknown() != (pass == 1)) {
                    continue;
                }
                Reference next = at.after(op);
                if (next == null || op.unknown() && next == at) {
                    continue;
                }
                done.set(i);
                if (search(done, next)) {
                    return true;
                }
                done.clear(i);
            }
        }
        return false;
    }
}
