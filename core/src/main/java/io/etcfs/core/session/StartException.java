package io.etcfs.core.session;

/** A node could not join. The message is one line for the user: what is wrong and what to do. */
public final class StartException extends Exception {
    private static final long serialVersionUID = 1L;

    public StartException(String message) {
        super(message);
    }
}
