package io.etcfs.core.label;

/** A filesystem was not made. The message is one line for the user: what is wrong with which input, and what to do. */
public final class MkfsException extends Exception {
    public MkfsException(String message) {
        super(message);
    }
}
