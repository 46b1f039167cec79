package io.etcfs.testkit.sim;

import io.etcfs.core.device.BlockDevice;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * What may explain what programs saw and what is stored in the end: of each daemon that ended, its last operations from some point on are lost, and the others have an order that
 * leads from where the filesystem was to what is stored.
 */
final class Explanation {
    private static final int MAX_TRIES = 20_000;
    /** Of a failure, how many tries are told. */
    private static final int MAX_TOLD = 20;

    private final Reference before;
    private final List<Op> ops;
    /** Daemons that ended. */
    private final List<String> gone;
    private final List<Reference> stored;
    private final Set<Long> unclaimed;

    /** @param stored what it has to end at: what is on the device, with and without the device's cache */
    Explanation(Reference before, List<Op> ops, Collection<String> gone, List<Reference> stored) {
        this.before = before;
        this.ops = ops;
        this.gone = new ArrayList<>(new TreeSet<>(gone));
        this.stored = stored;
        this.unclaimed = unclaimed();
    }

    /** Null: there is one. Else how far the first try came, then the others that came elsewhere. */
    String missing() {
        noteWhatGoesOnMeanwhile();
        List<LossesOfOne> losses = gone.stream().map(process -> new LossesOfOne(mayBeLost(process))).toList();
        int most = losses.stream().mapToInt(LossesOfOne::most).sum();
        Set<String> stories = new LinkedHashSet<>();
        List<String> told = new ArrayList<>();
        int tried = 0;
        for (int lost = 0; lost <= most; lost++) {
            for (List<Set<Op>> tryThis : combined(losses, lost)) {
                if (++tried > MAX_TRIES) {
                    return "no explanation within " + MAX_TRIES + " tries; the first one: " + told.getFirst();
                }
                Linearizer l = linearizer(tryThis);
                if (l.found()) {
                    return null;
                }
                if (told.size() < MAX_TOLD && stories.add(l.story())) {
                    told.add(told.isEmpty() ? l.story() : "with " + tryThis.stream().map(Set::size).toList() + " of " + gone + " lost: " + l.story());
                }
            }
        }
        return String.join("\n", told);
    }

    private void noteWhatGoesOnMeanwhile() {
        for (Op read : ops) {
            if (read.kind == Op.Kind.READ) {
                read.holesMeanwhile = ops.stream().filter(p -> p.kind == Op.Kind.PUNCH && p.ino == read.ino && p.called < read.returned && (p.unknown() || p.returned > read.called)).toList();
                read.writesMeanwhile = !read.ofUnanswered ? List.of() : ops.stream().filter(w -> w.kind == Op.Kind.WRITE && w.ino == read.ino && w.besides(read)).toList();
                read.sizeChanged = ops.stream().anyMatch(w -> w.ino == read.ino && w.changesSize() && w.called < read.returned && (w.unknown() || w.returned > read.called));
            }
        }
        for (Op look : ops) {
            if (look.kind == Op.Kind.LOOKUP || look.kind == Op.Kind.STAT || look.kind == Op.Kind.ACCESS) {
                look.changedHereMeanwhile = ops.stream().anyMatch(o -> look.besides(o) && o.mayChange(look));
            }
        }
    }

    /** What the daemon changed since its last fsync was called, in order. */
    private List<Op> mayBeLost(String process) {
        long fsyncCalled = ops.stream().filter(o -> o.process.equals(process) && o.kind == Op.Kind.FSYNC && !o.unknown() && o.error == null)
                .mapToLong(o -> o.called).max().orElse(0);
        return ops.stream().filter(o -> o.process.equals(process) && o.changed() && o.returned > fsyncCalled).toList();
    }

    /** All ways to lose so many in all, one set for each of {@link #gone}. */
    private static List<List<Set<Op>>> combined(List<LossesOfOne> losses, int lost) {
        List<List<Set<Op>>> all = new ArrayList<>();
        combine(losses, lost, new ArrayList<>(), all);
        return all;
    }

    private static void combine(List<LossesOfOne> losses, int left, List<Set<Op>> chosen, List<List<Set<Op>>> all) {
        if (chosen.size() == losses.size()) {
            if (left == 0) {
                all.add(List.copyOf(chosen));
            }
            return;
        }
        LossesOfOne next = losses.get(chosen.size());
        for (int n = 0; n <= Math.min(left, next.most()); n++) {
            for (Set<Op> some : next.of(n)) {
                chosen.add(some);
                combine(losses, left - n, chosen, all);
                chosen.removeLast();
            }
        }
    }

    private Linearizer linearizer(List<Set<Op>> lostOfEach) {
        Set<Op> lost = new HashSet<>();
        Map<String, Set<Op>> byProcess = new HashMap<>();
        for (int i = 0; i < lostOfEach.size(); i++) {
            lost.addAll(lostOfEach.get(i));
            byProcess.put(gone.get(i), lostOfEach.get(i));
        }
        List<Op> notAsCalled = ops.stream().filter(o -> lost.contains(o) || o.unknown()).toList();
        List<Op> strays = notAsCalled.stream().filter(o -> o.writes() || o.kind == Op.Kind.TRUNCATE && clearedInPlace(o, notAsCalled)).toList();
        List<Op> left = ops.stream().filter(o -> !lost.contains(o) && !sawLost(o, byProcess.getOrDefault(o.process, Set.of()))).flatMap(o -> inSteps(o).stream()).toList();
        return new Linearizer(before.withStrays(strays), left, unclaimed, stored);
    }

    /**
     * Whether nothing can be said of it where those are lost: what had no answer yet when the first of them was called may have been answered with it. What changed
     * something and is not lost has to be there, and what may have is there or not, unless it came after one that is lost.
     */
    private static boolean sawLost(Op o, Set<Op> lost) {
        return lost.stream().anyMatch(l -> o.unknown() ? o.called > l.returned : !o.changed() && o.returned > l.called);
    }

    /** A read is one of blocks, each at its time, as others of its machine change the file: no local filesystem makes it one of the whole range either. */
    private List<Op> inSteps(Op read) {
        boolean one = read.kind != Op.Kind.READ || read.unknown() || read.error != null
                || ops.stream().noneMatch(w -> w.ino == read.ino && (w.writes() || w.kind == Op.Kind.TRUNCATE) && w.besides(read));
        return one ? List.of(read) : read.blocks();
    }

    /** Whether a truncation that is not there may have left zeros behind its end, up to the end of that block: the block goes to the device with what is written there or behind it. */
    private static boolean clearedInPlace(Op truncation, List<Op> notAsCalled) {
        long block = truncation.length / BlockDevice.BLOCK_BYTES * BlockDevice.BLOCK_BYTES;
        return notAsCalled.stream().anyMatch(w -> w.writes() && w.process.equals(truncation.process) && w.ino == truncation.ino && w.called > truncation.called
                && (w.kind == Op.Kind.APPEND || w.end() > block));
    }

    /** Numbers of inodes that are there and that nobody was told to have made: each is of one of the creations that were not answered, nobody can say of which. */
    private Set<Long> unclaimed() {
        Set<Long> numbers = new TreeSet<>();
        stored.forEach(s -> numbers.addAll(s.inodes()));
        for (Op o : ops) {
            if (o.kind == Op.Kind.LOOKUP && o.resultIno != 0) {
                numbers.add(o.resultIno);
            } else if (o.listing != null) {
                numbers.addAll(o.listing.values());
            }
        }
        numbers.removeIf(before::has);
        ops.stream().filter(o -> (o.makes() || o.kind == Op.Kind.TMPFILE) && !o.unknown()).forEach(o -> numbers.remove(o.resultIno));
        return numbers;
    }
}
