package io.etcfs.testkit.sim;

import io.etcfs.core.fence.Fencer;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.record.proto.Membership;
import io.etcfs.core.session.StartException;
import java.util.Random;

/** One machine of the cluster: a daemon that can go and come back, its kernel, its network. */
final class Machine {
    private static final long DEADLINE_NS = 20_000_000_000L;

    private final World world;
    final String name;
    final SimNetwork network;
    private final Random random;
    private final double drift;
    private int started;
    SimProcess daemon;
    SimKernel kernel;
    ClusterNode node;
    private boolean up;
    /** Why the daemon ended by itself; null: it did not. */
    String stopped;

    Machine(World world, String name, Random random) {
        this.world = world;
        this.name = name;
        this.random = random;
        this.drift = world.weather.has(Weather.Kind.DRIFT) ? (random.nextDouble() - 0.5) / 50 : 0;
        this.network = new SimNetwork(world.scheduler, world.weather, new Random(random.nextLong()));
    }

    /** The daemon's name in the history. */
    String process() {
        return name + "." + started;
    }

    boolean up() {
        return up;
    }

    /** Mounts, on a thread of the daemon's: {@link #up} says when it is done. */
    void mount() {
        if (!world.disk.quiet(name)) {
            // The lock of the process before is held until its last write has returned.
            world.scheduler.after(20_000_000L, () -> {
                if (daemon == null) {
                    mount();
                }
            });
            return;
        }
        started++;
        stopped = null;
        SimProcess process = new SimProcess(world.scheduler, process(), drift);
        daemon = process;
        SimStore store = new SimStore(world.store, process, network);
        int power = world.power;
        boolean fenced = world.weather.has(Weather.Kind.FENCER);
        node = new ClusterNode(new ClusterNode.Ports(store, world.disk.attach(process(), () -> world.power == power, () -> fenced && world.fencer.severed(process.toString())), process, process, new Random(random.nextLong()),
                fenced ? world.fencer : Fencer.none()),
                new ClusterNode.Settings(World.NAME, name, process(), Membership.newBuilder().setHost(name).build(), DEADLINE_NS, 128, 64L << 20), world.superblock, world.superblockCreated);
        ClusterNode mounted = node;
        kernel = new SimKernel(process, world.programs, world.weather, new Random(random.nextLong()), mounted, world.sessions(name));
        mounted.attachKernel(kernel);
        mounted.onStop(reason -> {
            if (daemon == process) {
                stopped = reason;
                world.tell(process() + " stops: " + reason);
                end();
            }
        });
        process.start("mount", () -> {
            try {
                mounted.start();
                up = true;
                world.tell(process() + " is mounted");
            } catch (StartException e) {
                world.tell(process() + " can't be mounted: " + e.getMessage());
                // Its session of before may still be there.
                world.scheduler.after(500_000_000L, () -> {
                    if (daemon == process) {
                        end();
                        mount();
                    }
                });
            }
        });
    }

    /** Its programs have ended, and the kernel has let it go. */
    void unmounted() {
        up = false;
    }

    /** As SIGKILL. */
    void end() {
        if (daemon != null) {
            SimProcess gone = daemon;
            up = false;
            daemon = null;
            gone.kill();
            kernel.abort();
        }
    }
}
