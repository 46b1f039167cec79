package io.etcfs.it.locks;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.it.cluster.Crew;
import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@OnCluster
@Timeout(value = 2, unit = TimeUnit.MINUTES)
class LocksTest {
    private static final AtomicInteger NUMBER = new AtomicInteger();
    /** x is a process of node 1, y one of node 2. Each has the file and, as {@code other}, another one open. */
    private static final String TWO = """
            DAEMON = int(ARGS[0])
            put(HERE, b'x' * 100)
            os.stat(THERE)
            x, y = Locker(HERE), Locker(THERE)
            """;

    /** As one program that sees node 1 first and is told the process of its daemon. */
    private static void play(DevCluster cluster, String program) {
        String name = "locks-" + NUMBER.incrementAndGet();
        Crew.run(cluster, Duration.ofSeconds(60), name, TWO + program, cluster.mount(1).resolve(name), cluster.mount(2).resolve(name), cluster.pid(1));
    }

    @Test
    void locksOfADeadNodeGoWithItsSession(DevCluster cluster) {
        play(cluster, """
                check([x.lock(W, 0, 10), x.flock(fcntl.LOCK_EX)] == [0, 0])
                z = Locker(THERE)
                y.lock_later(W, 5, 1)
                z.flock_later(fcntl.LOCK_SH)
                check(y.waits() and z.waits(), 'do not wait')
                os.kill(DAEMON, signal.SIGKILL)
                begin = time.monotonic()
                check([y.later(), z.later()] == [0, 0])
                took = time.monotonic() - begin
                check(1 < took < 6, 'after', took)
                check(x.call('write', 0, 0) in (errno.ENOTCONN, errno.ECONNABORTED), 'a write through a dead daemon')
                check(x.lock(W, 50, 1) in (errno.ENOTCONN, errno.ECONNABORTED), 'a lock through a dead daemon')
                for l in x, y, z:
                    l.end()
                """);
        cluster.remount(1);
        play(cluster, """
                check([x.lock(W), y.lock(W)] == [0, errno.EAGAIN])
                x.end()
                # The kernel frees them a moment after the process has ended.
                end = time.monotonic() + 5
                while y.lock(W) != 0:
                    check(time.monotonic() < end, 'not freed')
                y.end()
                """);
    }

    /** Longer than its session lives. Who had a lock is told by every call until it closes the file; others on that node are not. */
    @Test
    void aNodeThatWasCutOffLosesItsLocksAndSaysSo(DevCluster cluster) {
        play(cluster, """
                x.call('open')
                other = Locker(HERE)
                check(x.lock(W, 0, 10) == 0)
                check(x.call('read', 0, 50) == 0)
                y.lock_later(W, 5, 1)
                check(y.waits(), 'does not wait')
                os.kill(DAEMON, signal.SIGSTOP)
                check(y.later() == 0)
                check(y.call('write', 0, 50) == 0)
                os.kill(DAEMON, signal.SIGCONT)
                check(x.lock(W, 20, 1) == errno.EIO, 'a lock after locks were lost')
                check(x.call('write', 0, 0) == errno.EIO, 'a write')
                check(x.call('read', 0, 50) == errno.EIO, 'a read')
                check(x.call('fsync', 0) == errno.EIO, 'fsync')
                check(x.call('read', 1, 50) == 0, 'a read through another handle')
                check(other.lock(W, 5, 1) == errno.EAGAIN)
                check(other.lock(W, 0, 5) == 0)
                check(x.call('close', 0) in (0, errno.EIO), 'close')
                x.call('open')
                check(y.lock(UN) == 0)
                check(x.lock(W, 20, 1, file=2) == 0)
                for l in x, y, other:
                    l.end()
                """);
    }

    @Test
    void aShortStopLosesNoLock(DevCluster cluster) {
        play(cluster, """
                check(x.lock(W, 0, 10) == 0)
                y.lock_later(W, 5, 1)
                check(y.waits(), 'does not wait')
                os.kill(DAEMON, signal.SIGSTOP)
                check(y.waits(0.8), 'the session of a node that was stopped for 0.8 s is gone')
                os.kill(DAEMON, signal.SIGCONT)
                check(y.waits(2), 'the lock is lost')
                check(x.call('write', 0, 0) == 0)
                check(x.lock(UN) == 0)
                check(y.later() == 0)
                for l in x, y:
                    l.end()
                """);
    }

    /** Waiters of both nodes get their turn while others come back all the time. */
    @Test
    void nobodyStarves(DevCluster cluster) {
        play(cluster, """
                turns = mmap.mmap(-1, 4096)
                def work(i):
                    fd = os.open((HERE, THERE)[i % 2], os.O_RDWR)
                    for n in until(6):
                        fcntl.lockf(fd, fcntl.LOCK_EX)
                        struct.pack_into('q', turns, 8 * i, n + 1)
                        fcntl.lockf(fd, fcntl.LOCK_UN)
                forked(6, work)
                counts = struct.unpack_from('6q', turns)
                check(min(counts) > 20, 'turns:', counts)
                for l in x, y:
                    l.end()
                """);
    }

    @Test
    void etcfsctlListsThem(DevCluster cluster) throws Exception {
        String name = "locks-" + NUMBER.incrementAndGet();
        try (Crew crew = new Crew(cluster)) {
            crew.add("holder", TWO + """
                    check([x.lock(W, 5, 10), x.flock(fcntl.LOCK_SH)] == [0, 0])
                    y.lock_later(R, 0, 0)
                    check(y.waits(), 'does not wait')
                    open(ARGS[1], 'w').close()
                    idle()
                    while os.path.exists(ARGS[1]):
                        time.sleep(0.02)
                    busy()
                    check(x.lock(UN) == 0)
                    check(y.later() == 0)
                    x.end()
                    y.end()
                    """, cluster.mount(1).resolve(name), cluster.mount(2).resolve(name), cluster.pid(1), cluster.scratch().resolve(name));
            crew.start();
            java.nio.file.Path ready = cluster.scratch().resolve(name);
            while (!java.nio.file.Files.exists(ready)) {
                Thread.sleep(20);
            }
            String table = cluster.etcfsctl("locks", "--paths");
            java.nio.file.Files.delete(ready);
            crew.await(Duration.ofSeconds(30));
            assertTrue(table.lines().anyMatch(l -> l.matches(" *\\d+ +n1 +\\d+ +fcntl +write +5 +14 +held +/" + name)), table);
            assertTrue(table.lines().anyMatch(l -> l.matches(" *\\d+ +n1 +\\d+ +flock +read +0 +- +held +/" + name)), table);
            assertTrue(table.lines().anyMatch(l -> l.matches(" *\\d+ +n2 +\\d+ +fcntl +read +0 +- +waiting +/" + name)), table);
        }
    }
}
