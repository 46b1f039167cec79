package io.etcfs.testkit.sim;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.util.concurrent.Executor;

/** Virtual threads whose steps an executor of ours runs. Needs {@code --add-opens java.base/java.lang=ALL-UNNAMED}; JDK 25. */
final class VirtualThreads {
    private static final MethodHandle NEW = find();

    private VirtualThreads() {}

    private static MethodHandle find() {
        try {
            Method m = Class.forName("java.lang.ThreadBuilders").getDeclaredMethod("newVirtualThread", Executor.class, String.class, int.class, Runnable.class);
            m.setAccessible(true);
            return MethodHandles.lookup().unreflect(m).asType(MethodType.methodType(Thread.class, Executor.class, String.class, int.class, Runnable.class));
        } catch (ReflectiveOperationException | RuntimeException e) {
            throw new IllegalStateException("the simulator needs JDK 25 and --add-opens java.base/java.lang=ALL-UNNAMED", e);
        }
    }

    /** Not started yet. */
    static Thread create(Executor executor, String name, Runnable body) {
        try {
            return (Thread) NEW.invokeExact(executor, name, 0, body);
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }
}
