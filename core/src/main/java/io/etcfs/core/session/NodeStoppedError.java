package io.etcfs.core.session;

/** The node may do nothing more: it was fenced, its journal was lost, or an invariant is broken. Ends all I/O and the process. */
public final class NodeStoppedError extends Error {
    private static final long serialVersionUID = 1L;

    public NodeStoppedError(String reason) {
        super(reason);
    }
}
