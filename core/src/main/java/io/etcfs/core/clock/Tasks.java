package io.etcfs.core.clock;

/** Where core's own threads come from, so that the simulator can schedule them. */
public interface Tasks {
    /** Starts {@code body} on a virtual thread of that name. An uncaught {@link Error} stops the node. */
    Thread start(String name, Runnable body);

    /** Like {@link #start}, on a thread that other tasks can't hold up: for what must happen in time. */
    default Thread startOwn(String name, Runnable body) {
        return start(name, body);
    }
}
