package io.etcfs.core.fs;

import io.etcfs.core.clock.Monitor;
import io.etcfs.core.clock.Tasks;
import io.etcfs.core.session.NodeStoppedError;
import java.util.function.Consumer;

/** The tasks of a node: one that ends with an Error or a RuntimeException ends the node, as nobody else would notice. */
final class NodeTasks implements Tasks {
    private static final System.Logger LOG = System.getLogger(NodeTasks.class.getName());

    private final Tasks tasks;
    private final Consumer<String> stop;

    NodeTasks(Tasks tasks, Consumer<String> stop) {
        this.tasks = tasks;
        this.stop = stop;
    }

    @Override
    public Thread start(String name, Runnable body) {
        return tasks.start(name, guarded(name, body));
    }

    @Override
    public Thread startOwn(String name, Runnable body) {
        return tasks.startOwn(name, guarded(name, body));
    }

    private Runnable guarded(String name, Runnable body) {
        return () -> {
            try {
                body.run();
            } catch (Monitor.Stopped e) {
                LOG.log(System.Logger.Level.DEBUG, "task {0} ended with the node", name);
            } catch (Error | RuntimeException e) {
                if (!(e instanceof NodeStoppedError)) {
                    LOG.log(System.Logger.Level.ERROR, "task " + name + " failed", e);
                }
                stop.accept(e.getMessage() == null ? e.toString() : e.getMessage());
            }
        };
    }
}
