package io.etcfs.node.daemon;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.ArrayDeque;
import java.util.Deque;

/** Steps that take back what was done, run in the opposite order. One that fails is logged and does not keep the others from running. */
final class Undo implements AutoCloseable {
    private static final Logger LOG = System.getLogger(Undo.class.getName());

    interface Step {
        void run() throws Exception;
    }

    private record Named(String what, Step step) {}

    private final Deque<Named> steps = new ArrayDeque<>();

    void add(String what, Step step) {
        steps.push(new Named(what, step));
    }

    @Override
    public void close() {
        while (!steps.isEmpty()) {
            Named next = steps.pop();
            try {
                next.step.run();
            } catch (Exception e) {
                LOG.log(Level.WARNING, next.what + " failed: " + e.getMessage());
            }
        }
    }
}
