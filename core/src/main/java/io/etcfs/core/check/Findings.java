package io.etcfs.core.check;

import io.etcfs.core.store.Key;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/** Collects findings; of a kind that is found very often, the first ones. */
final class Findings {
    static final int MAX_OF_A_KIND = 1_000;

    private final Map<Kind, List<Finding>> byKind = new EnumMap<>(Kind.class);
    private long omitted;

    void add(Kind kind, String what, Key... keys) {
        List<Finding> list = byKind.computeIfAbsent(kind, k -> new ArrayList<>());
        if (list.size() < MAX_OF_A_KIND) {
            list.add(new Finding(kind, List.of(keys), what));
        } else {
            omitted++;
        }
    }

    List<Finding> all() {
        return byKind.values().stream().flatMap(List::stream).toList();
    }

    long omitted() {
        return omitted;
    }
}
