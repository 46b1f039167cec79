package io.etcfs.core.file;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** A set of numbers, kept as intervals {@code [from, to)} that neither overlap nor touch. The unit is the caller's. */
public final class IntervalSet {
    private final TreeMap<Long, Long> ends = new TreeMap<>();

    public void add(long from, long to) {
        if (isNothing(from, to)) {
            return;
        }
        Map.Entry<Long, Long> left = ends.floorEntry(from);
        if (left != null && left.getValue() >= from) {
            from = left.getKey();
            to = Math.max(to, left.getValue());
        }
        for (Map.Entry<Long, Long> e = ends.ceilingEntry(from); e != null && e.getKey() <= to; e = ends.higherEntry(from)) {
            to = Math.max(to, e.getValue());
            ends.remove(e.getKey());
        }
        ends.put(from, to);
    }

    public void remove(long from, long to) {
        if (isNothing(from, to)) {
            return;
        }
        Map.Entry<Long, Long> left = ends.lowerEntry(from);
        if (left != null && left.getValue() > from) {
            ends.put(left.getKey(), from);
            if (left.getValue() > to) {
                ends.put(to, left.getValue());
                return;
            }
        }
        for (Map.Entry<Long, Long> e = ends.ceilingEntry(from); e != null && e.getKey() < to; e = ends.ceilingEntry(from)) {
            ends.remove(e.getKey());
            if (e.getValue() > to) {
                ends.put(to, e.getValue());
            }
        }
    }

    /** Whether all of the interval is in the set; true for an empty interval. */
    public boolean contains(long from, long to) {
        if (isNothing(from, to)) {
            return true;
        }
        Map.Entry<Long, Long> left = ends.floorEntry(from);
        return left != null && left.getValue() >= to;
    }

    /** Whether any number of the interval is in the set. */
    public boolean intersects(long from, long to) {
        if (isNothing(from, to)) {
            return false;
        }
        Map.Entry<Long, Long> left = ends.lowerEntry(to);
        return left != null && left.getValue() > from;
    }

    /** The parts of the interval that are not in the set, as {@code {from, to}}, in order. */
    public List<long[]> missing(long from, long to) {
        List<long[]> gaps = new ArrayList<>();
        if (isNothing(from, to)) {
            return gaps;
        }
        Map.Entry<Long, Long> e = ends.floorEntry(from);
        long at = e == null ? from : Math.max(from, e.getValue());
        while (at < to) {
            e = ends.ceilingEntry(at);
            long gapEnd = e == null ? to : Math.min(to, e.getKey());
            if (at < gapEnd) {
                gaps.add(new long[] {at, gapEnd});
            }
            at = e == null ? to : e.getValue();
        }
        return gaps;
    }

    /** The end of the interval that the number is in; the number itself if it is in none. */
    public long endAt(long at) {
        Map.Entry<Long, Long> left = ends.floorEntry(at);
        return left == null ? at : Math.max(at, left.getValue());
    }

    /** Where the first interval begins at or after the number; {@link Long#MAX_VALUE}: there is none. */
    public long nextFrom(long at) {
        Long next = ends.ceilingKey(at);
        return next == null ? Long.MAX_VALUE : next;
    }

    /** How many intervals there are. */
    public int size() {
        return ends.size();
    }

    public boolean isEmpty() {
        return ends.isEmpty();
    }

    /** The intervals as {@code {from, to}}, in order. */
    public List<long[]> intervals() {
        List<long[]> all = new ArrayList<>(ends.size());
        ends.forEach((from, to) -> all.add(new long[] {from, to}));
        return all;
    }

    public void clear() {
        ends.clear();
    }

    private static boolean isNothing(long from, long to) {
        if (from > to) {
            throw new IllegalArgumentException("no interval: [" + from + ", " + to + ")");
        }
        return from == to;
    }

    @Override
    public String toString() {
        StringBuilder text = new StringBuilder("{");
        ends.forEach((from, to) -> text.append(text.length() > 1 ? ", " : "").append('[').append(from).append(", ").append(to).append(')'));
        return text.append('}').toString();
    }
}
