package io.etcfs.it.recall;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.it.cluster.Crew;
import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** Signals to a process whose operation waits. */
@OnCluster
class KilledTest {
    private static final String MAKES_A_NAME = """
            os.listdir(HERE)
            tick()
            while not os.path.exists(ARGS[0]):
                tick()
                time.sleep(0.01)
            idle()
            open(HERE + '/made', 'w').close()
            busy()
            time.sleep(60)
            """;

    /** The daemon that holds the token does not answer; its session ends 2 s later, which would also end the wait. */
    @Test
    void aProcessThatWaitsForATokenCanBeKilled(DevCluster cluster) throws Exception {
        Scene scene = new Scene(cluster, "killed");
        scene.add("holder", 2, "put(HERE + '/x', b'')\n");
        scene.play(20);
        waitsAndIsKilled(scene, () -> cluster.pause(2), () -> cluster.resume(2), Duration.ofMillis(800));
    }

    /** Nobody answers at all for as long as etcd is stopped. */
    @Test
    void aProcessThatWaitsForEtcdCanBeKilled(DevCluster cluster) throws Exception {
        Scene scene = new Scene(cluster, "killed-etcd");
        scene.add("holder", 2, "put(HERE + '/x', b'')\n");
        scene.play(20);
        waitsAndIsKilled(scene, cluster::pauseEtcd, cluster::resumeEtcd, Duration.ofSeconds(2));
    }

    private static void waitsAndIsKilled(Scene scene, Runnable pause, Runnable resume, Duration limit) throws InterruptedException {
        DevCluster cluster = scene.cluster();
        java.nio.file.Path go = cluster.mount(1).getParent().resolveSibling("go-" + System.nanoTime());
        try (Crew crew = scene.crew()) {
            Crew.Child waiter = scene.add("waiter", 1, MAKES_A_NAME, go);
            crew.start();
            waiter.awaitTicks(waiter.ticks() + 2, Duration.ofSeconds(5));
            pause.run();
            try {
                java.nio.file.Files.createFile(go);
                Thread.sleep(50);
                long before = waiter.ticks();
                Thread.sleep(400);
                assertEquals(before, waiter.ticks(), "the create does not wait");
                waiter.kill();
                assertTrue(waiter.awaitEnd(limit), () -> "alive " + limit + " after SIGKILL");
                assertEquals(128 + 9, waiter.exitCode());
            } catch (java.io.IOException e) {
                throw new java.io.UncheckedIOException(e);
            } finally {
                resume.run();
            }
        }
        // Both nodes work again. A name that the killed process was making is there on both or on neither.
        scene.alone("""
                for n in range(2):
                    put(HERE + '/after%d' % n, b'')
                    check(sorted(os.listdir(THERE)) == sorted(os.listdir(HERE)), 'listings differ')
                    tick()
                    put(THERE + '/later%d' % n, b'')
                """);
    }

    @Test
    void timersDoNotMakeOperationsFail(DevCluster cluster) {
        Scene scene = new Scene(cluster, "timers");
        scene.add("timed", 1, """
                hits = 0
                def hit(*args):
                    global hits
                    hits += 1
                signal.signal(signal.SIGALRM, hit)
                signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
                # By the C library: Python would try again by itself.
                space = ctypes.create_string_buffer(4096)
                def ok(result, what):
                    check(result >= 0, what, os.strerror(ctypes.get_errno()))
                    tick()
                    return result
                for n in until(4):
                    name = (HERE + '/f%d' % (n % 10)).encode()
                    fd = ok(libc.open(name, os.O_CREAT | os.O_RDWR, 0o644), 'open')
                    ok(libc.pwrite(fd, space, 100, ctypes.c_long(n)), 'write')
                    ok(libc.pread(fd, space, 4096, ctypes.c_long(0)), 'read')
                    ok(libc.ftruncate(fd, ctypes.c_long(50)), 'truncate')
                    ok(libc.close(fd), 'close')
                    ok(libc.stat(name, space), 'stat')
                    ok(libc.rename(name, name + b'-'), 'rename')
                    ok(libc.mkdir((HERE + '/d%d' % n).encode(), 0o755), 'mkdir')
                    ok(libc.rmdir((HERE + '/d%d' % n).encode()), 'rmdir')
                signal.setitimer(signal.ITIMER_REAL, 0)
                # Signals that come during one call count once.
                check(hits > 8, 'only', hits, 'signals')
                """);
        scene.add("other", 2, """
                for n in until(4):
                    put(HERE + '/other', b'%d' % n)
                    time.sleep(0.05)
                """);
        scene.play(30);
    }
}
