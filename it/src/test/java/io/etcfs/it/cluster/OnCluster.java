package io.etcfs.it.cluster;

import io.etcfs.core.fault.Fault;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/** Tests that take a {@link DevCluster} of two nodes as an argument: one for all of them, with these faults planted, replaced after a test that broke it. */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(ClusterExtension.class)
public @interface OnCluster {
    Fault[] faults() default {};

    /** dev, uring, or empty: what the system property etcfs.it.transport says, without it dev. Where the kernel does not offer it the tests are skipped. */
    String transport() default "";
}
