package io.etcfs.core.token;

/** An operation can't go on now and has had no effect; what it waits for was asked for. It is tried again after the next change of the monitor. */
public final class Blocked extends RuntimeException {
    private static final long serialVersionUID = 1L;
    public static final Blocked INSTANCE = new Blocked();

    private Blocked() {
        super(null, null, false, false);
    }
}
