package io.etcfs.node.control;

/** A daemon could not be asked, or answered with an error. One line for the user. */
public class ControlException extends Exception {
    /** There is a daemon, and it did not answer in time. */
    public static final class Silent extends ControlException {
        public Silent(String message) {
            super(message);
        }
    }

    /** The daemon ended, or closed the connection, before it had answered. */
    public static final class Gone extends ControlException {
        public Gone(String message) {
            super(message);
        }
    }

    public ControlException(String message) {
        super(message);
    }
}
