package io.etcfs.core.label;

/** A device has no label, or not the one that is needed. The message is one line for the user. */
public final class LabelException extends Exception {
    public enum Reason { ABSENT, DAMAGED, OTHER_VERSION, MISMATCH }

    private final Reason reason;

    public LabelException(Reason reason, String message) {
        super(message);
        this.reason = reason;
    }

    public Reason reason() {
        return reason;
    }
}
