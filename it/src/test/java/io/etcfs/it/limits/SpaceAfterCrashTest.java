package io.etcfs.it.limits;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.it.cluster.Crew;
import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Files without a name that were open on a node which is killed: their blocks come back once it is there again, as statfs(2) of another node shows. */
@OnCluster
@Timeout(150)
class SpaceAfterCrashTest {
    private static final int FILES = 12;
    private static final String FREE = """
            def free(path):
                s = os.statvfs(path)
                tick()
                return s.f_bfree * s.f_frsize
            """;

    /** The names go by the node that has them open, by the other one, or by a rename over them there. */
    @Test
    void unlinkedFilesThatWereOpenOnAKilledNodeAreFreed(DevCluster cluster) throws Exception {
        String directory = "crash-" + System.nanoTime();
        Path here = cluster.mount(1).resolve(directory);
        Path there = cluster.mount(2).resolve(directory);
        Crew.run(cluster, Duration.ofSeconds(20), "begin", FREE + """
                os.mkdir(HERE)
                # Both nodes have an arena, so that nothing else changes the number.
                put(HERE + '/a', b'a' * 4096)
                put(THERE + '/b', b'b' * 4096)
                time.sleep(0.2)
                open(ARGS[0], 'w').write(str(free(HERE)))
                """, there, here, cluster.scratch().resolve(directory));
        long before = Long.parseLong(java.nio.file.Files.readString(cluster.scratch().resolve(directory)));
        try (Crew crew = new Crew(cluster)) {
            Crew.Child holder = crew.add("holder", """
                    held = []
                    for i in range(%d):
                        fd = os.open(HERE + '/f%%d' %% i, os.O_CREAT | os.O_RDWR)
                        os.write(fd, os.urandom(1 << 20))
                        os.fsync(fd)
                        held.append(fd)
                        tick()
                    for i in range(0, %d, 3):
                        os.unlink(HERE + '/f%%d' %% i)
                        tick()
                    open(ARGS[0], 'w').close()
                    while True:
                        for fd in held:
                            os.pread(fd, 4096, 0)
                            tick()
                        time.sleep(0.05)
                    """.formatted(FILES, FILES), here, there, cluster.scratch().resolve(directory + "-held"));
            crew.add("remover", FREE + """
                    while not os.path.exists(ARGS[0]):
                        tick()
                        time.sleep(0.05)
                    for i in range(1, %d, 3):
                        os.unlink(HERE + '/f%%d' %% i)
                        put(HERE + '/t', b'')
                        os.rename(HERE + '/t', HERE + '/f%%d' %% (i + 1))
                        tick()
                    check(sorted(os.listdir(HERE)) == sorted(['a', 'b'] + ['f%%d' %% i for i in range(2, %d, 3)]), os.listdir(HERE))
                    time.sleep(0.5)
                    # All of them are open still.
                    check(free(HERE) <= int(ARGS[1]) - %d * (1 << 20), 'the space of open files is given back', free(HERE), ARGS[1])
                    open(ARGS[2], 'w').close()
                    idle()
                    time.sleep(60)
                    """.formatted(FILES, FILES, FILES), there, here, cluster.scratch().resolve(directory + "-held"), before, cluster.scratch().resolve(directory + "-removed"));
            crew.start();
            long end = System.nanoTime() + Duration.ofSeconds(60).toNanos();
            while (!java.nio.file.Files.exists(cluster.scratch().resolve(directory + "-removed"))) {
                assertTrue(holder.isAlive() && System.nanoTime() < end, "nothing was removed");
                Thread.sleep(20);
            }
            cluster.kill(1);
        }
        cluster.remount(1);
        Crew.run(cluster, Duration.ofSeconds(50), "freed", FREE + """
                end = time.monotonic() + 40
                while free(HERE) < int(ARGS[0]) - (1 << 20):
                    check(time.monotonic() < end, 'the space does not come back:', free(HERE), 'of', ARGS[0])
                    time.sleep(0.1)
                check(len(os.listdir(HERE)) == 2 + %d, os.listdir(HERE))
                """.formatted(FILES / 3), there, here, before);
        assertEquals(0, cluster.tryEtcfsctl("fsck").code());
    }
}
