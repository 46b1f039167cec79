package io.etcfs.core.check;

import io.etcfs.core.store.Key;
import java.util.List;

/**
 * Something that is not as it has to be.
 *
 * @param keys the records that disagree, at least one; the first one is where to look
 * @param what is wrong with them, in words that need no other line
 */
public record Finding(Kind kind, List<Key> keys, String what) {
    public Finding {
        keys = List.copyOf(keys);
    }

    public Severity severity() {
        return kind.severity();
    }

    @Override
    public String toString() {
        return kind + " " + keys + ": " + what;
    }
}
