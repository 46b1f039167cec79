package io.etcfs.it.recall;

import io.etcfs.it.cluster.Crew;
import io.etcfs.it.cluster.DevCluster;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** A directory of its own in the cluster, and programs that work in it on node 1 and node 2. */
final class Scene {
    private static final AtomicInteger NUMBER = new AtomicInteger();

    private final DevCluster cluster;
    private final String directory;
    private Crew crew;

    Scene(DevCluster cluster, String name) {
        this.cluster = cluster;
        this.directory = name + "-" + NUMBER.incrementAndGet();
        alone("os.mkdir(HERE)\ntick()\nos.listdir(THERE)\n");
    }

    DevCluster cluster() {
        return cluster;
    }

    /** One program on node 1, to its end: prepares, or checks what the others left. */
    void alone(String program, Object... args) {
        Crew only = new Crew(cluster);
        add(only, List.of(), "alone", 1, program, args);
        only.await(Duration.ofSeconds(40));
    }

    /** The program sees the directory on its own node as HERE, on the other one as THERE. */
    Crew.Child add(String name, int node, String program, Object... args) {
        return add(crew(), List.of(), name, node, program, args);
    }

    Crew.Child addThrough(List<String> command, String name, int node, String program, Object... args) {
        return add(crew(), command, name, node, program, args);
    }

    private Crew.Child add(Crew to, List<String> command, String name, int node, String program, Object... args) {
        List<Object> all = new ArrayList<>(List.of(cluster.mount(node).resolve(directory), cluster.mount(3 - node).resolve(directory)));
        all.addAll(List.of(args));
        return to.add(command, name, program, all.toArray());
    }

    Crew crew() {
        if (crew == null) {
            crew = new Crew(cluster);
        }
        return crew;
    }

    /** All programs added since the last time, at the same time. */
    void play(int limitS) {
        Crew c = crew();
        crew = null;
        c.await(Duration.ofSeconds(limitS));
    }
}
