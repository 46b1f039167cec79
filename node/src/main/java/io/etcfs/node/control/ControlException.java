package io.etcfs.node.control;

/** A daemon could not be asked, or answered with an error. One line for the user. */
public final class ControlException extends Exception {
    public ControlException(String message) {
        super(message);
    }
}
