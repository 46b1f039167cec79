package io.etcfs.it.cluster;

import io.etcfs.core.fault.Fault;
import java.util.List;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/** Keeps one cluster, whichever was asked for last. After each test the daemons must be those that were started, and have logged no error. */
final class ClusterExtension implements ParameterResolver, AfterEachCallback {
    private static final ExtensionContext.Namespace SPACE = ExtensionContext.Namespace.create(ClusterExtension.class);

    private static final class Holder implements AutoCloseable {
        private DevCluster cluster;

        DevCluster get(Fault[] faults) {
            if (cluster != null && (cluster.isBroken() || !cluster.faults().equals(List.of(faults)))) {
                close();
            }
            if (cluster == null) {
                cluster = DevCluster.up(2, faults);
            }
            return cluster;
        }

        @Override
        public void close() {
            if (cluster != null) {
                cluster.close();
                cluster = null;
            }
        }
    }

    private static Holder holder(ExtensionContext context) {
        return context.getRoot().getStore(SPACE).computeIfAbsent(Holder.class, k -> new Holder(), Holder.class);
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == DevCluster.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return holder(context).get(context.getRequiredTestClass().getAnnotation(OnCluster.class).faults());
    }

    @Override
    public void afterEach(ExtensionContext context) {
        DevCluster cluster = holder(context).cluster;
        if (cluster == null) {
            return;
        }
        if (context.getExecutionException().isPresent()) {
            // Whatever it left behind must not be the next one's failure.
            System.err.println(cluster.logTails());
            cluster.markBroken();
            return;
        }
        cluster.requireServing();
        List<String> errors = cluster.newErrors();
        if (!errors.isEmpty()) {
            cluster.markBroken();
            throw new AssertionError("the daemons logged errors:\n" + String.join("\n", errors));
        }
    }
}
