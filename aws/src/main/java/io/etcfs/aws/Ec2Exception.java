package io.etcfs.aws;

/** EC2 did not do what it was asked for. The message is one line for the user. */
final class Ec2Exception extends Exception {
    private static final long serialVersionUID = 1L;

    enum Kind {
        /** Asked too often: later it may be done. */
        THROTTLED,
        /** There is nothing to detach, or it is being detached already. */
        NOT_ATTACHED,
        OTHER
    }

    private final Kind kind;

    Ec2Exception(Kind kind, String message) {
        super(message.replace('\n', ' '));
        this.kind = kind;
    }

    Kind kind() {
        return kind;
    }
}
