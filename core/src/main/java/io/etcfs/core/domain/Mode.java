package io.etcfs.core.domain;

/** How a domain is held. SHARED lets a node cache all of it, EXCLUSIVE also change it. */
public enum Mode {
    NONE, SHARED, EXCLUSIVE;

    public boolean atLeast(Mode wanted) {
        return compareTo(wanted) >= 0;
    }
}
