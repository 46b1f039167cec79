package io.etcfs.core.fs;

/**
 * Thrown out of an operation that was called with {@link Call#mayWait()} false and can't be answered at once. It has had no effect;
 * what it waits for has been asked for already. The caller calls again from a thread that may wait.
 */
public final class MustWait extends RuntimeException {
    private static final long serialVersionUID = 1L;
    public static final MustWait INSTANCE = new MustWait();

    private MustWait() {
        super(null, null, false, false);
    }
}
