package io.etcfs.node.daemon;

import io.etcfs.core.clock.Tasks;

/** Threads of core in production: virtual ones. */
final class VirtualTasks implements Tasks {
    private final Thread.UncaughtExceptionHandler onError;

    /** @param onError is told of every thread that ends by a throwable */
    VirtualTasks(Thread.UncaughtExceptionHandler onError) {
        this.onError = onError;
    }

    @Override
    public Thread start(String name, Runnable body) {
        return Thread.ofVirtual().name(name).uncaughtExceptionHandler(onError).start(body);
    }

    @Override
    public Thread startOwn(String name, Runnable body) {
        return Thread.ofPlatform().daemon().name(name).uncaughtExceptionHandler(onError).start(body);
    }
}
