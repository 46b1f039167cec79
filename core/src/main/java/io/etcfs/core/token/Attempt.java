package io.etcfs.core.token;

import io.etcfs.core.domain.Domain;
import java.util.ArrayList;
import java.util.List;

/**
 * One operation while it is being tried. One that may wait and needs several tokens pins those it has got, in ascending order of the resources' numbers
 * and only without a gap: since all nodes do, no two operations wait for each other.
 */
public final class Attempt {
    final boolean mayWait;
    final List<Domain> pinned = new ArrayList<>();

    public Attempt(boolean mayWait) {
        this.mayWait = mayWait;
    }

    void pin(Domain d) {
        d.pins++;
        pinned.add(d);
    }

    /** Monitor held. */
    public void unpin() {
        pinned.forEach(d -> d.pins--);
        pinned.clear();
    }

    public boolean holdsPins() {
        return !pinned.isEmpty();
    }
}
