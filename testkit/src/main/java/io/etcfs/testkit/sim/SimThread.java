package io.etcfs.testkit.sim;

import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * One thread of a process, as the executor of its steps. A step can be cut short by a monitor of the JVM's own that one of its own threads holds for a moment (the
 * cleaner's, which {@code Arena.ofAuto} takes): the rest of it comes from another thread of the JVM, in real time. It is waited for and belongs to the step, or a run
 * would depend on when the JVM collects garbage.
 */
final class SimThread implements Executor {
    private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(10);

    private final SimProcess process;
    private Thread thread;
    /** The thread can go on, and its process knows. */
    private boolean ready;
    /** What the JVM gave to run after it had kept the thread waiting. */
    private volatile Runnable rest;

    private SimThread(SimProcess process) {
        this.process = process;
    }

    /** Called by what is simulated, or by the thread that runs the simulation. */
    static Thread start(SimProcess process, String name, Runnable body) {
        SimThread t = new SimThread(process);
        t.thread = VirtualThreads.create(t, name, body);
        t.thread.start();
        return t.thread;
    }

    @Override
    public void execute(Runnable step) {
        if (Thread.currentThread().isVirtual() || Thread.currentThread() == process.scheduler().carrier()) {
            ready = true;
            process.ready(() -> run(step));
        } else {
            rest = step;
            LockSupport.unpark(process.scheduler().carrier());
        }
    }

    /** To where the thread waits for something that is simulated. */
    private void run(Runnable step) {
        Runnable next = step;
        while (next != null) {
            ready = false;
            next.run();
            next = waitsForTheJvm() ? rest() : null;
        }
    }

    private boolean waitsForTheJvm() {
        return switch (thread.getState()) {
            case BLOCKED -> true;
            // Not waiting any more, and the JVM is about to say so.
            case RUNNABLE -> !ready;
            case NEW, WAITING, TIMED_WAITING, TERMINATED -> false;
        };
    }

    private Runnable rest() {
        long until = System.nanoTime() + PATIENCE_NS;
        while (rest == null) {
            if (System.nanoTime() > until) {
                process.scheduler().failed(new IllegalStateException(thread + " waits for a monitor that another simulated thread holds while it waits"));
                return null;
            }
            LockSupport.parkNanos(1_000_000);
        }
        Runnable next = rest;
        rest = null;
        return next;
    }
}
