package io.etcfs.testkit.sim;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Whether what programs saw is what one filesystem would have shown them: is there an order of the operations, each somewhere between its call and its return, that
 * leads the {@link Reference} from one state to another? (Wing and Gong's search, remembering where it has been.)
 */
final class Linearizer {
    /** Some seeds with many operations of unknown outcome need over 200,000. Some GiB of the heap, at worst. */
    private static final int MAX_STATES = 1_000_000;

    private final Reference start;
    private final List<Op> ops;
    private final Set<Long> unclaimed;
    private final List<Reference> stored;
    private final Set<State> seen = new HashSet<>();
    private int furthest;
    private Op stuckAt;
    private String difference;

    private record State(BitSet done, Reference at) {}

    /**
     * @param unclaimed numbers that inodes made by operations without an answer may have
     * @param stored    what it has to end at: each of them
     */
    Linearizer(Reference start, List<Op> ops, Set<Long> unclaimed, List<Reference> stored) {
        this.start = start;
        this.ops = ops;
        this.unclaimed = unclaimed;
        this.stored = stored;
    }

    boolean found() {
        return search(new BitSet(ops.size()), start);
    }

    /** Where the search got, at best. */
    String story() {
        String found = difference != null ? difference : "no order explains " + stuckAt + " (" + furthest + " of " + ops.size() + " operations before it)";
        return seen.size() > MAX_STATES ? "undecided after " + MAX_STATES + " states: " + found : found;
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
            String d = null;
            for (int i = 0; i < stored.size() && d == null; i++) {
                d = at.difference(stored.get(i));
            }
            if (d == null) {
                return true;
            }
            // The first: without operations that may not have been carried out at all.
            difference = difference == null ? d : difference;
        }
        if (seen.size() > MAX_STATES || !seen.add(new State((BitSet) done.clone(), at))) {
            return false;
        }
        for (int pass = 0; pass < 2; pass++) {
            // Those with a known answer first: an unknown one is taken in where nothing else helps.
            for (int i = done.nextClearBit(0); i < ops.size(); i = done.nextClearBit(i + 1)) {
                Op op = ops.get(i);
                if (op.countsFrom() > firstReturn || op.unknown() != (pass == 1) || op.unknown() && tooLate(op, done)) {
                    continue;
                }
                done.set(i);
                for (Reference next : after(op, at)) {
                    if (search(done, next)) {
                        return true;
                    }
                }
                done.clear(i);
            }
        }
        return false;
    }

    /** Something was done already that was called when it could not be carried out any more. */
    private boolean tooLate(Op op, BitSet done) {
        return op.settledFrom != Long.MAX_VALUE && done.stream().anyMatch(i -> ops.get(i).called >= op.settledFrom);
    }

    /** The states that it may lead to: one or none, but for an inode of which nobody knows the number. */
    private List<Reference> after(Op op, Reference at) {
        if (!op.unknown() || !op.makes()) {
            Reference next = at.after(op);
            return next == null || op.unknown() && next == at ? List.of() : List.of(next);
        }
        List<Reference> all = new ArrayList<>();
        for (long ino : unclaimed) {
            add(all, at.made(op, ino));
        }
        // Nobody has seen it before it was gone again.
        add(all, at.made(op, at.unusedNumber()));
        return all;
    }

    private static void add(List<Reference> all, Reference made) {
        if (made != null) {
            all.add(made);
        }
    }
}
