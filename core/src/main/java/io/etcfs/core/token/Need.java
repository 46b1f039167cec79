package io.etcfs.core.token;

import io.etcfs.core.domain.Mode;

/** A token that an operation needs. */
public record Need(long resource, Mode mode) {
    public static Need shared(long resource) {
        return new Need(resource, Mode.SHARED);
    }

    public static Need exclusive(long resource) {
        return new Need(resource, Mode.EXCLUSIVE);
    }
}
