package io.etcfs.it.cluster;

import io.etcfs.core.fault.Fault;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/** Keeps a cluster for each set of faults and transport that was asked for. After each test the daemons must be those that were started, and have logged no error. */
final class ClusterExtension implements ParameterResolver, AfterEachCallback {
    private static final ExtensionContext.Namespace SPACE = ExtensionContext.Namespace.create(ClusterExtension.class);

    private record Kind(List<Fault> faults, String transport) {}

    private static final class Holder implements AutoCloseable {
        private final Map<Kind, DevCluster> clusters = new HashMap<>();
        private DevCluster used;

        DevCluster get(OnCluster wanted) {
            String transport = wanted.transport().isEmpty() ? DevCluster.usualTransport() : wanted.transport();
            DevCluster.assumeOffered(transport);
            Kind kind = new Kind(List.of(wanted.faults()), transport);
            DevCluster cluster = clusters.get(kind);
            if (cluster != null && cluster.isBroken()) {
                cluster.close();
                cluster = null;
            }
            if (cluster == null) {
                cluster = DevCluster.up(2, transport, wanted.faults());
                clusters.put(kind, cluster);
            }
            used = cluster;
            return cluster;
        }

        @Override
        public void close() {
            clusters.values().forEach(DevCluster::close);
            clusters.clear();
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
        return holder(context).get(context.getRequiredTestClass().getAnnotation(OnCluster.class));
    }

    @Override
    public void afterEach(ExtensionContext context) {
        DevCluster cluster = holder(context).used;
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
